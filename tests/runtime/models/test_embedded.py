"""The whole engine on the embedded model, beside transformers."""

import numpy as np
import pytest
import torch
from tiny_models import cold_logits

from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.models import embedded, gguf_files
from promptlang.runtime.models.loading import LoadedModel, load
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import Answer, GeneratedTokens, GenerateTokens, ScoredOptions, ScoreOptions
from promptlang.runtime.usage import Usage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(embedded.find_gguf() is None, reason=f"needs {embedded.PACKAGE}"),
]

TEXT = """The harbour was quiet that morning. Three boats had come in before the storm, and their crews sat under the
awning of the only café, counting what was left: eleven crates of lemons, a box of nails, and a letter nobody would
open. "It isn't ours," said Marta, who had carried it from Lisbon. She was 34 and had never been wrong about a letter.
At 9:40 the postmaster arrived with a list:
1. lemons - sold to the hotel for 12.50 a crate
2. nails - returned
3. letter - ???
He read the last line twice. def owner(letter): return letter.address or "unknown" was what his son, a programmer,
would have written. In the old days one asked the priest; now one asked a machine, and the machine asked for a reason.
The reason was simple. In 1987 the village had lost its school, its bakery and its name on the map, in that order, and
since then every letter that came was either a bill or a mistake. Naïve visitors thought the place abandoned. It was
not: forty-one people lived there, six of them children, and on Sundays they played football on the quay until the ball
fell into the water. Then they stood and watched it drift, and somebody said what somebody always said: tomorrow we
will build a fence. So when Marta finally tore the envelope open, with everybody looking and the rain beginning to fall
on the tin roof, she found inside a photograph of the quay, a fence drawn on it in blue ink, and a cheque."""

NEW = 16
LENGTHS = [5, 7, 9, 12, 16, 17, 20, 25, 31, 32, 40, 55, 64, 80, 101, 128, 150, 200, 256, 300]


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load()


@pytest.fixture(scope="module")
def engine(loaded: LoadedModel) -> Engine:
    return Engine(loaded)


@pytest.fixture(scope="module")
def prompts(engine: Engine) -> list[list[int]]:
    """Twenty, of 5 to 300 tokens and one of 400, beginning at different places of one text."""
    tokens = engine.tokenizer.encode(TEXT)
    pieces = [tokens[at : at + length] for at, length in enumerate(LENGTHS[:-1])]
    return [*pieces, (tokens + tokens)[:400]]


@pytest.fixture(scope="module")
def expected(prompts: list[list[int]]) -> list[list[int]]:
    """What transformers' own `generate` gives."""
    from transformers import AutoModelForCausalLM

    gguf = embedded.find_gguf()
    assert gguf is not None
    network = AutoModelForCausalLM.from_pretrained(gguf_files.converted(gguf, print), dtype=torch.float32)
    answers = []
    for prompt in prompts:
        out = network.generate(
            torch.tensor([prompt]), do_sample=False, max_new_tokens=NEW, eos_token_id=[2], pad_token_id=2
        )
        answers.append([token for token in out[0, len(prompt) :].tolist() if token != 2])
    return answers


def submit(engine: Engine, tokens: list[int], usage: Usage | None = None) -> Answer:
    prompt = engine.new_prompt()
    prompt.extend(tokens)
    return engine.submit(GenerateTokens(prompt, RandomStream(0), usage or Usage(), max_tokens=NEW))


def run(engine: Engine, prompts: list[list[int]]) -> list[list[int]]:
    answers = [submit(engine, prompt) for prompt in prompts]
    while engine.step():
        pass
    engine.check()
    results = []
    for answer in answers:
        assert isinstance(answer.result, GeneratedTokens)
        results.append(answer.result.tokens)
    return results


def test_greedy_answers_are_transformers_own_alone_together_and_cached(
    loaded: LoadedModel, prompts: list[list[int]], expected: list[list[int]]
) -> None:
    engine = Engine(loaded)
    assert run(engine, prompts) == expected
    assert run(engine, prompts[::-1]) == expected[::-1]
    for prompt, answer in zip(prompts, expected, strict=True):
        fresh = Engine(loaded, EngineOptions(kv_bytes=64 << 20))
        assert run(fresh, [prompt]) == [answer]


def test_option_scores_are_those_of_a_full_forward(engine: Engine, prompts: list[list[int]]) -> None:
    texts = [" boat", " boats", " the café", "!", "\n4. fence", "naïve", " A", " letter from Lisbon"]
    options = tuple(tuple(engine.tokenizer.encode(text)) for text in texts)
    for tokens in (prompts[3], prompts[14]):
        prompt = engine.new_prompt()
        prompt.extend(tokens)
        answer = engine.submit(ScoreOptions(prompt, options, Usage()))
        while engine.step():
            pass
        assert isinstance(answer.result, ScoredOptions)
        for option, logprobs in zip(options, answer.result.logprobs, strict=True):
            np.testing.assert_allclose(logprobs, full_forward(engine, tokens, list(option)), atol=1e-3)


def full_forward(engine: Engine, prompt: list[int], option: list[int]) -> np.ndarray:
    logprobs = cold_logits(engine.model, [*prompt, *option]).double().log_softmax(-1)
    rows = torch.arange(len(prompt) - 1, len(prompt) + len(option) - 1)
    return logprobs[rows, torch.tensor(option)].numpy()
