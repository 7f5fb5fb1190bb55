program p(x: int) -> str:
    if x > 3:
        return "large"
#! 1:9 PL211 this program may end without returning str
