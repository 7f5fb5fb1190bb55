program other():
    pass


program p():
    use other()
#! 6:5 PL110 `use` runs fragments, and `other` is a program [call it: `result = other(...)`]
