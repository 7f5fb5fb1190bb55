"""What a constraint forces is appended without the model, and changes nothing but the number of passes."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schema_corpus import SCHEMAS
from tiny_engine import prompt_of, tiny_engine

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint, State
from promptlang.grammar.shapes import Bool, Constant, Field, Int, Record, Schema, Shape
from promptlang.grammar.vocabulary import Mask, Vocabulary
from promptlang.runtime.engine import Engine
from promptlang.runtime.healing import heal
from promptlang.runtime.models import embedded
from promptlang.runtime.models.loading import load
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GeneratedTokens, GenerateTokens
from promptlang.runtime.usage import Usage


@dataclass
class AskedState:
    """A state that leaves every token to the model, the forced ones too: where there is one, it is the only choice."""

    inner: State

    @property
    def vocabulary(self) -> Vocabulary:
        return self.inner.vocabulary

    def mask(self) -> Mask:
        forced = self.inner.forced()
        return self.vocabulary.mask(forced[:1]) if forced else self.inner.mask()

    def forced(self) -> list[int]:
        return []

    def can_end(self) -> bool:
        return self.inner.can_end()

    def is_done(self) -> bool:
        return self.inner.is_done()

    def advance(self, token: int) -> None:
        self.inner.advance(token)

    def rollback(self, count: int) -> None:
        self.inner.rollback(count)

    def fork(self) -> State:
        return AskedState(self.inner.fork())


@dataclass
class Asked:
    """A constraint without jump-forward."""

    inner: Constraint
    engine: str = "asked"

    def start(self) -> State:
        return AskedState(self.inner.start())


def write(engine: Engine, constraint: Constraint) -> tuple[GeneratedTokens, Usage]:
    usage = Usage()
    prompt = prompt_of(engine, "Here is the record as JSON:\n")
    answer = engine.submit(GenerateTokens(prompt, RandomStream(0), usage, max_tokens=200, constraint=constraint))
    while engine.step():
        pass
    engine.check()
    assert isinstance(answer.result, GeneratedTokens), answer.error
    return answer.result, usage


def compare(engine: Engine, schema: dict[str, Any]) -> tuple[Usage, Usage]:
    constraint = compile_constraint(Schema(json.dumps(schema)), engine.vocabulary)
    jumping, jumped = write(engine, constraint)
    asking, asked = write(engine, Asked(constraint))
    assert jumping.text == asking.text
    assert jumping.tokens == asking.tokens
    assert jumping.is_whole
    Draft202012Validator(schema).validate(json.loads(jumping.text))
    assert asked.forced_tokens == 0
    assert jumped.forced_tokens + jumped.generated_tokens == asked.generated_tokens == len(asking.tokens)
    return jumped, asked


def test_the_corpus_is_fifty_schemas() -> None:
    assert len({json.dumps(schema) for schema in SCHEMAS}) == 50


SOME = SCHEMAS[::3]
"""Enough to show it on a model that takes its time, and where time is short."""


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(schema, marks=() if schema in SOME else pytest.mark.slow, id=json.dumps(schema))
        for schema in SCHEMAS
    ],
)
def test_an_answer_is_the_same_with_and_without_jump_forward(schema: dict[str, Any]) -> None:
    compare(tiny_engine(), schema)


def test_a_pass_is_saved_for_every_run_of_forced_tokens() -> None:
    jumped, asked = compare(tiny_engine(), SCHEMAS[0])
    assert jumped.forced_tokens > 10
    assert jumped.forwards < asked.forwards


@pytest.mark.slow
@pytest.mark.skipif(embedded.find_gguf() is None, reason=f"needs {embedded.PACKAGE}")
def test_the_embedded_models_answers_are_the_same_with_and_without_jump_forward() -> None:
    engine = Engine(load())
    pairs = [compare(engine, schema) for schema in SOME]
    assert sum(jumped.forced_tokens for jumped, _ in pairs) > 0
    assert sum(jumped.forwards for jumped, _ in pairs) < sum(asked.forwards for _, asked in pairs)


# Before the first pass ---------------------------------------------------------------------------------------


RECORD = Record("R", (Field("name", Bool()), Field("n", Int(1, 99))))


def answer_of(engine: Engine, shape: Shape, text: str, **options: Any) -> tuple[GeneratedTokens, Usage, TokenPrompt]:
    """A typed answer behind a text, healed where it can be."""
    usage, prompt = Usage(), prompt_of(engine, text)
    head = heal(prompt, engine.vocabulary)
    constraint = compile_constraint(shape, engine.vocabulary, prefix=head.decode())
    if options.pop("asks", False):
        constraint = Asked(constraint)
    options = {"max_tokens": 40, "constraint": constraint, "withdrawn": head, **options}
    answer = engine.submit(GenerateTokens(prompt, RandomStream(0), usage, **options))
    while engine.step():
        pass
    engine.check()
    assert answer.result is not None, answer.error
    return answer.result, usage, prompt


def anew_of(text: str, tokens: list[int]) -> int:
    """How many of an answer's tokens only write anew what was withdrawn of the text."""
    engine = tiny_engine()
    head = heal(prompt_of(engine, text), engine.vocabulary)
    written = [b"".join(engine.tokenizer.token_bytes[token] for token in tokens[:end]) for end in range(1, 9)]
    return sum(len(some) <= len(head) for some in written)


@pytest.mark.parametrize("text", ["Here is the record: ", "The fox", "Here is the record:\n", ""])
def test_a_forced_beginning_costs_no_pass_of_its_own(text: str) -> None:
    jumped, usage, prompt = answer_of(tiny_engine(), RECORD, text, wants_logprobs=True)
    asked, plain, other = answer_of(tiny_engine(), RECORD, text, wants_logprobs=True, asks=True)
    assert (jumped.text, jumped.tokens, prompt.flush()) == (asked.text, asked.tokens, other.flush())
    assert jumped.text.startswith('{"name"')
    assert usage.forced_tokens + usage.forwards == plain.forwards
    assert (usage.requested_tokens, usage.computed_tokens) == (plain.requested_tokens, plain.computed_tokens)
    assert len(jumped.logprobs) == len(asked.logprobs) == len(jumped.tokens) - anew_of(text, jumped.tokens)
    assert jumped.logprobs[0] == 0.0 != asked.logprobs[0]
    sampled = [(mine, theirs) for mine, theirs in zip(jumped.logprobs, asked.logprobs, strict=True) if mine]
    assert len(sampled) == usage.generated_tokens
    assert [mine for mine, _ in sampled] == pytest.approx([theirs for _, theirs in sampled], abs=1e-4)


def test_the_prompt_before_a_forced_beginning_is_computed_once_for_all_branches() -> None:
    engine, usage = tiny_engine(), Usage()
    constraint = compile_constraint(RECORD, engine.vocabulary)
    for seed in range(4):
        prompt = prompt_of(engine, "The quick brown fox jumps over the lazy dog.\n")
        length = len(prompt.flush())
        engine.submit(GenerateTokens(prompt, RandomStream(seed), usage, max_tokens=40, constraint=constraint))
    while engine.step():
        pass
    engine.check()
    assert usage.requested_tokens == 4 * length
    assert usage.computed_tokens <= length + 3


@pytest.mark.parametrize("text", ["The answer is ", "The answer is:\n"])
@pytest.mark.parametrize("wants_logprobs", [False, True])
def test_an_answer_that_is_forced_whole_asks_no_model(text: str, wants_logprobs: bool) -> None:
    engine = tiny_engine()
    shown: list[str] = []
    result, usage, prompt = answer_of(
        engine, Constant("the dog"), text, on_text=shown.append, wants_logprobs=wants_logprobs
    )
    assert (result.text, result.finish, result.is_whole, shown) == ("the dog", "done", True, ["the dog"])
    assert (usage.forwards, usage.calls, usage.requested_tokens, usage.optimal_tokens) == (0, 0, 0, 0)
    assert usage.forced_tokens == len(result.tokens) > 0
    assert engine.tokenizer.decode(prompt.flush()) == text + "the dog"
    assert engine.cache.used == 0
    prompt.add(" sleeps")
    engine.submit(GenerateTokens(prompt, RandomStream(0), usage, max_tokens=3))
    while engine.step():
        pass
    assert usage.computed_tokens == usage.requested_tokens > 0


def test_a_stop_string_in_a_forced_beginning_ends_the_answer_before_the_model_is_asked() -> None:
    engine = tiny_engine()
    result, usage, prompt = answer_of(engine, RECORD, "Here:\n", stop=("name",))
    assert (result.text, result.finish, result.is_whole) == ('{"', "stop", False)
    assert usage.forwards == 0
    assert engine.tokenizer.decode(prompt.flush()) == 'Here:\n{"'


# What heals the prompt is no answer ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [None, Int(1, 99), RECORD])
@pytest.mark.parametrize("asks", [False, True])
def test_the_withdrawn_token_written_anew_counts_neither_for_limits_nor_in_logprobs(
    shape: Shape | None, asks: bool
) -> None:
    engine = tiny_engine()
    for least in (1, 2, 3):
        prompt = prompt_of(engine, "Here is the record: ")
        assert heal(prompt, engine.vocabulary) == b" "
        constraint = shape and compile_constraint(shape, engine.vocabulary, prefix=" ")
        answer = engine.submit(
            GenerateTokens(
                prompt,
                RandomStream(0),
                Usage(),
                max_tokens=least,
                min_tokens=least if shape is None else 0,
                constraint=Asked(constraint) if asks and constraint else constraint,
                withdrawn=b" ",
                wants_logprobs=True,
            )
        )
        while engine.step():
            pass
        assert answer.result is not None, answer.error
        written = [engine.tokenizer.token_bytes[token] for token in answer.result.tokens]
        assert b"".join(written) == b" " + answer.result.text.encode()
        if written[0] == b" ":
            assert len(answer.result.logprobs) == len(written) - 1 >= 1
            assert answer.result.logprob == sum(answer.result.logprobs)


@pytest.mark.parametrize(
    ("shape", "stop", "text", "is_whole"),
    [(Constant("the dog"), " d", "the", False), (RECORD, '"n"', None, False), (RECORD, "}", None, False)],
)
def test_a_value_that_a_stop_has_cut_is_not_whole(shape: Shape, stop: str, text: str | None, is_whole: bool) -> None:
    result, _, _ = answer_of(tiny_engine(), shape, "Here:\n", stop=(stop,))
    assert (result.finish, result.is_whole) == ("stop", is_whole)
    assert stop not in result.text
    assert text is None or result.text == text


def test_a_stop_in_what_ends_a_value_behind_the_limit_is_a_stop() -> None:
    result, _, prompt = answer_of(tiny_engine(), RECORD, "Here:\n", stop=("}",), max_tokens=1)
    assert (result.finish, result.is_whole) == ("stop", False)
    assert "}" not in tiny_engine().tokenizer.decode(prompt.flush())
