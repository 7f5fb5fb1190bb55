"""What is said of a program that is wrong: texts and the places in them, one function a kind of fault, how a fault is
shown, and the page of every code (`codes/`).

May import: nothing of ours.
"""
