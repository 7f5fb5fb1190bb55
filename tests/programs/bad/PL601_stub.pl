program p(ticket: str, urgent: bool):
    "Which team owns this? ${ticket} Urgent: ${urgent}"
    gen(max_tokens=5)
#! 1:9 PL601 warning: type checkers are told what this file said before: `PL601_stub_pl.pyi` is stale [write it anew: `promptlang stubs FILE`]
