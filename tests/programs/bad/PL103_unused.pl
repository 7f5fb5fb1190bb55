program p(ticket: str, tone: str) -> str:
    user: "Ticket: ${ticket}"
    assistant: answer = gen()
    assistant: team = gen()
    fork 2 as drafts:
        user: "Again"
    return team
#! 1:24 PL103 warning: `tone` is never used [use it, or drop it]
#! 3:16 PL103 warning: `answer` is never used [drop `answer =`]
#! 5:15 PL103 warning: `drafts` is never used
