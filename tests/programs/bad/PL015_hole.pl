type A = "x${1}"

program p(x: str):
    "Hello ${}"
    role "x${x}": "Hello"
#! 1:10 PL015 a type is fixed text, so nothing can be filled in
#! 4:12 PL015 `${}` holds no expression [write `\${}` for the text `${}`]
#! 5:10 PL015 the name of a role is fixed text, so nothing can be filled in
