"""What the prompts of a program begin with, and when they will begin again: the cache keeps it until then.

A program's constant beginning belongs to no live prompt between two calls of it. Its callers know that they will call
it again (`passes/next_calls.py`), and the first prompts of its calls show what they have in common.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping

import numpy as np

from promptlang.runtime.cache.expected_read import ExpectedRead
from promptlang.runtime.cache.prefix_cache import Namespace, TokenIds
from promptlang.runtime.engine import Engine

_UNKNOWN: TokenIds = np.empty(0, np.int32)


class Heads:
    """The heads of all programs in a namespace: what each one's prompts begin with.

    Args:
        engine: whose cache is told.
        namespace: of the prompts.
    """

    def __init__(self, engine: Engine, namespace: Namespace = ()) -> None:
        self._engine = engine
        self._namespace = namespace
        self._heads: dict[str, TokenIds] = {}
        self._reads: defaultdict[str, dict[Hashable, ExpectedRead]] = defaultdict(dict)

    def began(self, program: str, tokens: TokenIds) -> None:
        """A prompt of the program is in the cache now.

        Args:
            program: its name.
            tokens: int32 [N], what the prompt began with.
        """
        known = self._heads.get(program, tokens)
        shorter = min(len(known), len(tokens))
        differs = np.flatnonzero(known[:shorter] != tokens[:shorter])
        self._heads[program] = known[: differs[0] if len(differs) else shorter]
        for reader, read in list(self._reads[program].items()):
            self._expect(program, reader, read.at)

    def expect(self, reader: Hashable, next_calls: Mapping[str, int]) -> None:
        """Say which programs a reader will call next; what it said before is void.

        Args:
            reader: who will.
            next_calls: by program, how many model calls from now.
        """
        for program, distance in next_calls.items():
            self._expect(program, reader, self._engine.clock + distance)
        for program, reads in self._reads.items():
            if reader in reads and program not in next_calls:
                reads.pop(reader).settle()

    def _expect(self, program: str, reader: Hashable, at: int) -> None:
        head = self._heads.get(program, _UNKNOWN)
        before = self._reads[program].get(reader)
        self._reads[program][reader] = self._engine.expect(head, at, self._namespace)
        if before is not None:
            before.settle()
