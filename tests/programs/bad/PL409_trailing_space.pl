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


fragment ask():
    "It was "


program further(x: bool):
    use ask()
    log x
    y = gen(max_tokens=3)
    if x:
        "Yes: "
    else:
        "No: "
    z = 1
    if z > 0:
        log z
        v = gen(max_tokens=3)
        log v
    for each in [1, 2]:
        "${each} "
    w = gen(max_tokens=3)
    "Then "
    "so"
    u = gen(max_tokens=3)
    log u + w + y
#! 2:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 10:9 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 16:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 27:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 35:9 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 37:9 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 44:9 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
