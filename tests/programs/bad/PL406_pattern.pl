type A = /[a-/
type B = /(ab/
#! 1:10 PL406 this pattern is no regular expression: unterminated character set at position 0
#! 2:10 PL406 this pattern is no regular expression: missing ), unterminated subpattern at position 0
