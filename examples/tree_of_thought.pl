# A small search tree: three ideas, the two best go on, each tries two first steps and keeps the better one.
#
#     promptlang run examples/tree_of_thought.pl --arg goal="Read more books this year"
#
# Look at: seven branches read the same opening, and every pair of steps reads one idea too. Each piece of text is
# computed once, wherever it stands in the tree; what a pruned branch held in the cache is given back at once.

"""Search for a plan: ideas, then first steps, the best of each kept."""


record Plan:
    idea: str
    step: str
    score: int


program plan(goal: str = "Learn to cook in one month") -> Plan:
    system: "You help people to make plans. Answer in one short sentence."
    user: "My goal: ${goal}"
    assistant: "Let us find a good plan."

    fork 3 as ideas:
        user: "Give me one idea for it."
        assistant: idea = gen(max_tokens=32, temperature=0.6, top_p=0.8, stop="\n")
        user: "How good is that idea, from 1 to 10?"
        assistant: idea_score = gen(int in 1..10)
        keep 2 by idea_score

        fork 2 as steps:
            user: "What would I do first?"
            assistant: step = gen(max_tokens=32, temperature=0.6, top_p=0.8, stop="\n")
            user: "How easy is that, from 1 to 10?"
            assistant: step_score = gen(int in 1..10)
            keep 1 by step_score
        adopt steps[0]
        total = idea_score + step_score

    best = 0 if ideas[0].total >= ideas[1].total else 1
    adopt ideas[best]
    return Plan(idea=idea, step=step, score=total)
