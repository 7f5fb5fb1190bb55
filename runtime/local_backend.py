"""The backend of a model in this process: shapes and texts become requests in tokens. Importing this loads torch."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint
from promptlang.grammar.shapes import Str
from promptlang.runtime.backend import (
    EVERYTHING,
    ForeignPromptError,
    Generate,
    Generated,
    Namespace,
    OnPrompt,
    Prompt,
    PromptText,
    Score,
    Scored,
    Select,
    Selected,
)
from promptlang.runtime.cache.pins import Pin
from promptlang.runtime.engine import Engine
from promptlang.runtime.heads import Heads
from promptlang.runtime.healing import heal
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.requests import (
    Answer,
    GeneratedTokens,
    GenerateTokens,
    Paid,
    RequestError,
    ScoredOptions,
    ScoreOptions,
)
from promptlang.runtime.select import Logprobs, Options, choose_option, encode_options, scores
from promptlang.runtime.text.chat_template import TemplateError
from promptlang.runtime.text.length import LongTextError

Result = TypeVar("Result")


class LocalBackend:
    """Answers for the model of an engine; see `Backend`.

    Args:
        engine: does the model's work.
    """

    capabilities = EVERYTHING

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.model = engine.name
        self._heads: dict[Namespace, Heads] = {}

    def new_prompt(self, namespace: Namespace = (), program: str = "") -> TokenPrompt:
        return self.engine.new_prompt(namespace, program)

    def step(self) -> bool:
        return self.engine.step()

    # Requests ----------------------------------------------------------------------------------------

    def generate(self, request: Generate) -> Answer[Generated]:
        prompt = self._own(request.prompt)
        withdrawn = self._settle(prompt, request.heal)
        self._show(prompt, withdrawn, request.on_prompt)
        asked = self.engine.submit(
            GenerateTokens(
                prompt=prompt,
                stream=request.stream,
                usage=request.usage,
                max_tokens=request.max_tokens,
                min_tokens=request.min_tokens,
                sampling=request.sampling,
                stop=request.stop,
                constraint=self._constraint(request, withdrawn),
                withdrawn=withdrawn,
                on_text=request.on_text,
                wants_logprobs=request.wants_logprobs,
            )
        )
        return self._answer(request, prompt, [asked], lambda: self._generated(asked, request.wants_logprobs))

    def select(self, request: Select) -> Answer[Selected]:
        prompt = self._own(request.prompt)
        options, withdrawn = self._options(prompt, request)
        if len(options) == 1:
            return self._only(request, prompt, options[0])
        self._show(prompt, withdrawn, request.on_prompt)
        best_only = request.rule == "sum" and request.temperature == 0 and not request.wants_scores
        asked = [self.engine.submit(ScoreOptions(prompt, options, request.usage, best_only))]
        empty = None
        if request.rule == "prior":
            empty = self.new_prompt(prompt.namespace)
            asked.append(self.engine.submit(ScoreOptions(empty, options, request.usage)))
        return self._answer(request, prompt, asked, lambda: self._selected(request, prompt, options, asked), empty)

    def _options(self, prompt: TokenPrompt, request: Select) -> tuple[Options, bytes]:
        """The tokens of the options, and what is withdrawn for them to begin with. Where all of them only write the
        withdrawn token anew, it is the prompt's again: it is no option's, and none is scored by it."""
        head = self._settle(prompt, request.heal)
        texts = tuple(self._led(prompt, head.decode(), text) for text in request.options)
        options = encode_options(texts, self.engine.vocabulary)
        firsts = {option[0] for option in options}
        if not head or len(firsts) > 1 or self.engine.vocabulary.token_bytes[options[0][0]] != head:
            return options, head
        prompt.extend(options[0][:1])
        return tuple(option[1:] for option in options), b""

    def _only(self, request: Select, prompt: TokenPrompt, option: Sequence[int]) -> Answer[Selected]:
        """The only option: the model is not asked."""
        prompt.extend(option)
        answer: Answer[Selected] = Answer(request)
        answer.finish(Selected(0, (0.0,), (1.0,), 0.0, len(option), self.model))
        return answer

    def score(self, request: Score) -> Answer[Scored]:
        """On a fork of the prompt: what the prompt holds is not tokenised yet for what will follow it there."""
        prompt = self._own(request.prompt)
        fork = prompt.fork()
        fork.release()  # the prompt itself holds its KV
        self._settle(fork, heals=False)
        option = tuple(self.engine.tokenizer.encode(self._led(fork, "", request.text)))
        if not option:
            raise RequestError(f"the tokenizer of {self.model} has no tokens for {request.text!r}")
        self._show(fork, b"", request.on_prompt)
        asked = self.engine.submit(ScoreOptions(fork, (option,), request.usage))

        def scored() -> Scored:
            prompt.hold(fork.node)
            return Scored(_total(_logprobs(asked)[0]), self.model)

        answer = self._answer(request, fork, [asked], scored, fork)
        prompt.has_begun = True
        return answer

    def _own(self, prompt: Prompt) -> TokenPrompt:
        if not isinstance(prompt, TokenPrompt) or prompt.cache is not self.engine.cache:
            raise ForeignPromptError(self.model)
        return prompt

    def _settle(self, prompt: TokenPrompt, heals: bool) -> bytes:
        """Fix the prompt's tokens.

        Returns:
            The bytes that were withdrawn, for the answer to begin with.
        """
        try:
            with self._refusing_long():
                prompt.flush()
        except TemplateError as error:
            raise RequestError(str(error)) from error
        withdrawn = heal(prompt, self.engine.vocabulary) if heals else b""
        prompt.tell_marks()
        return withdrawn

    def _show(self, prompt: TokenPrompt, withdrawn: bytes, on_prompt: OnPrompt | None) -> None:
        if on_prompt is not None:
            tokens = prompt.flush() or [self.engine.start_token]
            on_prompt(PromptText(tuple(self.engine.tokenizer.parts(tokens)), withdrawn.decode()))

    def _led(self, prompt: TokenPrompt, head: str, text: str) -> str:
        """A text as it follows a prompt: behind what was withdrawn, or behind the tokenizer's own space."""
        with self._refusing_long():
            self.engine.tokenizer.refuse_long([text], self.engine.room.limit)
        return (head or self.engine.tokenizer.lead(prompt.flush(), text)) + text

    @contextmanager
    def _refusing_long(self) -> Iterator[None]:
        """Says which room a text is too long for."""
        try:
            yield
        except LongTextError as error:
            self.engine.room.refuse(error.tokens, str(error))
            raise

    def _constraint(self, request: Generate, withdrawn: bytes) -> Constraint | None:
        if request.shape is None or request.shape == Str():
            return None
        started = perf_counter()
        constraint = compile_constraint(
            request.shape, self.engine.vocabulary, prefix=withdrawn.decode(), pretty=request.pretty
        )
        request.usage.compile_seconds += perf_counter() - started
        return constraint

    # Results -----------------------------------------------------------------------------------------

    def _answer(
        self,
        request: Paid,
        prompt: TokenPrompt,
        asked: Sequence[Answer[Any]],
        result: Callable[[], Result],
        spare: TokenPrompt | None = None,
    ) -> Answer[Result]:
        """See `_Joined`; what the prompts of a program begin with is known once the first answer to one is there."""
        began = None
        if not prompt.has_begun and any(not one.is_done for one in asked):
            prompt.has_begun = True
            began = np.array(prompt.flush(), np.int32)

        def noted() -> Result:
            if began is not None and prompt.program:
                self._heads_of(prompt.namespace).began(prompt.program, began)
            return result()

        return _Joined(request, asked, noted, spare)

    def _generated(self, asked: Answer[GeneratedTokens], wants_logprobs: bool) -> Generated:
        found = asked.result
        assert found is not None
        return Generated(
            text=found.text,
            logprobs=tuple(found.logprobs),
            logprob=found.logprob if wants_logprobs else None,
            finish=found.finish,
            is_whole=found.is_whole,
            tokens=asked.written,
            model=self.model,
        )

    def _selected(
        self, request: Select, prompt: TokenPrompt, options: Options, asked: Sequence[Answer[ScoredOptions]]
    ) -> Selected:
        logprobs, *prior = map(_logprobs, asked)
        ranks = scores(request.rule, options, logprobs, *prior)
        choice = choose_option(ranks, request.temperature, request.uniform)
        prompt.extend(options[choice.index])
        return Selected(
            index=choice.index,
            scores=tuple(choice.scores),
            probs=tuple(choice.probs),
            logprob=_total(logprobs[choice.index]),
            tokens=len(options[choice.index]),
            model=self.model,
        )

    # Hints -------------------------------------------------------------------------------------------

    def pin(self, prompt: Prompt) -> "LocalPin":
        owned = self._own(prompt)
        pin = LocalPin(self.engine, owned.namespace)
        if self.engine.cache.shares:
            owned.mark(pin.keep)
        return pin

    def expect(self, reader: Hashable, next_calls: Mapping[str, int], namespace: Namespace = ()) -> None:
        self._heads_of(namespace).expect(reader, next_calls)

    def _heads_of(self, namespace: Namespace) -> Heads:
        if namespace not in self._heads:
            self._heads[namespace] = Heads(self.engine, namespace)
        return self._heads[namespace]


class LocalPin:
    """A place in a prompt, kept from when it is known in tokens.

    Args:
        engine: whose cache keeps it.
        namespace: the prompt's.
    """

    def __init__(self, engine: Engine, namespace: Namespace) -> None:
        self._engine = engine
        self._namespace = namespace
        self._kept: Pin | None = None
        self._is_released = False

    def keep(self, tokens: list[int]) -> None:
        """Keep these tokens. Forks tell it, too, for they begin with the same text; the first one decides."""
        if self._kept is None and not self._is_released:
            self._kept = self._engine.pin(tokens, self._namespace)

    def release(self) -> None:
        self._is_released = True
        if self._kept is not None:
            self._engine.unpin(self._kept)
            self._kept = None


class _Joined(Answer[Result]):
    """An answer that is there when all that was asked of the engine for it is.

    Args:
        request: what it answers.
        asked: of the engine; the first fault among them is this answer's.
        result: makes the result.
        spare: a prompt that was made for this answer alone.
    """

    def __init__(
        self, request: Paid, asked: Sequence[Answer[Any]], result: Callable[[], Result], spare: TokenPrompt | None
    ) -> None:
        super().__init__(request)
        self._asked = asked
        self._make = result
        self._spare = spare
        self.on_cancel = self._close
        for one in asked:
            one.on_done = self._settle
        self._settle()

    @property
    def written(self) -> int:
        return sum(one.written for one in self._asked)

    def _settle(self) -> None:
        fault = next((one.error for one in self._asked if one.error is not None), None)
        if fault is not None:
            self._close()
            self.fail(fault)
        elif all(one.is_done for one in self._asked):
            result = self._make()
            self._close()
            self.finish(result)

    def _close(self) -> None:
        for one in self._asked:
            one.on_done = None
            one.cancel()
        if self._spare is not None:
            self._spare.release()


def _logprobs(asked: Answer[ScoredOptions]) -> Logprobs:
    assert asked.result is not None
    return asked.result.logprobs


def _total(logprobs: npt.NDArray[np.float64] | None) -> float:
    """The log-probability of a text whose tokens have these."""
    assert logprobs is not None, "what was chosen was scored"
    return float(sum(logprobs))
