"""How large the tiles of the Triton kernels are: a table, so that nothing is searched for while a model waits.

Each entry was compiled ahead of time: none spills registers, and each fits into the shared memory of its devices.
"""

from typing import NamedTuple

import torch

NARROW = 16
"""The fewest rows that a tensor core multiplies; a row is one head of a query."""

WIDE = 64
"""Rows that give a prompt's tokens, or many siblings, enough work for each key that is read."""


class Tile(NamedTuple):
    """A program's share.

    Attributes:
        rows, keys: of one product, powers of two.
        warps: that compute it.
        stages: of loads under way.
    """

    rows: int
    keys: int
    warps: int = 4
    stages: int = 2


class Tiles(NamedTuple):
    """For items of few rows, and of many."""

    narrow: Tile
    wide: Tile


class Heads(NamedTuple):
    """What kernels know of a model's attention.

    Attributes:
        groups: query heads that share a head of keys.
        size: of a head.
        dtype: of queries, keys and values.
    """

    groups: int
    size: int
    dtype: torch.dtype


def tiles(heads: Heads, major: int) -> Tiles:
    """The table.

    Args:
        heads: of the model.
        major: of the device's compute capability.
    """
    rows = max(NARROW, next_power(heads.groups))
    # As many keys as keep loads of one size under way, whatever a head's size.
    keys = 8192 // max(64, next_power(heads.size))
    if heads.dtype is torch.float32:  # no tensor core keeps its precision: the products are the processor's own
        tile = Tile(rows, keys // 2, warps=8)
        return Tiles(tile, tile)
    # Before Hopper a product's operands lie in registers, and those of four warps are too few.
    return Tiles(Tile(rows, keys), Tile(max(WIDE, rows), min(keys, 64), warps=8 if major < 9 else 4))


def next_power(number: int) -> int:
    """The least power of two that is not less."""
    return 1 << (number - 1).bit_length()
