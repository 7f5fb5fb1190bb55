"""For tests of users: programs without a model, by a script or with random answers.

with pl.testing.answers(["billing", "Hello.", "4"]) as script:
    assert triage("My bill is wrong").team == "billing"
assert "My bill" in script.seen[0]
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from promptlang.api.engine import Engine, as_default
from promptlang.api.random_answers import random_text
from promptlang.grammar.shapes import Str
from promptlang.interpreter.loop import EngineLoop
from promptlang.runtime.backend import Generate, Generated, Prompt, Score, Scored, Select, Selected
from promptlang.runtime.requests import Answer
from promptlang.runtime.scripted import Line as Line
from promptlang.runtime.scripted import Script, ScriptedAnswer, ScriptedBackend, ScriptedPrompt, prompt_text
from promptlang.runtime.scripted import ScriptError as ScriptError
from promptlang.runtime.usage import Usage
from promptlang.session.session import Session
from promptlang.session.settings import Settings


class Told:
    """A script as it is told."""

    def __init__(self, backend: ScriptedBackend) -> None:
        self._backend = backend

    @property
    def seen(self) -> list[str]:
        """What each prompt held when it was asked about, in order: a line a turn, `user: How are you?`."""
        return [prompt_text(turns) for turns in self._backend.seen]


@contextmanager
def answers(script: Script) -> Iterator[Told]:
    """Have a script answer for the default engine, in all threads: for programs of files and of functions, and for
    those that they call.

    Args:
        script: answers in the order in which they are asked for, or a function of what the prompt holds. An answer is
            the text of a `gen`, the option of a `select`, the log-probability of a `score`; or a `Line`, a text with
            log-probabilities of its tokens.

    Raises:
        ScriptError: at the end, answers were not asked for.
        RunError: in a program that asks for more answers, or for an answer that the script's is none of.
    """
    backend = ScriptedBackend(script)
    with _answering(backend):
        yield Told(backend)
    backend.expect_end()


@contextmanager
def random_answers(seed: int = 0) -> Iterator[Told]:
    """Have the default engine give random answers, each of the type that is asked for, and of a `select` any option.

    Args:
        seed: of all of them. An answer depends on it, on what the prompt holds, and on how often the same was asked.
    """
    backend = RandomBackend(seed)
    with _answering(backend):
        yield Told(backend)


@contextmanager
def _answering(backend: ScriptedBackend) -> Iterator[None]:
    with ScriptedEngine(backend) as engine, as_default(engine):
        yield


class ScriptedEngine(Engine):
    """An engine without a model.

    Args:
        backend: answers.
    """

    def __init__(self, backend: ScriptedBackend) -> None:
        self._backend = backend
        super().__init__(backend.model)

    def _make(self, settings: Settings) -> Session:
        return _ScriptedSession(settings, self._backend)


class _ScriptedSession(Session):
    def __init__(self, settings: Settings, backend: ScriptedBackend) -> None:
        super().__init__(settings)
        self._backend = backend

    def _load(self, *_: object) -> Any:
        return _NoModel(), EngineLoop(self._backend)


class _NoModel:
    """What there is of an engine where there is no model: its numbers."""

    def __init__(self) -> None:
        self.usage = Usage()


class RandomBackend(ScriptedBackend):
    """Answers at random; see `random_answers`.

    Args:
        seed: of all answers.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(lambda _: self._answer_now)
        self._seed = seed
        self._asked_before: Counter[str] = Counter()
        self._answer_now: ScriptedAnswer = ""

    def generate(self, request: Generate) -> Answer[Generated]:
        random = self._random(request.prompt)
        text = random_text(request.shape, random)
        if request.shape is None or isinstance(request.shape, Str):
            text = _before(request.stop, text)
        self._answer_now = Line(text, tuple(-random.random() for _ in text.split() or [text]))
        return super().generate(request)

    def select(self, request: Select) -> Answer[Selected]:
        self._answer_now = self._random(request.prompt).choice(request.options)
        return super().select(request)

    def score(self, request: Score) -> Answer[Scored]:
        self._answer_now = -10 * self._random(request.prompt).random()
        return super().score(request)

    def _random(self, prompt: Prompt) -> Random:
        assert isinstance(prompt, ScriptedPrompt)
        text = prompt.text
        self._asked_before[text] += 1
        return Random(f"{self._seed} {self._asked_before[text]} {text}")


def _before(stops: tuple[str, ...], text: str) -> str:
    """A text up to the first of some strings in it."""
    for stop in stops:
        text = text.partition(stop)[0]
    return text


Answers = Callable[[Script], Told]
"""The fixture `pl_answers`: has a script answer until the test ends."""

__all__ = [
    "Answers",
    "Line",
    "RandomBackend",
    "Script",
    "ScriptError",
    "ScriptedEngine",
    "Told",
    "answers",
    "random_answers",
]
