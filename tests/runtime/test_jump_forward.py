"""What a constraint forces is appended without the model, and changes nothing but the number of passes."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schema_corpus import SCHEMAS
from tiny_engine import prompt_of, tiny_engine

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint, Mask, State
from promptlang.grammar.shapes import Schema
from promptlang.grammar.vocabulary import Vocabulary
from promptlang.runtime.engine import Engine
from promptlang.runtime.models import embedded
from promptlang.runtime.models.loading import load
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


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
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
    pairs = [compare(engine, schema) for schema in SCHEMAS]
    assert sum(jumped.forced_tokens for jumped, _ in pairs) > 0
    assert sum(jumped.forwards for jumped, _ in pairs) < sum(asked.forwards for _, asked in pairs)
