program p():
    team = select("billing", "network")
    if team == "biling":
        log team
#! 3:8 PL210 warning: "billing" | "network" and "biling" are never equal
