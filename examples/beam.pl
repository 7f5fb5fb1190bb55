# Beam search over the lines of a poem: each line is tried three ways, and the two best poems so far go on.
#
#     promptlang run examples/beam.pl --arg topic="the sea"
#
# Look at: fifteen branches write lines in three rounds, and each round goes through the model in one batch. A poem's
# earlier lines are in the cache, whichever of its branches goes on: they are computed once.

"""Write a short poem, line by line, and keep what the model itself finds likely but has not said yet."""


record Poem:
    title: str
    lines: list[str]
    score: float


program poem(topic: str = "rain on the roof", rounds: int in 1..8 = 3) -> Poem:
    system: "You are a poet. You write short, simple lines."
    user: "Write a poem about ${topic}, line by line."

    lines = []
    beam depth=rounds width=2 branch=3 by score as poems:
        user: "Line ${len(lines) + 1}, please. Only the line."
        assistant:
            line = gen(max_tokens=20, temperature=0.9, top_p=0.9, stop="\n", logprobs=true)
            require line.strip() != "" else retry 8 else "the model writes no line"
        likely = sum(line.logprobs) / len(line.logprobs)
        score = likely - 100 if line.strip() in lines else likely
        lines = lines + [line.strip()]
    adopt poems[0]

    user: "Which title fits it?"
    assistant: title = gen(max_tokens=12, temperature=0.5, stop="\n")
    return Poem(title=title, lines=lines, score=round(score, 2))
