program p(ask: bool):
    "Say: "
    a = gen(bool, logprobs=true)
    b = gen(list[int], logprobs=true)
    c = gen(int | none, logprobs=true)
    d = gen(json, logprobs=true)
    e = gen(logprobs=ask)
    f = gen(int | "none", logprobs=true)
    log f.logprobs
    g = gen(logprobs=false)
    log g.logprobs
#! 2:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 3:19 PL412 `logprobs` goes with text and numbers, not with bool [leave it out, or ask for the parts one by one]
#! 4:24 PL412 `logprobs` goes with text and numbers, not with list[int] [leave it out, or ask for the parts one by one]
#! 5:25 PL412 `logprobs` goes with text and numbers, not with int | none [leave it out, or ask for the parts one by one]
#! 6:19 PL412 `logprobs` goes with text and numbers, not with json [leave it out, or ask for the parts one by one]
#! 7:22 PL405 `logprobs` must be true or false, written out, not an expression
#! 11:11 PL107 str has no `logprobs` [ask for it: `gen(..., logprobs=true)`]
