record Search:
    kind: "search"
    query: str


record Find:
    kind: "find"
    query: str


record Answer:
    kind: "answer"
    text: str


record Plain:
    query: str


record Turn:
    step: Search | Answer


program p(step: Search | Find | Answer, plain: Plain | Answer, turn: Turn, maybe: Answer | none):
    log step.kin
    log step.query
    log step.text
    log plain.query
    log turn.step.query
    log maybe.txt
    if step.kind == "answer":
        log step.query
    else:
        log step.query
        log step.text
    while step.kind == "search":
        log step.text
        step = gen(Search | Answer)
    if turn.step.kind != "answer" or step.kind == "answer":
        log turn.step.query
    if maybe:
        log maybe.text
        log maybe.txt
#! 25:14 PL107 Search | Find | Answer has no `kin` [did you mean `kind`?]
#! 26:14 PL107 only Search and Find have `query`, not Answer [ask first which it is: `if step.kind in ["search", "find"]:`]
#! 27:14 PL107 only Answer has `text`, not Search or Find [ask first which it is: `if step.kind == "answer":`]
#! 28:15 PL107 only Plain has `query`, not Answer [give each record a tag, as `kind: "a"`, and ask for it first]
#! 29:19 PL107 only Search has `query`, not Answer [ask first which it is: `if turn.step.kind == "search":`]
#! 30:15 PL107 Answer | none has no `txt` [did you mean `text`?]
#! 32:18 PL107 Answer has no `query`
#! 35:18 PL107 Search | Find has no `text`
#! 40:23 PL107 only Search has `query`, not Answer [ask first which it is: `if turn.step.kind == "search":`]
#! 43:19 PL107 Answer has no `txt` [did you mean `text`?]
