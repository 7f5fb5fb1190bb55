"""Amounts of memory, as people write them."""

import re
from argparse import ArgumentTypeError

_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
}


def byte_count(text: str) -> int:
    """Bytes from `512MiB`, `1.5 GiB`, `500MB` or a plain number.

    Raises:
        ArgumentTypeError: it is none of these, or nothing.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text, re.ASCII | re.IGNORECASE)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ArgumentTypeError(f"{text!r} is no size; write it like 512MiB, 2GiB or 500MB")
    size = int(float(match[1]) * unit)
    if size == 0:
        raise ArgumentTypeError("0 bytes hold nothing")
    return size


def shown(size: int) -> str:
    """A size for people: `92 MB`."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"
