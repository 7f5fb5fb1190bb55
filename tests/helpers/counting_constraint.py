"""A constraint that counts what it is asked."""

from collections import Counter
from dataclasses import dataclass, field

from promptlang.grammar.constraint import Constraint, State
from promptlang.grammar.vocabulary import Mask, Vocabulary


@dataclass
class CountingState:
    """A state whose forks count together with it."""

    inner: State
    asked: Counter[str] = field(default_factory=Counter)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.inner.vocabulary

    def mask(self) -> Mask:
        self.asked["mask"] += 1
        return self.inner.mask()

    def forced(self) -> list[int]:
        self.asked["forced"] += 1
        return self.inner.forced()

    def can_end(self) -> bool:
        self.asked["can_end"] += 1
        return self.inner.can_end()

    def is_done(self) -> bool:
        self.asked["is_done"] += 1
        return self.inner.is_done()

    def advance(self, token: int) -> None:
        self.asked["advance"] += 1
        self.inner.advance(token)

    def rollback(self, count: int) -> None:
        self.asked["rollback"] += 1
        self.inner.rollback(count)

    def fork(self) -> State:
        self.asked["fork"] += 1
        return CountingState(self.inner.fork(), self.asked)


@dataclass
class CountingConstraint:
    """A constraint whose states count together."""

    inner: Constraint
    asked: Counter[str] = field(default_factory=Counter)

    def start(self) -> State:
        return CountingState(self.inner.start(), self.asked)
