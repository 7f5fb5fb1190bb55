program p(x: int, items: list[str]):
    if x > 3:
        size = "large"
    log size
    for item in items:
        last = item
    log last
#! 4:9 PL102 `size` may have no value here [give it a value on every way that leads here]
#! 7:9 PL102 `last` may have no value here [give it a value on every way that leads here]
