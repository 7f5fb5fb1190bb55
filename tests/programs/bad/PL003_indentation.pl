program p(x: int):
    log x
        log x
    if x:
            log x
        log x
#! 3:1 PL003 this line is indented, but nothing above it opens a block
#! 6:1 PL003 this line's indentation fits no block above it
