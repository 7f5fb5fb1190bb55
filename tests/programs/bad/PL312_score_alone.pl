program p():
    "The sky is"
    score(" blue")
#! 3:5 PL312 `score` alone does nothing [give its result a name: `x = score("text")`]
