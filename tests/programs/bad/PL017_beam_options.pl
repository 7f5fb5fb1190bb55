program p():
    beam depth=2 width=3 by 1 as paths:
        pass
#! 2:5 PL017 a beam needs `depth=`, `width=` and `branch=`, once each
