"""When Python looks for garbage: hardly while a command starts, for what comes in then stays."""

import gc

_OBJECTS_OF_A_START = 1_000_000
"""More than the modules of a start hold; Python would look through them hundreds of times."""

_USUAL = gc.get_threshold()


def put_off() -> None:
    """Let a start be over before garbage is looked for, unless it makes very much."""
    gc.set_threshold(_OBJECTS_OF_A_START)


def look_from_now_on() -> None:
    """Look for garbage as ever, but not among what is here by now: it stays to the end."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
