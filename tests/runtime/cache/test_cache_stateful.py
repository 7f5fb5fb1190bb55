"""The tree against a model that knows every cached prefix by itself, under any order of operations and every policy.

The model keeps one entry a prefix and evicts one token at a time, so it knows no edges, no splits and no queue. KV is
played by a table that says, for each slot, which prefix was written there last: reading a path must always give the
prefixes of that path.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from promptlang.runtime.cache.eviction import POLICIES
from promptlang.runtime.cache.integrity import check_tree
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator

POOL = 20
NAMESPACES = [(), ("a", "bc"), ("ab", "c")]

Tokens = tuple[int, ...]
Place = tuple[tuple[str, ...], Tokens]
"""A prefix in its namespace."""

token_lists = st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple)


def keys(tokens: Tokens) -> np.ndarray:
    return np.array(tokens, np.int32)


@dataclass
class Entry:
    """What the model knows of one cached prefix: of its last token, and of the point behind it."""

    born: int
    last_use: int
    hits: int = 1
    locks: int = 0
    is_spent: bool = False


@dataclass
class Claim:
    """A live prompt (`at` None) or an expected use; moves to what is left of its path."""

    node: RadixNode
    place: Place
    at: int | None = None


MODEL_KEYS: dict[str, Callable[[Entry, list[int]], tuple[int, ...]]] = {
    "lru": lambda entry, uses: (entry.last_use,),
    "lfu": lambda entry, uses: (entry.hits, entry.last_use),
    "fifo": lambda entry, uses: (entry.born,),
    "program": lambda entry, uses: (
        (2, -min(uses), entry.last_use) if uses else (0 if entry.is_spent else 1, entry.last_use, 0)
    ),
}


@dataclass
class CacheModel:
    """All cached prefixes."""

    policy: str
    entries: dict[Place, Entry] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    clock: int = 0

    def cached(self, place: Place) -> int:
        namespace, tokens = place
        lengths = range(len(tokens) + 1)
        return max((end for end in lengths if (namespace, tokens[:end]) in self.entries), default=0)

    def touch(self, place: Place, start: int, end: int) -> None:
        self.clock += 1
        for prefix in _prefixes(place, start, end):
            entry = self.entries[prefix]
            entry.last_use, entry.hits, entry.is_spent = self.clock, entry.hits + 1, False

    def add(self, place: Place, start: int) -> None:
        for prefix in _prefixes(place, start, len(place[1])):
            self.entries[prefix] = Entry(self.clock, self.clock)

    def lock(self, place: Place) -> None:
        for prefix in _prefixes(place, 0, len(place[1])):
            self.entries[prefix].locks += 1

    def unlock(self, place: Place) -> None:
        self.clock += 1
        for prefix in _prefixes(place, 0, len(place[1])):
            self.entries[prefix].locks -= 1
            self.entries[prefix].last_use = self.clock

    def claim(self, claim: Claim) -> None:
        self.claims.append(claim)
        if claim.place in self.entries:
            self.entries[claim.place].is_spent = False

    def give_up(self, claim: Claim) -> None:
        self.claims = [other for other in self.claims if other is not claim]
        if claim.place in self.entries:
            self.entries[claim.place].is_spent = not self._claims_on(claim.place)

    def evict(self, count: int) -> int:
        freed = 0
        while freed < count and (leaves := self._evictable_leaves()):
            self._remove(min(leaves, key=self._key))
            freed += 1
        return freed

    def _evictable_leaves(self) -> list[Place]:
        parents = {(namespace, tokens[:-1]) for namespace, tokens in self.entries}
        return [place for place, entry in self.entries.items() if not entry.locks and place not in parents]

    def _key(self, place: Place) -> tuple[object, ...]:
        claims = self._claims_on(place)
        uses = [claim.at for claim in claims if claim.at is not None]
        return (len(uses) < len(claims), *MODEL_KEYS[self.policy](self.entries[place], uses))

    def _remove(self, place: Place) -> None:
        namespace, tokens = place
        above = (namespace, tokens[:-1])
        gone = self.entries.pop(place)
        for claim in self._claims_on(place):
            claim.place = above
        if above in self.entries:
            left = self.entries[above]
            left.is_spent = (left.is_spent or gone.is_spent) and not self._claims_on(above)

    def _claims_on(self, place: Place) -> list[Claim]:
        return [claim for claim in self.claims if claim.place == place]


def _prefixes(place: Place, start: int, end: int) -> Iterator[Place]:
    namespace, tokens = place
    return ((namespace, tokens[: length + 1]) for length in range(start, end))


@dataclass
class Request:
    """A prompt being computed: a locked path, then own slots, then tokens still to come."""

    namespace: tuple[str, ...]
    tokens: Tokens
    node: RadixNode
    base: int
    tail: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def computed(self) -> int:
        return self.base + len(self.tail)

    def place(self, end: int) -> Place:
        return self.namespace, self.tokens[:end]


class CacheMachine(RuleBasedStateMachine):
    """Requests come, compute, share, finish and vanish; the tree and the model must agree after each step."""

    @initialize(policy=st.sampled_from(list(POLICIES)))
    def set_up(self, policy: str) -> None:
        self.allocator = SlotAllocator(POOL)
        self.tree = RadixTree(self.allocator, POLICIES[policy])
        self.model = CacheModel(policy)
        self.requests: list[Request] = []
        self.written: dict[int, Place] = {}

    def pick_request(self, data: st.DataObject) -> Request:
        return self.requests[data.draw(st.integers(0, len(self.requests) - 1), label="request")]

    def pick_claim(self, data: st.DataObject) -> Claim:
        return self.model.claims[data.draw(st.integers(0, len(self.model.claims) - 1), label="claim")]

    # Requests ----------------------------------------------------------------------------------------

    @rule(namespace=st.sampled_from(NAMESPACES), tokens=token_lists, spare=st.integers(0, 1))
    def start_request(self, namespace: tuple[str, ...], tokens: Tokens, spare: int) -> None:
        self.start(namespace, tokens, len(tokens) - spare)

    def start(self, namespace: tuple[str, ...], tokens: Tokens, limit: int) -> Request:
        expected = self.model.cached((namespace, tokens[:limit]))
        assert self.tree.peek(keys(tokens), namespace) == self.model.cached((namespace, tokens))
        match = self.tree.match(keys(tokens), namespace, limit)
        assert match.length == expected
        assert tuple(self.tree.tokens_of(match.node).tolist()) == tokens[:expected]
        self.tree.lock(match.node)
        self.model.touch((namespace, tokens), 0, expected)
        self.model.lock((namespace, tokens[:expected]))
        request = Request(namespace, tokens, match.node, expected)
        self.requests.append(request)
        return request

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), count=st.integers(1, 4))
    def compute_chunk(self, data: st.DataObject, count: int) -> None:
        self.compute(self.pick_request(data), count)

    def compute(self, request: Request, count: int) -> None:
        count = min(count, len(request.tokens) - request.computed)
        if count > self.allocator.available:
            self.evict(count - self.allocator.available)
        slots = self.allocator.allocate(count)
        if slots is None:
            return
        for end, slot in enumerate(slots.tolist(), request.computed + 1):
            self.written[slot] = request.place(end)
        request.tail = np.concatenate([request.tail, slots])

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def share_computed(self, data: st.DataObject) -> None:
        self.commit(self.pick_request(data))

    def commit(self, request: Request) -> None:
        base, end = request.base, request.computed
        known = max(base, self.model.cached(request.place(end)))
        inserted = self.tree.insert(request.node, keys(request.tokens[base:end]), request.tail)
        assert inserted.duplicates.tolist() == request.tail[: known - base].tolist()
        self.model.touch(request.place(end), base, known)
        self.model.add(request.place(end), known)
        assert self.tree.peek(keys(request.tokens[:end]), request.namespace) == end
        self.tree.lock(inserted.node)
        self.tree.unlock(request.node)
        self.model.lock(request.place(end))
        self.model.unlock(request.place(base))
        request.node, request.base, request.tail = inserted.node, end, request.tail[:0]

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), stays=st.booleans())
    def end_anywhere(self, data: st.DataObject, stays: bool) -> None:
        """Cancelled in the middle, or finished."""
        self.end(self.pick_request(data), stays)

    @rule(namespace=st.sampled_from(NAMESPACES), tokens=token_lists, stays=st.booleans())
    def serve(self, namespace: tuple[str, ...], tokens: Tokens, stays: bool) -> None:
        """A whole request at once, as far as there is room."""
        request = self.start(namespace, tokens, len(tokens))
        self.compute(request, len(tokens))
        self.commit(request)
        self.end(request, stays)

    def end(self, request: Request, stays: bool) -> None:
        self.requests = [other for other in self.requests if other is not request]
        if stays:
            self.tree.hold(request.node)
            self.model.claim(Claim(request.node, request.place(request.base)))
        self.allocator.free(request.tail)
        self.tree.unlock(request.node)
        self.model.unlock(request.place(request.base))

    # Prompts and programs ----------------------------------------------------------------------------

    @precondition(lambda self: self.model.claims)
    @rule(data=st.data())
    def fork_prompt(self, data: st.DataObject) -> None:
        claim = self.pick_claim(data)
        self.tree.hold(claim.node)
        self.model.claim(Claim(claim.node, claim.place))

    @rule(namespace=st.sampled_from(NAMESPACES), tokens=token_lists)
    def look_up(self, namespace: tuple[str, ...], tokens: Tokens) -> None:
        """A match that nobody locks counts as a use all the same."""
        length = self.tree.match(keys(tokens), namespace).length
        assert length == self.model.cached((namespace, tokens))
        self.model.touch((namespace, tokens), 0, length)

    @rule(namespace=st.sampled_from(NAMESPACES), tokens=token_lists, at=st.integers(0, 5))
    def expect(self, namespace: tuple[str, ...], tokens: Tokens, at: int) -> None:
        match = self.tree.match(keys(tokens), namespace)
        self.model.touch((namespace, tokens), 0, match.length)
        self.tree.expect(match.node, at)
        self.model.claim(Claim(match.node, (namespace, tokens[: match.length]), at))

    @precondition(lambda self: self.model.claims)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        claim = self.pick_claim(data)
        if claim.at is None:
            self.tree.drop(claim.node)
        else:
            self.tree.settle(claim.node, claim.at)
        self.model.give_up(claim)

    @rule(count=st.integers(1, POOL))
    def evict(self, count: int) -> None:
        assert self.tree.evict(count) == self.model.evict(count)

    @precondition(lambda self: not self.requests)
    @rule()
    def clear(self) -> None:
        self.tree.clear()
        self.model.evict(POOL)
        assert self.allocator.available == POOL

    # What must hold ----------------------------------------------------------------------------------

    @invariant()
    def the_books_are_right(self) -> None:
        check_tree(self.tree, sum(len(request.tail) for request in self.requests))

    @invariant()
    def the_tree_knows_what_the_model_knows(self) -> None:
        seen: dict[Place, Entry] = {}
        for namespace, node, tokens in self._edges():
            ends = range(len(tokens) - len(node.tokens) + 1, len(tokens) + 1)
            for end, slot in zip(ends, node.slots.tolist(), strict=True):
                place = (namespace, tokens[:end])
                assert self.written[slot] == place, "stale KV"
                is_spent = node.is_spent and end == len(tokens)
                seen[place] = Entry(node.born, node.last_use, node.hits, node.locks, is_spent)
        assert seen == self.model.entries

    @invariant()
    def what_runs_reads_its_own_prefix(self) -> None:
        for request in self.requests:
            path = [node.slots for node in self.tree.path(request.node)]
            slots = np.concatenate([*path, request.tail]).tolist()
            assert len(slots) == request.computed
            for end, slot in enumerate(slots, 1):
                assert self.written[slot] == request.place(end)

    def _edges(self) -> Iterator[tuple[tuple[str, ...], RadixNode, Tokens]]:
        for namespace in NAMESPACES:
            waiting = [self.tree.match(keys(()), namespace).node]
            self.model.clock += 1
            while waiting:
                node = waiting.pop()
                waiting += node.children.values()
                if node.parent is not None:
                    yield namespace, node, tuple(self.tree.tokens_of(node).tolist())

    def teardown(self) -> None:
        """After everything is released, nothing is locked and nothing has leaked."""
        if not hasattr(self, "tree"):
            return
        for request in self.requests:
            self.allocator.free(request.tail)
            self.tree.unlock(request.node)
        assert self.tree.locked == 0
        check_tree(self.tree, 0)
        self.tree.clear()
        assert self.allocator.available == POOL


@pytest.mark.slow
def test_the_tree_agrees_with_a_model_under_any_order_of_operations() -> None:
    machine_settings = settings(
        max_examples=300, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(CacheMachine, settings=machine_settings)
