program p():
    user: "Hello"
    "and goodbye"
    x = gen()
    log x
#! 3:5 PL306 warning: this stands between turns, so it belongs to none [put it in a turn, such as `user:`]
#! 4:5 PL306 warning: this stands between turns, so it belongs to none [put it in a turn, such as `user:`]
