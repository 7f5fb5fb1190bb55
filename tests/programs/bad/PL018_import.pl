import "missing.pl" as missing
import "../../conftest.py" as outside
import "PL018_import.pl" as itself


program p():
    pass
#! 1:1 PL018 there is no file `missing.pl`
#! 2:1 PL018 `../../conftest.py` lies outside the folder of the program
#! 3:1 PL018 `PL018_import.pl` imports this file in turn: imports can't go in a circle
