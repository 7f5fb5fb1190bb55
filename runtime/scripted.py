"""A backend without a model: what it answers is written down, in the order in which it is asked. For tests of programs.

Loads no torch.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from promptlang.grammar.reader import read
from promptlang.runtime.backend import (
    EVERYTHING,
    Capability,
    ForeignPromptError,
    Generate,
    Generated,
    Namespace,
    Pin,
    Prompt,
    PromptText,
    Score,
    Scored,
    Select,
    Selected,
)
from promptlang.runtime.requests import Answer, Finish, RequestError
from promptlang.runtime.text.markup import Part

Result = TypeVar("Result")


@dataclass(frozen=True)
class Line:
    """What the model says, how likely each of its tokens is, as natural log-probabilities, and why it ended (by
    default at a stop string where there are some, else by itself)."""

    text: str
    logprobs: tuple[float, ...] = ()
    finish: Finish | None = None


ScriptedAnswer: TypeAlias = str | Line | float
"""The text of a `gen`, the option of a `select`, the log-probability of a `score`."""

Script: TypeAlias = Iterable[ScriptedAnswer] | Callable[[str], ScriptedAnswer]
"""Answers in the order in which they are asked, or a function of a prompt's text (see `ScriptedPrompt.text`)."""


class ScriptError(Exception):
    """A script that was not told to its end."""


@dataclass(frozen=True)
class Turn:
    """A part of a prompt: the text of a turn, or, where the role is None, text outside turns."""

    role: str | None
    text: str


def prompt_text(turns: Iterable[Turn]) -> str:
    """What a prompt holds, a line a turn: `user: How are you?`."""
    return "\n".join(turn.text if turn.role is None else f"{turn.role}: {turn.text}" for turn in turns)


class ScriptedPrompt:
    """A prompt that is only its text.

    Attributes:
        turns: what it holds; turns without text are there, too.
    """

    def __init__(self, backend: "ScriptedBackend") -> None:
        self.backend = backend
        self.turns: list[Turn] = []
        self._is_open = False

    @property
    def text(self) -> str:
        """All of it; see `prompt_text`."""
        return prompt_text(self.turns)

    def open(self, role: str) -> None:
        self.turns.append(Turn(role, ""))
        self._is_open = True

    def close(self) -> None:
        self._is_open = False

    def add(self, text: str) -> None:
        if not self.turns or (self.turns[-1].role is not None and not self._is_open):
            self.turns.append(Turn(None, ""))
        self.turns[-1] = replace(self.turns[-1], text=self.turns[-1].text + text)

    def fork(self) -> "ScriptedPrompt":
        twin = ScriptedPrompt(self.backend)
        twin.turns, twin._is_open = list(self.turns), self._is_open
        return twin

    def release(self) -> None:
        pass


class ScriptedBackend:
    """Answers by a script; see `Backend`. As with any backend, the only option of a `select` is taken unasked.

    Args:
        script: what it answers. Of texts without log-probabilities it is sure.
        model: its name.
        capabilities: what it serves.

    Attributes:
        seen: what each prompt held when it was asked about, in order.
    """

    def __init__(self, script: Script, model: str = "script", capabilities: frozenset[Capability] = EVERYTHING) -> None:
        self.model = model
        self.capabilities = capabilities
        self.seen: list[tuple[Turn, ...]] = []
        self._by_text = script if callable(script) else None
        self._left: deque[ScriptedAnswer] = deque(() if callable(script) else script)
        self._asked: deque[Callable[[], None]] = deque()

    def new_prompt(self, namespace: Namespace = (), program: str = "") -> ScriptedPrompt:
        return ScriptedPrompt(self)

    def step(self) -> bool:
        """Give all answers that were asked for."""
        asked, self._asked = self._asked, deque()
        for give in asked:
            give()
        return bool(asked)

    def expect_end(self) -> None:
        """Check that the script was told to its end.

        Raises:
            ScriptError: answers are left.
        """
        if self._left:
            raise ScriptError(
                f"{len(self._left)} answers of the script were not asked for; the next is {self._left[0]!r}"
            )

    # Requests ----------------------------------------------------------------------------------------

    def generate(self, request: Generate) -> Answer[Generated]:
        line = self._line(request, "`gen`")
        self._check(request, line.text)

        def give() -> Generated:
            request.prompt.add(line.text)
            if request.on_text is not None and line.text:
                request.on_text(line.text)
            logprob = sum(line.logprobs, 0.0) if request.wants_logprobs else None
            logprobs = line.logprobs if request.wants_logprobs else ()
            finish = line.finish or ("stop" if request.stop else "end")
            return Generated(line.text, logprobs, logprob, finish, True, len(line.text.split()), self.model)

        return self._answer(request, give)

    def select(self, request: Select) -> Answer[Selected]:
        line = Line(request.options[0]) if len(request.options) == 1 else self._line(request, "`select`")
        if line.text not in request.options:
            raise self._refusal(line.text, f"none of the options {', '.join(map(repr, request.options))}")

        def give() -> Selected:
            request.prompt.add(line.text)
            chosen = [option == line.text for option in request.options]
            scores = tuple(0.0 if one else float("-inf") for one in chosen)
            logprob = sum(line.logprobs, 0.0) if Capability.LOGPROBS in self.capabilities else None
            return Selected(
                chosen.index(True), scores, tuple(map(float, chosen)), logprob, len(line.text.split()), self.model
            )

        return self._answer(request, give)

    def score(self, request: Score) -> Answer[Scored]:
        answer = self._next(request, "`score`")
        if isinstance(answer, str | Line):
            raise self._refusal(answer, "no log-probability, which `score` needs")
        return self._answer(request, lambda: Scored(float(answer), self.model))

    def _line(self, request: Generate | Select, what: str) -> Line:
        answer = self._next(request, what)
        if isinstance(answer, str):
            return Line(answer)
        if isinstance(answer, Line):
            return answer
        raise self._refusal(answer, f"no text, which {what} needs")

    def _next(self, request: Generate | Select | Score, what: str) -> ScriptedAnswer:
        prompt = request.prompt
        if not isinstance(prompt, ScriptedPrompt) or prompt.backend is not self:
            raise ForeignPromptError(self.model)
        self.seen.append(tuple(prompt.turns))
        if request.on_prompt is not None:
            request.on_prompt(PromptText((Part(prompt.text, "text"),)))
        if self._by_text is not None:
            return self._by_text(prompt.text)
        if not self._left:
            raise RequestError(
                f"the script has no answer left for this {what}: it has {len(self.seen) - 1}, and this is call "
                f"{len(self.seen)}"
            )
        return self._left.popleft()

    def _check(self, request: Generate, text: str) -> None:
        """Refuse a text that a model could not have written."""
        stop = next((stop for stop in request.stop if stop in text), None)
        if stop is not None and not request.min_tokens:
            raise self._refusal(text, f"no answer that {stop!r} stops: it is in it")
        if request.shape is not None:
            try:
                read(request.shape, text)
            except ValueError as error:
                raise self._refusal(text, f"no answer of its type: {error}") from error

    def _refusal(self, answer: ScriptedAnswer, why: str) -> RequestError:
        said = answer.text if isinstance(answer, Line) else answer
        return RequestError(f"answer {len(self.seen)} of the script, {said!r}, is {why}")

    def _answer(self, request: Generate | Select | Score, give: Callable[[], Result]) -> Answer[Result]:
        answer: Answer[Result] = Answer(request)

        def finish() -> None:
            if not answer.is_done:
                answer.finish(give())

        answer.on_cancel = lambda: None
        self._asked.append(finish)
        return answer

    # Hints -------------------------------------------------------------------------------------------

    def pin(self, prompt: Prompt) -> Pin:
        return _NoPin()

    def expect(self, reader: Hashable, next_calls: Mapping[str, int], namespace: Namespace = ()) -> None:
        pass


class _NoPin:
    """Nothing is kept, so nothing is let go."""

    def release(self) -> None:
        pass
