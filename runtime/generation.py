"""An answer being written: prompt first, then token by token until something ends it."""

from collections.abc import Iterable
from itertools import accumulate

from promptlang.grammar.ending import shortest_end
from promptlang.grammar.vocabulary import Mask, Vocabulary, allows
from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.prefix_cache import Namespace, TokenIds
from promptlang.runtime.cache.sequence import Sequence
from promptlang.runtime.guess import Guess
from promptlang.runtime.lookup import LEAD
from promptlang.runtime.requests import Answer, Finish, GeneratedTokens, GenerateTokens, watching
from promptlang.runtime.sampler import SamplingRow
from promptlang.runtime.text.stops import AnswerText

GROWTH = 16
"""Slots taken at once for an answer's tail, so that it stays one contiguous run."""

OVERTIME = 32
"""Tokens a constrained answer may take beyond `max_tokens` to reach its shortest legal end."""


class GenerateJob:
    """One `GenerateTokens` request under way."""

    def __init__(
        self, answer: Answer[GeneratedTokens], request: GenerateTokens, cache: KvCache, vocabulary: Vocabulary
    ) -> None:
        self.answer = answer
        self._request = request
        self._vocabulary = vocabulary
        self.sequence = Sequence(cache, list(request.prompt.flush()), request.prompt.namespace)
        self._prompt_end = self.sequence.end
        self._state = request.constraint.start() if request.constraint else None
        self._text = AnswerText(request.stop, request.withdrawn, request.min_tokens)
        self._generated: list[int] = []
        self._logprobs: list[float] = []
        self._may_end_anywhere = False
        self._pass_began = 0
        self._read = 0

    def begin(self) -> None:
        """Write what the constraint forces before the model is asked; one pass then computes it with the prompt. An
        answer that is forced whole is finished here, and the model is not asked at all."""
        self._jump_forward()
        self._show()
        finish = self._finish_reason()
        if finish is None:
            self._request.usage.ask(self.sequence.tokens[: self._prompt_end])
        else:
            self._finish(finish)

    # What goes through the model ---------------------------------------------------------------------

    @property
    def is_decoding(self) -> bool:
        return self.sequence.computed >= self._prompt_end - 1 and bool(self._generated)

    @property
    def unread(self) -> int:
        """Tokens of the prompt that were neither computed nor found in the cache."""
        return self._prompt_end - max(self._read, min(self.sequence.computed, self._prompt_end))

    @property
    def room_needed(self) -> int:
        """Slots it takes to get going, with nothing of it cached."""
        return self.sequence.pending + GROWTH

    def next_lanes(self, budget: int) -> list[Lane] | None:
        """The next tokens to compute, at most `budget`; None when there is no room for their KV."""
        lane = self.sequence.next_lane(budget, growth=GROWTH if self._generated else 0)
        if lane is None:
            return None
        self._pass_began = lane.start
        end = min(lane.start + len(lane.tokens), self._prompt_end)
        self._request.usage.computed_tokens += max(0, end - lane.start)
        self._read = max(self._read, end)
        return [lane]

    # Drafts ------------------------------------------------------------------------------------------

    @property
    def most_drafted(self) -> int:
        """How many tokens of a draft the answer could use, in a pass that computes all it has."""
        if self.sequence.pending or (self._request.withdrawn and not self._generated):
            return 0
        return max(0, self._request.max_tokens - self._text.tokens - 1)

    @property
    def reads_prompt(self) -> bool:
        """Whether the planned pass computes tokens of the prompt. Where these are in the cache by then, their keys and
        values there take the place of its own."""
        return self._pass_began < self._prompt_end

    @property
    def namespace(self) -> Namespace:
        """Whose answer it is."""
        return self._request.prompt.namespace

    @property
    def program(self) -> str:
        """Whose prompts it is one of."""
        return self._request.prompt.program

    def draft(self, lane: Lane, tokens: list[int]) -> Lane:
        """A guess at what comes next goes through the model as well.

        Args:
            lane: the planned one, up to the end.
            tokens: at most as many as slots are reserved for a draft.
        """
        self._request.usage.drafted_tokens += len(tokens)
        return self.sequence.drafted(lane, tokens)

    def guess(self) -> Guess:
        """An empty guess at what comes next."""
        return Guess(
            self._request,
            self._vocabulary,
            self._state and self._state.fork(),
            self.sequence.tokens,
            generated=len(self._generated),
            needed=self._request.min_tokens - self._text.tokens,
        )

    @property
    def written(self) -> TokenIds:
        """The answer, behind as much of its prompt as it takes to find it by."""
        return self.sequence.ids[max(0, self._prompt_end - LEAD) :]

    def computed(self) -> None:
        """The planned tokens have their KV now; the prompt's are shared at once, for others may wait for them."""
        if self.reads_prompt:
            self.sequence.commit()

    # What the model answers --------------------------------------------------------------------------

    def sampling_row(self) -> SamplingRow:
        """How the next token is to be chosen."""
        return SamplingRow(
            sampling=self._request.sampling,
            mask=self._mask(),
            noise=self._request.stream.bits(len(self._generated)),
            history=self.sequence.tokens,
        )

    def _mask(self) -> Mask | None:
        """Where the answer may end, the model chooses freely: whatever can't extend the value is a vote to end it."""
        must_go_on = self._text.tokens < self._request.min_tokens
        self._may_end_anywhere = False
        if not self._generated and self._request.withdrawn:
            return self._healing_mask()
        if self._state is None:
            return self._vocabulary.text_mask if must_go_on else None
        if self._state.can_end() and not must_go_on:
            self._may_end_anywhere = True
            return None
        return self._state.mask()

    def _healing_mask(self) -> Mask:
        """The tokens that extend the withdrawn text, where the constraint has any."""
        extending = self._vocabulary.extending(self._request.withdrawn)
        if self._state is None:
            return extending
        legal = self._state.mask()
        both = extending & legal
        return both if both.any() else legal

    @property
    def wants_logprobs(self) -> bool:
        return self._request.wants_logprobs

    def accept(self, token: int, logprob: float) -> None:
        """Take the sampled token, and what the constraint forces behind it; finish where that ends the answer."""
        if self._ends_with(token):
            self._finish(self._end_at(token))
            return
        self._request.usage.generated_tokens += 1
        self._append(token, logprob)
        if self._text.stopped_at is None:
            self._jump_forward()
        self._request.usage.accepted_tokens += self.sequence.confirm()
        self._show()
        finish = self._finish_reason()
        if finish is not None:
            self._finish(finish)

    def _ends_with(self, token: int) -> bool:
        if self._state is not None and self._may_end_anywhere:
            return not allows(self._state.mask(), token)
        return self._state is None and not allows(self._vocabulary.text_mask, token)

    def _end_at(self, token: int) -> Finish:
        """Whose end it is: the model's own where it chose an end token, else that of the type, which can't hold what
        the model went on with. White space ends a value in most texts, and is not counted as overruled."""
        if not allows(self._vocabulary.text_mask, token):
            return "end"
        self._request.usage.overruled_answers += not self._vocabulary.token_bytes[token][:1].isspace()
        return "done"

    def _append(self, token: int, logprob: float) -> None:
        if self._state is not None:
            self._state.advance(token)
        self.sequence.tokens.append(token)
        self._generated.append(token)
        if self.wants_logprobs:
            self._logprobs.append(logprob)
        self._text.push(self._vocabulary.token_bytes[token])
        self.answer.wrote()

    def _jump_forward(self) -> None:
        while self._state is not None and not self._state.is_done() and self._text.stopped_at is None:
            forced = self._state.forced()
            if not forced:
                return
            self._force(forced)

    def _force(self, tokens: Iterable[int]) -> None:
        """Write tokens without the model, up to a stop string."""
        for token in tokens:
            if self._text.stopped_at is not None:
                return
            self._request.usage.forced_tokens += 1
            self._append(token, 0.0)

    def _show(self, final: bool = False) -> None:
        if self._request.on_text is not None:
            text = self._text.show(final)
            if text:
                with watching():
                    self._request.on_text(text)

    def _finish_reason(self) -> Finish | None:
        if self._text.stopped_at is not None:
            return "stop"
        if self._state is not None and self._state.is_done():
            return "done"
        return "length" if self._text.tokens >= self._request.max_tokens else None

    # The end -----------------------------------------------------------------------------------------

    def _finish(self, finish: Finish) -> None:
        if finish == "length" and self._state is not None and not self._state.can_end():
            self._force(shortest_end(self._state, OVERTIME) or ())
            finish = finish if self._text.stopped_at is None else "stop"
        self._show(final=True)
        kept = self._cut()
        self.sequence.commit()
        self._request.usage.wrote(self.sequence.tokens[: self.sequence.computed])
        prompt = self._request.prompt
        prompt.extend(kept)
        if self.sequence.node is not None:
            prompt.hold(self.sequence.node)
        self.release()
        logprobs = self._logprobs[self._text.anew :]
        self.answer.finish(
            GeneratedTokens(
                text=self._text.text,
                tokens=kept,
                logprobs=logprobs[: self._answer_tokens(kept)],
                logprob=sum(logprobs),
                finish=finish,
                is_whole=self._is_whole(kept),
            )
        )

    def _cut(self) -> list[int]:
        """The tokens before a stop string, or before a character that the end has cut; a token that began before it
        and ran into it is replaced by its own beginning."""
        whole, rest = self._text.kept_tokens()
        if whole < len(self._generated):
            self.sequence.truncate(min(self.sequence.computed, self._prompt_end + whole))
        return self._generated[:whole] + self._vocabulary.spell(rest)

    def _answer_tokens(self, kept: list[int]) -> int:
        """How many of the tokens go beyond the withdrawn text."""
        ends = accumulate(len(self._vocabulary.token_bytes[token]) for token in kept)
        return sum(end > len(self._request.withdrawn) for end in ends)

    def _is_whole(self, kept: list[int]) -> bool:
        """Whether the value is complete with what is left of it."""
        if self._request.constraint is None or self._state is None:
            return True
        if kept == self._generated:
            return self._state.can_end()
        state = self._request.constraint.start()
        for token in kept:
            state.advance(token)
        return state.can_end()

    def release(self) -> None:
        """Give back everything; the answer so far stays, so that `sequence.attach()` resumes it."""
        self.sequence.release()
