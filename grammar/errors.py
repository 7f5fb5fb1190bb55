"""What goes wrong with constraints; apart from `constraint`, so that a program is checked without loading numpy."""


class ConstraintError(Exception):
    """A specification that can't be compiled: `str()` says what and why, in one sentence for the program's author."""
