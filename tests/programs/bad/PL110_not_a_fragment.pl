program other():
    pass

program p():
    use other()
#! 5:5 PL110 `use` runs fragments, and `other` is a program [call it: `result = other(...)`]
