user: "Hello"
x = 3

program p():
    pass
#! 1:1 PL013 `user` can't stand outside a declaration [a file holds `program`, `fragment`, `record`, `type`, `const`, `tool` and `import`; statements stand inside a program]
#! 2:1 PL013 `x` can't stand outside a declaration [a file holds `program`, `fragment`, `record`, `type`, `const`, `tool` and `import`; statements stand inside a program]
