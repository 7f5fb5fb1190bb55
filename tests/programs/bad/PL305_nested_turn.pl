fragment greet():
    user: "Hello"


program p():
    user:
        "One"
        assistant: "Two"
        use greet()
#! 8:9 PL305 a turn can't stand inside another turn
#! 9:9 PL305 a turn can't stand inside another turn
