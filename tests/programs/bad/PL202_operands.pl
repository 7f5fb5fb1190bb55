program p(x: int, name: str):
    log "Dear " + x
    log name < x
    log [1] - [2]
#! 2:9 PL202 `+` can't take "Dear " and int [fill a value into text with `${...}`]
#! 3:9 PL202 `<` can't take str and int
#! 4:9 PL202 `-` can't take list[1, 1..1] and list[2, 1..1]
