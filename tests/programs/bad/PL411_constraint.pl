program main():
    x = gen(schema "unsupported.json")
    y = gen(grammar "broken.lark")
    z = gen(/[ab]{2}/)
    return [x, y, z]
#! 2:13 PL411 "uniqueItems" of a JSON Schema can't be enforced but where the items have at most 5 values
#! 3:13 PL411 unknown name: "missing"
