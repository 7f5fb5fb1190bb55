fragment f():
    "text"
    return 3
#! 3:5 PL311 a fragment returns nothing [make it a program]
