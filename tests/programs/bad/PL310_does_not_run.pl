program p(x: int):
    require x > 3 else retry 2
    beam depth=2 width=2 branch=2 by x as paths:
        "step"
#! 2:5 PL310 `require` does not run in this version
#! 3:5 PL310 `beam` does not run in this version
