program p(ticket: str):
    user: "Ticket: ${tikcet}"
    log True
    log lenght(ticket)
    use helo()
#! 2:22 PL101 unknown name `tikcet` [did you mean `ticket`?]
#! 3:9 PL101 unknown name `True` [did you mean `true`?]
#! 4:9 PL101 unknown name `lenght` [did you mean `len`?]
#! 5:5 PL101 unknown name `helo`
