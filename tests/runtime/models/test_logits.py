"""Logits are computed as far as they are asked for, and are the same however they are asked for."""

import pytest
import torch
from tiny_engine import prompt_of, tiny_engine

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.shapes import Int
from promptlang.runtime.models.logits import HeadLogits, KnownLogits, Logits
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GeneratedTokens, GenerateTokens
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.usage import Usage

HIDDEN = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
WEIGHT = torch.randn(40, 16, generator=torch.Generator().manual_seed(1))
EXPECTED = HIDDEN @ WEIGHT.T


def head(x: torch.Tensor) -> torch.Tensor:
    return x @ WEIGHT.T


def no_head(x: torch.Tensor) -> torch.Tensor:
    raise AssertionError("the whole head ran")


@pytest.mark.parametrize(
    "logits", [KnownLogits(EXPECTED), HeadLogits(HIDDEN, head, None), HeadLogits(HIDDEN, head, WEIGHT)]
)
def test_rows_and_tokens_are_parts_of_the_whole(logits: Logits) -> None:
    torch.testing.assert_close(logits.whole(), EXPECTED)
    torch.testing.assert_close(logits.rows([3, 1]), EXPECTED[[3, 1]])
    torch.testing.assert_close(logits.rows(range(5)), EXPECTED)
    torch.testing.assert_close(logits.rows([4, 3, 2, 1, 0]), EXPECTED.flip(0))
    torch.testing.assert_close(logits.tokens(2, torch.tensor([7, 0, 39])), EXPECTED[2, [7, 0, 39]])


def test_a_few_tokens_do_not_run_the_head() -> None:
    logits = HeadLogits(HIDDEN, no_head, WEIGHT)
    torch.testing.assert_close(logits.tokens(4, torch.tensor([5])), EXPECTED[4, [5]])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_is_the_same_whether_its_likelihood_is_wanted_or_not(temperature: float) -> None:
    answers = []
    for wants_logprobs in (False, True):
        engine = tiny_engine()
        request = GenerateTokens(
            prompt_of(engine, "How many?"),
            RandomStream(1),
            Usage(),
            max_tokens=8,
            sampling=Sampling(temperature),
            constraint=compile_constraint(Int(1, 5000), engine.vocabulary),
            wants_logprobs=wants_logprobs,
        )
        answer = engine.submit(request)
        while engine.step():
            pass
        assert isinstance(answer.result, GeneratedTokens)
        answers.append(answer.result)
    without, with_logprobs = answers
    assert without.tokens == with_logprobs.tokens
    assert without.logprobs == []
    assert len(with_logprobs.logprobs) >= len(with_logprobs.tokens)
