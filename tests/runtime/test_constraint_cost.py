"""What constraints cost beside the model."""

import json
import time
from dataclasses import dataclass

import pytest
import torch
from schema_corpus import SCHEMAS

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint, Mask, State
from promptlang.grammar.shapes import Schema
from promptlang.grammar.vocabulary import Vocabulary
from promptlang.runtime.engine import Engine
from promptlang.runtime.models import embedded
from promptlang.runtime.models.loading import load
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GenerateTokens
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.usage import Usage


class Watch:
    """Processor time of this thread, in seconds, between `with` and its end."""

    seconds = 0.0

    def __enter__(self) -> None:
        self._started = time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.thread_time() - self._started


@dataclass
class WatchedState:
    inner: State
    watch: Watch

    @property
    def vocabulary(self) -> Vocabulary:
        return self.inner.vocabulary

    def mask(self) -> Mask:
        with self.watch:
            return self.inner.mask()

    def forced(self) -> list[int]:
        with self.watch:
            return self.inner.forced()

    def can_end(self) -> bool:
        with self.watch:
            return self.inner.can_end()

    def is_done(self) -> bool:
        with self.watch:
            return self.inner.is_done()

    def advance(self, token: int) -> None:
        with self.watch:
            self.inner.advance(token)

    def rollback(self, count: int) -> None:
        self.inner.rollback(count)

    def fork(self) -> State:
        return WatchedState(self.inner.fork(), self.watch)


@dataclass
class Watched:
    inner: Constraint
    watch: Watch
    engine: str = "watched"

    def start(self) -> State:
        return WatchedState(self.inner.start(), self.watch)


@pytest.mark.slow
@pytest.mark.skipif(embedded.find_gguf() is None, reason=f"needs {embedded.PACKAGE}")
def test_masks_and_advances_of_sixteen_siblings_take_under_a_twentieth_of_a_step() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    engine = Engine(load())
    constraints, steps = Watch(), Watch()
    constraint = Watched(compile_constraint(Schema(json.dumps(SCHEMAS[0])), engine.vocabulary), constraints)
    prompt = engine.new_prompt()
    prompt.add("A support ticket as JSON:\n")
    prompt.flush()
    for seed in range(16):
        engine.submit(
            GenerateTokens(
                prompt.fork(),
                RandomStream(seed),
                Usage(),
                max_tokens=60,
                constraint=constraint,
                sampling=Sampling(temperature=1.0),
            )
        )
    with steps:
        while engine.step():
            pass
    torch.set_num_threads(threads)
    assert constraints.seconds < steps.seconds / 20
