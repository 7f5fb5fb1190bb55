"""Whose end an answer came to: the model's own, or that of its type."""

import pytest
from tiny_engine import prompt_of, tiny_engine

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.shapes import Int, Shape, Str
from promptlang.runtime.generation import GenerateJob
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import Answer, GeneratedTokens, GenerateTokens
from promptlang.runtime.usage import Usage


def written(shape: Shape, text: str, end: str | None) -> tuple[GeneratedTokens, Usage]:
    """An answer for which a model chooses the letters of a text, and then other text or an end token (None)."""
    engine, usage = tiny_engine(), Usage()
    vocabulary = engine.vocabulary
    constraint = compile_constraint(shape, vocabulary)
    request = GenerateTokens(prompt_of(engine, "n: "), RandomStream(0), usage, max_tokens=9, constraint=constraint)
    answer: Answer[GeneratedTokens] = Answer(request)
    job = GenerateJob(answer, request, engine.cache, vocabulary)
    job.begin()
    last = vocabulary.eos_ids[0] if end is None else vocabulary.by_bytes[end.encode()][0]
    for token in [*(vocabulary.by_bytes[letter.encode()][0] for letter in text), last]:
        job.sampling_row()
        job.accept(token, 0.0)
    assert answer.result is not None
    return answer.result, usage


@pytest.mark.parametrize(
    ("shape", "text", "end", "finish", "overruled"),
    [
        (Int(), "1", ",", "done", 1),
        (Int(), "1", "\n", "done", 0),
        (Int(), "1", None, "end", 0),
        (Str(), "a,b", None, "end", 0),
        (Str(), "a", "\r", "done", 0),
        (Int(0, 12), "1", "2", "done", 0),
    ],
)
def test_the_end_of_a_typed_answer_is_the_models_or_the_types(
    shape: Shape, text: str, end: str | None, finish: str, overruled: int
) -> None:
    result, usage = written(shape, text, end)
    assert (result.finish, usage.overruled_answers) == (finish, overruled)
    assert result.is_whole
