const RULES = """
    Answer in one word, and say nothing else. When you are not sure, give the word that is the likeliest. Never speak
    of other customers.
    """


fragment grade(side: str):
    user: """
        Grade its ${side} from 1 to 5. A grade of 1 is for a text that nobody would print, 3 for one that needs some
        work, and 5 for one that can be printed as it is.
        """


program judge(text: str) -> list[int]:
    user: "${text}"
    fork side in ["clarity", "tone"] as sides:
        user: "Look at its ${side}. ${RULES}"
        assistant: mark = gen(int in 1..5)
    fork as views:
        arm honesty:
            use grade("honesty")
            assistant: mark = gen(int in 1..5)
        arm beauty:
            use grade("beauty")
            assistant: mark = gen(int in 1..5)
    return [views.honesty.mark, views.beauty.mark] + [side.mark for side in sides]
#! 9:27 PL502 warning: about 35 tokens that all branches share stand behind `${side}`: every branch computes them again [put what all share before `${side}`, or before the fork]
#! 17:37 PL502 warning: about 33 tokens that all branches share stand behind `${side}`: every branch computes them again [put what all share before `${side}`, or before the fork]
