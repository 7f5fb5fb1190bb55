record Node:
    name: str
    next: Node


record Tree:
    name: str
    children: list[Tree]
#! 1:8 PL407 no text can hold a whole Node: it always contains another [make the inner one `| none`, or a list]
