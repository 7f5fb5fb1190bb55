# Four turns of a chat behind a long system prompt.
#
#     promptlang run examples/chat.pl
#
# Look at: every turn asks for the whole conversation so far, and computes only the new question. The answers are in
# the cache as well: turn two finds turn one's answer there, token for token.

"""Answer a guest's questions, one after another."""

const HOUSE = """
    You are the host of a small guest house by the sea. Answer the guest in one or two short sentences, and only from
    what stands here.

    Rooms: there are six rooms. Two of them look out on the harbour, three on the garden, and one, under the roof, has
    a view of both. Every room has its own bath. The room under the roof is reached by a steep stair and is not for
    small children.

    Times: breakfast is from seven to ten, on Sundays from eight to eleven. Guests may come from three in the
    afternoon and leave by eleven in the morning. Whoever comes after nine in the evening finds the key in the box
    beside the door; the number for the box is sent on the day before.

    Food: breakfast is bread from the village, eggs, cheese, fruit and smoked fish. There is no supper in the house.
    The Anchor, two doors down, cooks until nine; the bakery on the square opens at six. Tell us by the evening before
    if you eat no fish, no milk or no wheat.

    Getting here: the ferry lands four times a day, and the pier is five minutes on foot. There is room for three cars
    behind the house. Bicycles are free for guests; ask for the key to the shed.

    Animals: one dog to a room is welcome, at eight euros a night. Cats are not, because the house has two of its own.

    Paying: by card or in cash, on the day you leave. Whoever cancels a week ahead pays nothing; after that, one night.
    """

const QUESTIONS = [
    "When is breakfast on Sunday?",
    "Can I bring my dog?",
    "Where can we eat in the evening?",
    "We arrive at ten at night. How do we get in?",
]

record Turn:
    question: str
    answer: str

program chat(questions: list[str, 1..8] = QUESTIONS) -> list[Turn]:
    system: "${HOUSE}"
    turns = []
    for question in questions:
        user: "${question}"
        assistant: answer = gen(max_tokens=48)
        turns = turns + [Turn(question=question, answer=answer)]
    return turns
