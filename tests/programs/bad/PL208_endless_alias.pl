type A = B
type B = list[A]
#! 1:6 PL208 the type `A` is made of itself [only a record can contain itself]
