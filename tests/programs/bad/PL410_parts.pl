record R0:
    a: R1
    b: R1


record R1:
    a: R2
    b: R2


record R2:
    a: R3
    b: R3


record R3:
    a: R4
    b: R4


record R4:
    a: R5
    b: R5


record R5:
    a: R6
    b: R6


record R6:
    a: R7
    b: R7


record R7:
    a: R8
    b: R8


record R8:
    a: R9
    b: R9


record R9:
    a: R10
    b: R10


record R10:
    a: R11
    b: R11


record R11:
    a: R12
    b: R12


record R12:
    x: str
#! 1:8 PL410 `R0` has more than 1000 parts, written out [use a type less often inside others]
