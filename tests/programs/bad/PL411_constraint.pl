program main():
    x = gen(schema "unsupported.json")
    y = gen(grammar "broken.lark")
    z = gen(/[ab]{2}/)
    return [x, y, z]
#! 2:13 PL411 the keyword "uniqueItems" of a JSON Schema can't be enforced
#! 3:13 PL411 unknown name: "missing"
