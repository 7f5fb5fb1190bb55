program p():
    "The answer is "
    x = gen(int)
    log x


program turns():
    user: "What is it? "
    assistant:
        "It is "
        x = gen(max_tokens=3)
    log x


program branches():
    "It is "
    fork 2 as b:
        x = gen(max_tokens=3)
    "Or it is "
    if len(b) > 1:
        "not."
    y = gen(max_tokens=3)
    log y
#! 2:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 10:9 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 16:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
