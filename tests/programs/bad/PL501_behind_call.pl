const RULES = """
    Answer in one word, and say nothing else. When you are not sure, give the word that is the likeliest. Never speak
    of other customers.
    """


record Shot:
    question: str
    answer: str


const SHOTS = [
    Shot("Is the sea blue?", "It looks blue, for it mirrors the sky."),
    Shot("Is the moon far?", "It is far, but nothing in the sky is nearer."),
]


# The system prompt begins with what differs.
program greet(name: str, mood: str = "calm") -> str:
    system: "You help ${name}. Be ${mood}. ${RULES}"
    user: "How far is the moon?"
    assistant: word = gen(max_tokens=3)
    return word


# Examples stand behind the data.
program ask(question: str) -> str:
    user: "The question is: ${question}"
    for shot in SHOTS:
        user: "For example: ${shot.question}"
        assistant: "${shot.answer}"
    assistant: word = gen(max_tokens=3)
    return word


# A program that is called several times, each time with another word.
program calls() -> list[str]:
    first = say("sea", RULES)
    second = say("moon", RULES)
    return [first, second]


program say(word: str, rules: str) -> str:
    """
    The word is ${word}. ${rules} Write a sentence that holds the word, in large letters, and a second one that does
    not hold it, in small letters, and a third one that is about the first two.
    """
    text = gen(max_tokens=3)
    return text
#! 20:44 PL501 warning: about 40 tokens of fixed text stand behind `${name}`: every call computes them again [put the fixed text before `${name}`]
#! 31:21 PL501 warning: about 35 tokens of fixed text stand behind `${question}`: every call computes them again [put the fixed text before `${question}`]
#! 45:35 PL501 warning: about 40 tokens of fixed text stand behind `${word}`: every call computes them again [put the fixed text before `${word}`]
