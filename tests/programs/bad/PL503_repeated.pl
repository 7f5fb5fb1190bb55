program tell(questions: list[str]) -> list[str]:
    answers = []
    for question in questions:
        user: """
            Answer in one word, and say nothing else. When you are not sure, give the word that is the likeliest.
            Never speak of other customers. ${question}
            """
        assistant: answer = gen(max_tokens=3)
        answers = answers + [answer]
    rounds = 0
    while rounds < 3:
        rounds = rounds + 1
        if rounds > 1:
            user: "Go on."
        user: """
            Say the same once more, in other words, and shorter than before. Leave out what everybody knows. Do not
            begin with praise, and do not end with a question.
            """
        assistant: answer = gen(max_tokens=3)
        answers = answers + [answer]
    return answers
#! 4:15 PL503 warning: every round of a loop writes the same text again: about 34 tokens [put what is the same in every round before the loop, once]
#! 15:15 PL503 warning: every round of a loop writes the same text again: about 38 tokens [put what is the same in every round before the loop, once]
