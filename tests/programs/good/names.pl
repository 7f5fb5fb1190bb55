program limit(first: int, by: str, where: bool, options: list[str], type: str, record: int) -> int:
    score = first
    team = by
    role = team
    user = role
    keep = user
    log = keep
    use = log
    fork = use
    beam = fork
    pin = beam
    arm = pin
    adopt = arm
    require = adopt
    system = require
    assistant = system
    const = assistant
    program = const
    max = select(options=options)
    schema = max
    grammar = schema
    log grammar
    log max(1, 2)
    log program
    fork 2 as limit:
        "x"
        score = gen(int in 1..5)
        keep 1 by score
    log limit[0].score
    log type
    log where
    return record
