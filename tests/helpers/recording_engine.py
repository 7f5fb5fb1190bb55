"""A tiny engine that takes down its model calls, to be replayed against other caches."""

import numpy as np
from tiny_engine import kv_bytes, tiny_loaded

from promptlang.runtime.cache.prefix_cache import TokenIds
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.requests import Answer, GeneratedTokens, Request
from promptlang.runtime.simulation.simulator import Call


class RecordingEngine(Engine):
    """Takes down every call when its answer is there.

    Args:
        tokens: the room of its cache.
        policy: what goes first for room.

    Attributes:
        calls: in the order in which they ended.
    """

    def __init__(self, tokens: int, policy: str) -> None:
        super().__init__(tiny_loaded(), EngineOptions(kv_bytes=kv_bytes(tokens), policy=policy))
        self.calls: list[Call] = []
        self._asked: list[tuple[Answer, TokenIds]] = []

    def submit(self, request: Request) -> Answer:
        answer = super().submit(request)
        if not answer.is_done:
            self._asked.append((answer, np.array(request.prompt.flush(), np.int32)))
        return answer

    def step(self) -> bool:
        went = super().step()
        self.calls += [_call(answer, prompt) for answer, prompt in self._asked if answer.result is not None]
        self._asked = [(answer, prompt) for answer, prompt in self._asked if not answer.is_done]
        return went


def _call(answer: Answer, prompt: TokenIds) -> Call:
    """The last token of an answer is never computed, so it isn't cached."""
    written = answer.result.tokens[:-1] if isinstance(answer.result, GeneratedTokens) else []
    return Call(prompt, np.array(written, np.int32))
