"""What constraints are asked while answers are written. (What that costs: `benchmarks/constraint_steps.py`.)"""

import json

from counting_constraint import CountingConstraint
from schema_corpus import SCHEMAS
from tiny_engine import prompt_of, tiny_engine

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.shapes import Schema
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GeneratedTokens, GenerateTokens
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.usage import Usage


def test_siblings_ask_for_one_mask_a_token_that_the_model_chooses() -> None:
    engine = tiny_engine()
    constraint = CountingConstraint(compile_constraint(Schema(json.dumps(SCHEMAS[0])), engine.vocabulary))
    prompt, usage = prompt_of(engine, "A support ticket as JSON:\n"), Usage()
    sampling = Sampling(temperature=1.0)
    answers = [
        engine.submit(
            GenerateTokens(
                prompt.fork(), RandomStream(seed), usage, max_tokens=200, constraint=constraint, sampling=sampling
            )
        )
        for seed in range(4)
    ]
    while engine.step():
        pass
    assert all(isinstance(answer.result, GeneratedTokens) and answer.result.is_whole for answer in answers)
    chosen, forced = usage.generated_tokens, usage.forced_tokens
    assert constraint.asked["mask"] <= chosen
    assert constraint.asked["advance"] == chosen + forced
    assert constraint.asked["forced"] <= 2 * chosen
    assert constraint.asked["fork"] == 0
