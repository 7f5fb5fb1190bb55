fragment a():
    use b()


fragment b():
    use a()
#! 1:10 PL308 this fragment uses itself: a -> b -> a
#! 5:10 PL308 this fragment uses itself: b -> a -> b
