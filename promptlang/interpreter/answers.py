"""The model calls: `gen`, `select` and `score`."""

from typing import Any, TypeVar

from promptlang.compiler.graph import GenNode, Node, ScoreNode, SelectNode
from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Bool, Constant, Float, Int, Null, Shape, Str, Union
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.run import Frame, RunError
from promptlang.interpreter.tasks import Future, TaskCancelled
from promptlang.runtime.backend import Capability, Generate, Generated, Score, Select
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import Answer
from promptlang.runtime.sampler import Sampling
from promptlang.values.conversion import from_json
from promptlang.values.options import GEN_OPTIONS, SELECT_OPTIONS, Options, refusal
from promptlang.values.values import Value, answered, render_text

DEFAULT_MAX_TOKENS = 256
SCALAR_TOKENS = 32
"""The token limit of a number, a truth value or a constant, where the program gives none."""

_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")

Result = TypeVar("Result")


async def run_gen(machine: Machine, node: GenNode, frame: Frame) -> None:
    options = {name: frame.value(value) for name, value in node.options.items()}
    _refuse(GEN_OPTIONS, options, node, frame)
    if node.shape not in (None, Str()):
        _need(Capability.SHAPES, machine, node, frame)
    if options.get("logprobs", False):
        _need(Capability.LOGPROBS, machine, node, frame)
    stop = options.get("stop", ())
    frame.run.observer.asked(frame.path, node.shape)
    answer = machine.backend.generate(
        Generate(
            prompt=frame.prompt,
            stream=_stream(frame, options.get("seed")),
            usage=frame.run.usage,
            max_tokens=options.get("max_tokens", SCALAR_TOKENS if _is_scalar(node.shape) else DEFAULT_MAX_TOKENS),
            min_tokens=options.get("min_tokens", 0),
            shape=node.shape,
            pretty=options.get("pretty", False),
            heal=options.get("heal", True),
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            sampling=Sampling(**{name: options[name] for name in _SAMPLING if name in options}),
            on_text=lambda text: frame.run.observer.answer(frame.path, text),
            on_prompt=frame.on_prompt,
            wants_logprobs=options.get("logprobs", False) or _is_ranked(machine, frame),
        )
    )
    result = await _answered(answer, frame)
    frame.tokens += result.tokens
    frame.say(result.text, result.logprob)
    frame.run.observer.answered(frame.path, result.finish)
    frame.run.usage.cut_answers += result.finish == "length"
    value = _read(node, result, frame)
    frame.bind(node.target, _with_extras(value, result, options.get("logprobs", False)))


def _with_extras(value: Value, result: Generated, tells_logprobs: bool) -> Value:
    """The value with what there is to tell about it; only text and numbers have room for that."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        assert not tells_logprobs, "the checker lets `logprobs` stand only at text and numbers"
        return value
    extras: dict[str, Value] = {"finish": result.finish}
    if tells_logprobs:
        extras["logprobs"] = list(result.logprobs)
    return answered(value, extras)


def _need(capability: Capability, machine: Machine, node: Node, frame: Frame) -> None:
    """Refuse what the backend can't do.

    Raises:
        RunError: it can't.
    """
    backend = machine.backend
    if capability not in backend.capabilities:
        raise RunError(
            f"the backend of {backend.model} does not serve {capability.value}; a model on this machine does "
            "(`--model`)",
            node.span,
            frame.path,
        )


def _refuse(known: Options, options: dict[str, Any], node: Node, frame: Frame) -> None:
    """Refuse options that have no meaning.

    Raises:
        RunError: one has none.
    """
    why = refusal(known, options)
    if why is not None:
        raise RunError(why, node.span, frame.path)


def _is_ranked(machine: Machine, frame: Frame) -> bool:
    """Whether someone may ask how likely the branch is."""
    return frame.branch is not None and Capability.LOGPROBS in machine.backend.capabilities


def _read(node: GenNode, result: Generated, frame: Frame) -> Value:
    if node.shape is None:
        return result.text
    if not result.is_whole:
        ended_by = "a stop string" if result.finish == "stop" else "max_tokens"
        raise RunError(
            f"{ended_by} ended the answer before its value was whole: {result.text!r}",
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
    _need(Capability.SELECT, machine, node, frame)
    if node.reads_scores:
        _need(Capability.LOGPROBS, machine, node, frame)
    options = {name: frame.value(value) for name, value in node.options.items()}
    _refuse(SELECT_OPTIONS, {name: value for name, value in options.items() if name != "options"}, node, frame)
    values = options["options"] if "options" in options else [frame.value(choice) for choice in node.choices]
    texts = _option_texts(node, values, frame)
    answer = machine.backend.select(
        Select(
            prompt=frame.prompt,
            options=tuple(texts),
            usage=frame.run.usage,
            rule=options.get("by", "sum"),
            temperature=options.get("temperature", 0.0),
            uniform=_stream(frame, None).uniform(0) if len(texts) > 1 else 0.0,
            heal=options.get("heal", True),
            wants_scores=node.reads_scores,
            on_prompt=frame.on_prompt,
        )
    )
    result = await _answered(answer, frame)
    frame.tokens += result.tokens
    text = texts[result.index]
    frame.say(text, result.logprob)
    frame.run.observer.asked(frame.path, None)
    frame.run.observer.answer(frame.path, text)
    frame.run.observer.answered(frame.path, "done")
    extras: dict[str, Value] = {
        "probs": dict(zip(texts, result.probs, strict=True)),
        "scores": dict(zip(texts, result.scores, strict=True)),
        "finish": "done",
    }
    frame.bind(node.target, answered(text, extras))


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


async def run_score(machine: Machine, node: ScoreNode, frame: Frame) -> None:
    _need(Capability.SCORE, machine, node, frame)
    text = frame.text(node.text)
    if not text:
        raise RunError("score needs a text that isn't empty", node.span, frame.path)
    result = await _answered(machine.backend.score(Score(frame.prompt, text, frame.run.usage, frame.on_prompt)), frame)
    frame.bind(node.target, result.logprob)


async def _answered(answer: Answer[Result], frame: Frame) -> Result:
    """The result of what a backend was asked on a prompt; who stops waiting for it cancels it."""
    if not answer.is_done:
        future: Future[None] = Future()
        answer.on_done = lambda: future.resolve(None)
        frame.answer = answer
        try:
            await future
        except TaskCancelled:
            answer.cancel()
            raise
        finally:
            frame.answer = None
    if answer.error is not None:
        raise answer.error
    assert answer.result is not None
    return answer.result


def _stream(frame: Frame, seed: int | None) -> RandomStream:
    """Depends on the run's seed, the row, the branch and which of its answers it is: never on what else is in the
    batch."""
    key = frame.answer_key()
    if seed is not None:
        return RandomStream(seed)
    return RandomStream(frame.run.seed, frame.run.row, *key)


def _is_scalar(shape: Shape | None) -> bool:
    if isinstance(shape, Union):
        return all(map(_is_scalar, shape.options))
    return isinstance(shape, Int | Float | Bool | Null | Constant)
