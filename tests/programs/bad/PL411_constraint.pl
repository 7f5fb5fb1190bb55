program main():
    x = gen(schema "unsupported.json")
    y = gen(grammar "broken.lark")
    z = gen(/[ab]{2}/)
    return [x, y, z]
#! 2:13 PL411 unsupported.json, $.properties.scores: "contains" can't be enforced without "maxItems" up to 12
#! 3:13 PL411 broken.lark, line 1, `start`: nothing is called `missing` here: write a rule or a token of that name
