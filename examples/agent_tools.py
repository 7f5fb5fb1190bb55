"""The tools of agent.pl: a small shop's stock, its calculator and its calendar."""

STOCK = {"apples": 14, "eggs": 3, "lemons": 8, "pears": 0}
OPENING = {"Monday": "closed", "Saturday": "9 to 13", "Sunday": "closed"}


def stock(item):
    """How many of an item there are."""
    return STOCK[item]


def multiply(first, second):
    """The product of two numbers."""
    return first * second


def hours(day):
    """When the shop is open."""
    return OPENING.get(day, "8 to 18")
