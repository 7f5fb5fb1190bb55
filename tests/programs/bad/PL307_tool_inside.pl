tool search(query: str, limit: int = 3) -> list[str]

tool note(text: str)


fragment f():
    "a"


program p(search2: str):
    x = len(search("a"))
    y = search(3)
    z = search("a", most=2)
    w = search()
    v = search
    use search("a")
    n = note("a")
    log "${x} ${y} ${z} ${w} ${v} ${n + 1} ${search2}"
    assistant: g = gen(search)
    log g
    log serch("a")
#! 11:13 PL307 `search(...)` can't stand inside an expression [give it a line of its own: `result = search(...)`]
#! 12:16 PL201 `query` of `search` must be str, not 3
#! 13:21 PL204 `search` has no `most`
#! 14:9 PL203 `search` needs `query`
#! 15:9 PL108 `search` is a tool, not a value
#! 16:5 PL110 `use` runs fragments, and `search` is a tool [call it: `result = search(...)`]
#! 18:37 PL202 `+` can't take none and 1
#! 19:24 PL106 unknown type `search`
#! 21:9 PL101 unknown name `serch` [did you mean `search`?]
