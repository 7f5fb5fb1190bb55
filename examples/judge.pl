# One text, read from four sides at once; then a verdict that knows all four notes.
#
#     promptlang run examples/judge.pl --arg text="Fresh bread, every day from six."
#
# Look at: the four arms ask for the text four times and more, and it is computed once. The arms run in one batch:
# the passes of the whole program are not many more than those of its longest arm.

"""Judge a product text by its clarity, its tone, its honesty and its use."""

type Grade = int in 1..5


record Verdict:
    notes: list[str]
    grades: list[Grade]
    verdict: "publish" | "revise" | "reject"


const ADVERT = """
    The Harbour lamp gives a warm light that does not tire the eyes. It runs for twenty hours on one charge, can be
    dimmed with a turn of its brass ring, and weighs less than a cup of tea. Take it to the table, to the tent or to
    bed. If it does not please you, send it back within sixty days.
    """


fragment grade(side: str):
    user: "Grade its ${side} from 1 to 5."


program judge(text: str = ADVERT) -> Verdict:
    system: "You are an editor. Answer in one short sentence."
    user: "Here is a product text.\n\n${text}"
    assistant: "I have read it with care."

    fork as views:
        arm clarity:
            user: "Is the text easy to understand?"
            assistant: note = gen(max_tokens=32, stop="\n")
            use grade("clarity")
            assistant: mark = gen(Grade)
        arm tone:
            user: "What does the text make the reader feel?"
            assistant: note = gen(max_tokens=32, stop="\n")
            use grade("tone")
            assistant: mark = gen(Grade)
        arm honesty:
            user: "Which of its claims can a reader check?"
            assistant: note = gen(max_tokens=32, stop="\n")
            use grade("honesty")
            assistant: mark = gen(Grade)
        arm use:
            user: "Who would buy this, and what for?"
            assistant: note = gen(max_tokens=32, stop="\n")
            use grade("use")
            assistant: mark = gen(Grade)

    sides = [views.clarity, views.tone, views.honesty, views.use]
    user: """
        Four readers gave these notes and grades (5 is best):
        - clarity, ${views.clarity.mark}: ${views.clarity.note}
        - tone, ${views.tone.mark}: ${views.tone.note}
        - honesty, ${views.honesty.mark}: ${views.honesty.note}
        - use, ${views.use.mark}: ${views.use.note}
        What shall we do with the text?
        """
    assistant: verdict = select("publish", "revise", "reject")
    return Verdict(
        notes=[side.note for side in sides],
        grades=[side.mark for side in sides],
        verdict=verdict,
    )
