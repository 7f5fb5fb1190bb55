program p(x: int):
    log x
	log x
#! 3:1 PL004 tabs and spaces are mixed in one block [indent all its lines alike]
