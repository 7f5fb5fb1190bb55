program p(x: int):
    x == 3
    x + 1
    len("abc")
#! 2:5 PL009 this line computes a value and does nothing with it [`=` gives a value a name, `==` compares]
#! 3:5 PL009 this line computes a value and does nothing with it [give the value a name, `log` it, or write `"${...}"` to put it into the prompt]
