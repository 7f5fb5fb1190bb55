fragment f0():
    use f1()
    use f1()


fragment f1():
    use f2()
    use f2()


fragment f2():
    use f3()
    use f3()


fragment f3():
    use f4()
    use f4()


fragment f4():
    use f5()
    use f5()


fragment f5():
    use f6()
    use f6()


fragment f6():
    use f7()
    use f7()


fragment f7():
    use f8()
    use f8()


fragment f8():
    use f9()
    use f9()


fragment f9():
    use f10()
    use f10()


fragment f10():
    use f11()
    use f11()


fragment f11():
    use f12()
    use f12()


fragment f12():
    use f13()
    use f13()


fragment f13():
    use f14()
    use f14()


fragment f14():
    "x"


program p():
    use f0()
#! 11:10 PL317 `f2` has more than 10000 statements, with its fragments in place [use fewer fragments inside others, or call a program for a part]
