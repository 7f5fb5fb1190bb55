"""Whatever computes attention, the engine above it is the same, and gives the same."""

import ast
from typing import Any

import pytest
import torch
from places import ROOT
from tiny_engine import prompt_of, tiny_tokenizer
from tiny_models import tiny_network

from promptlang.kernels.reference import ReferenceAttention
from promptlang.runtime.engine import Engine
from promptlang.runtime.models.lean_model import LeanConfig, LeanModel
from promptlang.runtime.models.loading import LoadedModel
from promptlang.runtime.models.model import Model
from promptlang.runtime.models.transformers_model import TransformersModel
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GeneratedTokens, GenerateTokens
from promptlang.runtime.usage import Usage

PROMPTS = [
    "The sea is blue",
    "The sea is blue because",
    "The sea is",
    "Another text, longer than the window of a layer",
]

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 6},
    "gemma2": {"head_dim": 16, "sliding_window": 8, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 16},
    "gpt_oss": {"head_dim": 16, "sliding_window": 8, "num_local_experts": 2, "num_experts_per_tok": 1},
}
"""Plain attention, a window, a window beside soft caps, a window beside sinks."""


class CountingAttention(ReferenceAttention):
    """The reference, and how often each of its methods ran."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.planned = self.stored = self.attended = 0

    def plan(self, *args: Any) -> Any:
        self.planned += 1
        return super().plan(*args)

    def store(self, *args: Any) -> None:
        self.stored += 1
        super().store(*args)

    def attend(self, *args: Any, **scoring: Any) -> torch.Tensor:
        self.attended += 1
        return super().attend(*args, **scoring)


def transformers_model(family: str) -> Model:
    size = tiny_tokenizer().vocab_size
    return TransformersModel(tiny_network(family, vocab_size=size, **FAMILIES[family]))


def lean_model(family: str) -> Model:
    network = tiny_network(family, vocab_size=tiny_tokenizer().vocab_size, **FAMILIES[family])
    config = LeanConfig.read(network.config.to_dict())
    assert config is not None
    return LeanModel(config, network.state_dict())


def answers(engine: Engine) -> list[list[int]]:
    """Greedy, all prompts at once; and once more, from the cache."""
    tokens = []
    for _ in range(2):
        requests = [GenerateTokens(prompt_of(engine, text), RandomStream(0), Usage(), max_tokens=8) for text in PROMPTS]
        submitted = [engine.submit(request) for request in requests]
        while engine.step():
            pass
        for answer in submitted:
            assert isinstance(answer.result, GeneratedTokens)
            tokens.append(answer.result.tokens)
    return tokens


@pytest.mark.parametrize(
    ("make", "family"),
    [(lean_model, "llama"), (lean_model, "mistral"), *((transformers_model, family) for family in FAMILIES)],
)
def test_the_same_engine_runs_on_the_reference(make: Any, family: str) -> None:
    loaded = LoadedModel(make(family), tiny_tokenizer(), family)
    backend = CountingAttention(loaded.model.device)
    engine = Engine(loaded, backend=backend)
    assert answers(engine) == answers(Engine(loaded))
    passes = engine.usage.forwards
    assert (backend.planned, backend.stored, backend.attended) == (passes, 2 * passes, 2 * passes)


@pytest.mark.slow
def test_nothing_above_knows_which_backend_runs() -> None:
    seam = {"promptlang.kernels.backend", "promptlang.kernels.lane"}
    known = {
        node.module
        for folder in ("runtime", "promptlang")
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("promptlang.kernels")
    }
    assert known <= seam
