program p():
    "The answer is "
    x = gen(int)
    log x
#! 2:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
