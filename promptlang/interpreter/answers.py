"""The model calls: `gen`, `select` and `score`."""

from time import perf_counter
from typing import Any

import numpy as np

from promptlang.compiler.graph import GenNode, Node, ScoreNode, SelectNode
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint
from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Bool, Constant, Float, Int, Null, Shape, Str, Union
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.prompts import lock_pins
from promptlang.interpreter.run import Frame, RunError
from promptlang.interpreter.tasks import Future, TaskCancelled
from promptlang.runtime.healing import heal
from promptlang.runtime.prompt import Prompt
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import Answer, Generate, Generated, Scored, ScoreOptions
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.select import choose, encode_options, scores
from promptlang.runtime.usage import Usage
from promptlang.values.conversion import from_json
from promptlang.values.values import Value, answered, render_text

DEFAULT_MAX_TOKENS = 256
SCALAR_TOKENS = 32
"""The token limit of a number, a truth value or a constant, where the program gives none."""

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


async def run_gen(machine: Machine, node: GenNode, frame: Frame) -> None:
    options = {name: frame.value(value) for name, value in node.options.items()}
    prompt = frame.prompt
    prompt.flush()
    withdrawn = heal(prompt, machine.engine.vocabulary) if options.get("heal", True) else b""
    stop = options.get("stop", ())
    answer = machine.engine.submit(
        Generate(
            prompt=prompt,
            stream=_stream(node, frame, options.get("seed")),
            usage=frame.run.usage,
            max_tokens=options.get("max_tokens", SCALAR_TOKENS if _is_scalar(node.shape) else DEFAULT_MAX_TOKENS),
            min_tokens=options.get("min_tokens", 0),
            sampling=Sampling(**{name: options[name] for name in _SAMPLING if name in options}),
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            constraint=_constraint(machine, node.shape, withdrawn, options.get("pretty", False), frame.run.usage),
            withdrawn=withdrawn,
            on_text=lambda text: frame.run.observer.answer(frame.path, text),
            wants_logprobs=options.get("logprobs", False) or frame.branch is not None,
        )
    )
    result = await _answered(machine, answer, frame)
    assert isinstance(result, Generated)
    frame.say(result.text)
    frame.logprob += result.logprob
    value = _read(node, result, frame)
    if options.get("logprobs", False):
        assert isinstance(value, str | int | float), "the checker lets `logprobs` stand only at text and numbers"
        value = answered(value, {"logprobs": list(result.logprobs[: len(result.tokens)])})
    frame.bind(node.target, value)


def _constraint(
    machine: Machine, shape: Shape | None, withdrawn: bytes, pretty: bool, usage: Usage
) -> Constraint | None:
    if shape is None or shape == Str():
        return None
    started = perf_counter()
    constraint = compile_constraint(shape, machine.engine.vocabulary, prefix=withdrawn.decode(), pretty=pretty)
    usage.compile_seconds += perf_counter() - started
    return constraint


def _read(node: GenNode, result: Generated, frame: Frame) -> Value:
    if node.shape is None:
        return result.text
    if not result.is_whole:
        raise RunError(
            f"max_tokens ended the answer before its value was whole: {result.text!r}",
            node.span,
            frame.path,
        )
    try:
        return from_json(node.shape, read(node.shape, result.text))
    except ValueError as error:
        raise RunError(
            f"the answer {result.text!r} is not what was asked for: {error}", node.span, frame.path
        ) from error


async def run_select(machine: Machine, node: SelectNode, frame: Frame) -> None:
    options = {name: frame.value(value) for name, value in node.options.items()}
    values = options["options"] if "options" in options else [frame.value(choice) for choice in node.choices]
    texts = _option_texts(node, values, frame)
    prompt = frame.prompt
    prompt.flush()
    withdrawn = heal(prompt, machine.engine.vocabulary) if options.get("heal", True) else b""
    encoded = encode_options(tuple(withdrawn.decode() + text for text in texts), machine.engine.vocabulary)
    rule, temperature = options.get("by", "sum"), options.get("temperature", 0.0)
    best_only = rule == "sum" and temperature == 0 and not node.reads_scores
    if len(encoded) == 1:
        selection = choose([0.0], 0.0, 0.0)
    else:
        logprobs = await _scored(machine, prompt, encoded, frame, best_only)
        prior = await _scored(machine, machine.new_prompt(frame.run), encoded, frame) if rule == "prior" else None
        uniform = _stream(node, frame, None).uniform(0)
        selection = choose(scores(rule, encoded, logprobs, prior), temperature, uniform)
    text = texts[selection.index]
    prompt.extend(encoded[selection.index])
    frame.say(text)
    frame.run.observer.answer(frame.path, text)
    frame.logprob += 0.0 if len(encoded) == 1 else float(sum(logprobs[selection.index]))
    frame.bind(
        node.target,
        answered(
            text,
            {
                "probs": dict(zip(texts, selection.probs, strict=True)),
                "scores": dict(zip(texts, selection.scores, strict=True)),
            },
        ),
    )


def _option_texts(node: SelectNode, values: Any, frame: Frame) -> list[str]:
    if not isinstance(values, list) or not values:
        raise RunError("select needs at least one option", node.span, frame.path)
    texts = [render_text(value) for value in values]
    if "" in texts:
        raise RunError("an option of select is empty", node.span, frame.path)
    twice = next((text for text in texts if texts.count(text) > 1), None) if len(set(texts)) < len(texts) else None
    if twice is not None:
        raise RunError(f"select has the option {twice!r} twice", node.span, frame.path)
    return texts


async def _scored(
    machine: Machine, prompt: Prompt, options: tuple[tuple[int, ...], ...], frame: Frame, best_only: bool = False
) -> Any:
    answer = machine.engine.submit(ScoreOptions(prompt, options, frame.run.usage, best_only))
    result = await _answered(machine, answer, frame)
    assert isinstance(result, Scored)
    return result.logprobs


async def run_score(machine: Machine, node: ScoreNode, frame: Frame) -> None:
    text = frame.text(node.text)
    frame.prompt.flush()
    tokens = tuple(machine.engine.tokenizer.encode(text))
    if not tokens:
        raise RunError("score needs a text that isn't empty", node.span, frame.path)
    logprobs = await _scored(machine, frame.prompt, (tokens,), frame)
    frame.bind(node.target, float(sum(logprobs[0])))


async def _answered(machine: Machine, answer: Answer, frame: Frame) -> Generated | Scored:
    began = None if frame.has_asked else np.array(answer.request.prompt.flush(), dtype=np.int32)
    frame.has_asked = True
    future: Future[None] = Future()
    answer.on_done = lambda: future.resolve(None)
    try:
        await future
    except TaskCancelled:
        answer.cancel()
        raise
    lock_pins(machine, frame)
    if answer.error is not None:
        raise answer.error
    assert answer.result is not None
    if began is not None:
        machine.heads.began(frame.graph.name, began)
    return answer.result


def _stream(node: Node, frame: Frame, seed: int | None) -> RandomStream:
    """Depends on the run's seed, the row, the branch, the node and how often it ran: never on what else is in the
    batch."""
    key = frame.visit(node)
    if seed is not None:
        return RandomStream(seed)
    return RandomStream(frame.run.seed, frame.run.row, *key)


def _is_scalar(shape: Shape | None) -> bool:
    if isinstance(shape, Union):
        return all(map(_is_scalar, shape.options))
    return isinstance(shape, Int | Float | Bool | Null | Constant)
