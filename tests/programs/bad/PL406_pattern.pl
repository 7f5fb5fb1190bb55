type A = /[a-/
type B = /(ab/
type C = /(a|b)\1/


program p():
    x = gen(/(?<=a)b/)
    log x
#! 1:10 PL406 the pattern /[a-/ can't be compiled: it ends where a ] must follow
#! 2:10 PL406 the pattern /(ab/ can't be compiled: a ( without its )
#! 3:10 PL406 the pattern /(a|b)\1/ can't be compiled: a back-reference is not supported
#! 7:13 PL406 the pattern /(?<=a)b/ can't be compiled: lookbehind is not supported
