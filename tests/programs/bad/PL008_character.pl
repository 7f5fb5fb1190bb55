program p(x: int):
    y = x && 2
    log !x
    log x; log y
    log “hello”
#! 2:11 PL008 `&` means nothing here [write `and`]
#! 3:9 PL008 `!` means nothing here [write `not`]
#! 4:10 PL008 `;` means nothing here [write a new line]
#! 5:9 PL008 `“` means nothing here [write `"`]
