fragment a():
    use b()

fragment b():
    use a()
#! 1:10 PL308 this fragment uses itself: a -> b -> a
#! 4:10 PL308 this fragment uses itself: b -> a -> b
