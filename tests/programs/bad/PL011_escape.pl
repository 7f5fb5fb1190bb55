program p():
    "a \d b"
    "\x4"
    "\ud800"
    r"\d is fine"
#! 2:8 PL011 warning: `\d` is no escape, so the backslash stays [write `\\d`, or put `r` before the string]
#! 3:6 PL011 `\x` is no character
#! 4:6 PL011 `\ud800` is no character
