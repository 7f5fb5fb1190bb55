tool search(query: str) -> str


program p(x: int):
    y = search("a")
    log y
    require x > 3 else retry 2
    beam depth=2 width=2 branch=2 by x as paths:
        "step"
#! 5:9 PL310 `tool` does not run in this version
#! 7:5 PL310 `require` does not run in this version
#! 8:5 PL310 `beam` does not run in this version
