program p():
    keep first 1
#! 2:5 PL303 `keep` stands outside a fork
