program p():
    gen(schema "missing.json")
    gen(grammar "../../missing.lark")
    gen(schema "PL408_file.pl")
#! 2:9 PL408 there is no file `missing.json`
#! 3:9 PL408 `../../missing.lark` lies outside the folder of the program
#! 4:9 PL408 `PL408_file.pl` is no JSON: Expecting value: line 1 column 1 (char 0)
