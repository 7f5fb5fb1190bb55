program p(x: str):
    "Hello ${x}
    "Dear ${x"
    log x
#! 2:5 PL005 this string is not closed [end it with "]
#! 3:5 PL005 this string is not closed [close every `${` with `}` on its line, or write `\${` for the text `${`]
