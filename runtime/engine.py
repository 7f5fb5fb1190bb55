"""The engine: requests in, answers out, one model pass a step for everything that runs."""

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Ordered
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, overload

import numpy as np

from promptlang.grammar.errors import ConstraintError
from promptlang.kernels.backend import AttentionBackend
from promptlang.runtime.cache.eviction import make_policy
from promptlang.runtime.cache.expected_read import ExpectedRead
from promptlang.runtime.cache.integrity import check_tree
from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.pins import Pin, Pins
from promptlang.runtime.cache.prefix_cache import Namespace, TokenIds
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator
from promptlang.runtime.cache.view import CacheView, view
from promptlang.runtime.choosing import Choice, RowReader
from promptlang.runtime.generation import GenerateJob
from promptlang.runtime.guessing import Guesser
from promptlang.runtime.models.batch import build_batch
from promptlang.runtime.models.loading import LoadedModel
from promptlang.runtime.models.logits import TimedLogits
from promptlang.runtime.models.memory import available_memory
from promptlang.runtime.models.model import attention_of
from promptlang.runtime.models.pass_costs import PassCosts
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.requests import (
    Answer,
    GeneratedTokens,
    GenerateTokens,
    PassError,
    Request,
    RequestError,
    ScoredOptions,
    ScoreOptions,
    WatcherError,
)
from promptlang.runtime.room import Room
from promptlang.runtime.sampler import logprob_of, sample
from promptlang.runtime.scheduler import Job, Scheduler
from promptlang.runtime.scoring import ScoreJob
from promptlang.runtime.speculation import Drafting, Speculation
from promptlang.runtime.text.chat_template import ChatTemplate
from promptlang.runtime.usage import Usage

DEFAULT_KV_BYTES = 2 << 30
"""The most memory the KV pool takes where the user gives no budget; committed as it fills."""


@dataclass(frozen=True)
class EngineOptions:
    """How an engine runs.

    Attributes:
        kv_bytes: memory for the KV pool, in bytes; None measures the machine.
        shares: False computes every prompt from its start (`--no-cache`).
        tokens_a_step: the most tokens in one model pass.
        answers_at_once: the most requests running together.
        policy: which cached tokens go first for room.
        pass_costs: of the model, for which drafts are worth their rows; None drafts nothing.
        drafting_costs: of the passes of `Model.drafting`; None lets it write nothing.
        template_options: more that the model's chat template may name.
    """

    kv_bytes: int | None = None
    shares: bool = True
    tokens_a_step: int = 512
    answers_at_once: int = 64
    policy: str = "program"
    pass_costs: PassCosts | None = None
    drafting_costs: PassCosts | None = None
    template_options: Mapping[str, Any] = field(default_factory=dict)


class CacheFault(RequestError):
    """The cache has lost count of its slots: a mistake in the engine, not in what it was asked. It serves nothing any
    more."""


class Engine:
    """Runs requests on one model. Not thread-safe: one caller submits and steps.

    Args:
        loaded: a model with its tokenizer.
        options: how to run.
        backend: computes attention; by default the one for the model's device.

    Attributes:
        room: how many tokens a request may have.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        options: EngineOptions | None = None,
        backend: AttentionBackend[Any] | None = None,
    ) -> None:
        options = options or EngineOptions()
        self.name = loaded.name
        self.model = loaded.model
        self._attention = backend or attention_of(self.model)
        self.tokenizer = loaded.tokenizer
        self.template = ChatTemplate(loaded.tokenizer, options.template_options)
        self.vocabulary = loaded.tokenizer.vocabulary
        size = self._pool_size(options)
        self.pool = self._pool(size)
        self.tree = RadixTree(SlotAllocator(size), make_policy(options.policy))
        self.cache = KvCache(self.tree.allocator, self.tree, options.shares)
        self.room = Room(size, self.model.shape.max_positions)
        self.usage = Usage()
        self._pins = Pins(self.tree, size // 2)
        self._fault: CacheFault | None = None
        self._scheduler = Scheduler(self.cache, options.tokens_a_step, options.answers_at_once)
        self._tokens_a_step = options.tokens_a_step
        self._speculation = self._speculates(options)

    def _speculates(self, options: EngineOptions) -> Speculation | None:
        if options.pass_costs is None:
            return None
        drafting = None
        if options.drafting_costs is not None and self.model.drafting is not None:
            drafting = Drafting(Guesser(self.model.drafting, self.pool, self._attention), options.drafting_costs)
        return Speculation(options.pass_costs, options.shares, drafting)

    def _pool_size(self, options: EngineOptions) -> int:
        per_token = KvPool.bytes_per_token(self.model.shape, self.model.dtype)
        size = (options.kv_bytes or min(DEFAULT_KV_BYTES, available_memory(self.model.device) // 4)) // per_token
        if size < 2:
            raise RequestError(
                f"a KV budget of {options.kv_bytes} bytes holds fewer than two tokens: one takes {per_token} bytes"
            )
        return size

    def _pool(self, size: int) -> KvPool:
        try:
            return KvPool(self.model.shape, size, self.model.dtype, self.model.device)
        except RuntimeError as error:  # torch's way to say that there is no such amount of memory
            raise RequestError(f"a KV pool of {size} tokens can't be had here; give a smaller --kv-budget") from error

    # Requests ----------------------------------------------------------------------------------------

    def new_prompt(self, namespace: Namespace = (), program: str = "") -> TokenPrompt:
        """An empty prompt; see `TokenPrompt`."""
        return TokenPrompt(self.tokenizer, self.template, self.cache, namespace, program, self.room.limit)

    @overload
    def submit(self, request: GenerateTokens) -> Answer[GeneratedTokens]: ...

    @overload
    def submit(self, request: ScoreOptions) -> Answer[ScoredOptions]: ...

    def submit(self, request: Request) -> Answer[Any]:
        """Take a request; its answer is filled in by later steps.

        Raises:
            RequestError: the request is larger than the KV pool or the model's context.
            CacheFault: the cache has lost count in an earlier step.
        """
        if self._fault is not None:
            raise CacheFault(str(self._fault))
        prompt = request.prompt
        if not prompt.flush():
            prompt.extend([self.start_token])
        self.room.refuse_oversized(request)
        answer: Answer[Any] = Answer(request)
        job = self.job(answer, request)
        if isinstance(job, GenerateJob):
            job.begin()
        if not answer.is_done:
            self._scheduler.add(job)
            answer.on_cancel = lambda: self._drop(job, request)
        return answer

    def _drop(self, job: Job, request: Request) -> None:
        """End a job that nobody waits for; what was not read of its prompt was not asked for."""
        request.usage.requested_tokens -= job.unread
        self._scheduler.drop(job)

    def job(self, answer: Answer[Any], request: Request) -> Job:
        """What serves a request."""
        if isinstance(request, GenerateTokens):
            return GenerateJob(answer, request, self.cache, self.vocabulary)
        return ScoreJob(answer, request, self.cache)

    def view(self) -> CacheView:
        """What is cached, to be looked at."""
        return view(self.tree, self._spelled)

    def _spelled(self, tokens: Ordered[int]) -> str:
        """The text of tokens, control tokens by their names."""
        names = {token: name for name, token in self.tokenizer.special_tokens.items()}
        pieces = (names[token].encode() if token in names else self.vocabulary.token_bytes[token] for token in tokens)
        return b"".join(pieces).decode(errors="replace")

    @property
    def start_token(self) -> int:
        """What stands in an empty prompt, for a model needs something to go on from."""
        return self.tokenizer.eos_ids[0] if self.tokenizer.bos_id is None else self.tokenizer.bos_id

    @property
    def clock(self) -> int:
        """The time by which reads are expected: how many requests have come to wait."""
        return self._scheduler.asked

    def expect(self, tokens: TokenIds, at: int, namespace: Namespace = ()) -> ExpectedRead:
        """Tell the cache that a prompt will begin with `tokens`. Only what is cached now is kept for it, and only the
        order of eviction depends on it: a wrong expectation costs time, never a result.

        Args:
            tokens: int32 [N], the prompt's beginning.
            at: when, by `clock`.
            namespace: of the prompt.

        Returns:
            To be settled when the prompt is there, or won't be.
        """
        return ExpectedRead(self.tree, self.tree.find(tokens, namespace), at)

    def pin(self, tokens: Ordered[int], namespace: Namespace = ()) -> Pin:
        """Keep a prefix in the cache until `unpin`, as far as half the pool allows; what is not computed yet, from
        when it is."""
        return self._pins.add(np.array(tokens, dtype=np.int32), namespace)

    def unpin(self, pin: Pin) -> None:
        """Let go of what `pin` keeps."""
        self._pins.release(pin)

    # Stepping ----------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Run one model pass over everything that can go on; where nothing can, the youngest request fails.

        What fails on the way fails the answers it carried, and the others go on. Where the cache has lost count,
        every answer under way fails, and later requests are refused. What interrupts (`KeyboardInterrupt`) passes, and
        the next step goes on.

        Returns:
            Whether anything was waiting or running.
        """
        started = perf_counter()
        scheduler = self._scheduler
        if scheduler.is_idle:
            return False
        try:
            work = scheduler.next_work()
            if work:
                self._run(work, started)
            else:
                self._fail(self._no_room(), scheduler.youngest)
            scheduler.retire()
            self._refuse_lost_slots()
        except Exception as error:
            self._give_up(error)
        except BaseException:
            self._restart()
            raise
        return True

    def _restart(self) -> None:
        """Go back to before the step; an interrupt may have met the cache in the middle of something."""
        try:
            self._scheduler.restart()
        except Exception as error:
            self._give_up(error)

    def _run(self, work: Ordered[tuple[Job, list[Lane]]], started: float) -> None:
        """One model pass over the planned work, and over drafts of what may follow."""
        jobs, drafting_seconds = [job for job, _ in work], 0.0
        try:
            if self._speculation is not None:
                drafting_seconds -= self._speculation.model_seconds
                work = self._speculation.extend(work, self._tokens_a_step)
                drafting_seconds += self._speculation.model_seconds
            lanes = [lane for _, planned in work for lane in planned]
            batch = build_batch(lanes, self._attention, self.model.shape.windows)
            planned = perf_counter()
            logits = self.model.forward(batch, self.pool)
        except Exception as error:
            self._fail(PassError.of("the model pass", error), *jobs)
            return
        passed = perf_counter()
        for job in jobs:
            job.computed()
        timed = TimedLogits(logits)
        self._deliver(work, timed)
        if self._speculation is not None:
            self._speculation.settle(jobs)
        self._pins.update()
        model_seconds = drafting_seconds + passed - planned + timed.seconds
        self._account(jobs, lanes, model_seconds, perf_counter() - started - model_seconds)

    def _deliver(self, work: Ordered[tuple[Job, list[Lane]]], logits: TimedLogits) -> None:
        """Give each job its rows: generating jobs sample together, scoring jobs read theirs."""
        row = 0
        choices: list[Choice] = []
        for job, lanes in work:
            rows = range(row, row + sum(lane.rows for lane in lanes))
            with self._failing("reading the scores" if isinstance(job, ScoreJob) else "the constraint", job):
                if rows and isinstance(job, GenerateJob):
                    choices.append(Choice(job, rows))
                elif rows and isinstance(job, ScoreJob):
                    with self._uninterrupted(job):
                        job.accept(logits.rows(rows))
            row = rows.stop
        with self._failing("reading the logits", *(choice.job for choice in choices)):
            reader = RowReader(choices, logits, self.model.shape.vocab_size)
            for choice in choices:
                with self._failing("taking the next token", choice.job):
                    self._accept(choice, reader)

    def _accept(self, choice: Choice, reader: RowReader) -> None:
        """Take the next token, and as many more as a draft has guessed."""
        job, goes_on = choice.job, True
        while goes_on:
            values = reader.values(choice)
            token = sample(values, choice.sampling_row)
            logprob = logprob_of(token, values) if job.wants_logprobs else 0.0
            with self._uninterrupted(job):
                job.accept(token, logprob)
            goes_on = choice.goes_on()

    @contextmanager
    def _failing(self, what: str, *jobs: Job) -> Iterator[None]:
        """What goes wrong inside fails the answers of these jobs alone. A constraint, for one, may prove too complex
        for its limits while an answer is written."""
        try:
            yield
        except (ConstraintError, RequestError, WatcherError) as error:
            self._fail(error, *jobs)
        except Exception as error:
            self._fail(PassError.of(what, error), *jobs)

    @contextmanager
    def _uninterrupted(self, job: Job) -> Iterator[None]:
        """An answer that is interrupted while it takes what the model said can't go on."""
        try:
            yield
        except Exception:
            raise
        except BaseException as interrupt:
            self._fail(RequestError(f"interrupted ({type(interrupt).__name__}) while the answer was written"), job)
            raise

    def _fail(self, error: ConstraintError | RequestError | WatcherError, *jobs: Job) -> None:
        for job in jobs:
            if not job.answer.is_done:
                job.release()
                job.answer.fail(error)

    def _give_up(self, error: Exception) -> None:
        """Serve nothing any more: what failed had the cache in its hands."""
        what = f"internal error: the cache has lost count: {type(error).__name__}: {error}"
        self._fault = fault = error if isinstance(error, CacheFault) else CacheFault(what)
        for job in self._scheduler.forget():
            if not job.answer.is_done:
                job.answer.fail(fault)

    def _no_room(self) -> RequestError:
        return RequestError(
            f"this does not fit into the KV pool of {self.cache.allocator.size} tokens beside what is pinned or "
            f"under way ({self.tree.locked} tokens); give a larger --kv-budget"
        )

    def _account(self, jobs: Ordered[Job], lanes: Ordered[Lane], model_seconds: float, host_seconds: float) -> None:
        prefilling = any(len(lane.tokens) - lane.drafted > 1 for lane in lanes)
        usages = {id(usage): usage for usage in (self.usage, *(job.answer.request.usage for job in jobs))}
        for usage in usages.values():
            usage.forwards += 1
            usage.host_seconds += host_seconds
            if prefilling:
                usage.prefill_seconds += model_seconds
            else:
                usage.decode_seconds += model_seconds
            usage.peak_kv_tokens = max(usage.peak_kv_tokens, self.cache.used)
            usage.evicted_tokens = self.cache.evicted_tokens

    def _refuse_lost_slots(self) -> None:
        """Stop before a leak grows: when nothing runs, each slot is free or in the tree, and what is locked is
        pinned."""
        if not self._scheduler.is_idle:
            return
        free, cached, size = self.cache.allocator.available, self.tree.size, self.cache.allocator.size
        if free + cached != size:
            raise CacheFault(f"internal error: {free} free and {cached} cached slots are not the {size} of the pool")
        if self.tree.locked != self.tree.pinned:
            raise CacheFault(
                f"internal error: {self.tree.locked} cached tokens are locked, {self.tree.pinned} of them pinned, and "
                "nothing runs"
            )

    def check(self) -> None:
        """Assert that nothing has leaked; only when idle."""
        assert self._scheduler.is_idle
        check_tree(self.tree, in_use=0)
