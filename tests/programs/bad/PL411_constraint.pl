program main():
    "Twice: "
    x = gen(/(a|b)\1/)
    y = gen(/(?<=a)b/)
    z = gen(/[ab]{2}/)
    return [x, y, z]
#! 2:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 3:13 PL411 the pattern /(a|b)\1/ can't be compiled: a back-reference is not supported
#! 4:13 PL411 the pattern /(?<=a)b/ can't be compiled: lookbehind is not supported
