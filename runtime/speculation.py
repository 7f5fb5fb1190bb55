"""Which drafts go through the model beside what has to: as much as is likely to pay.

A pass of a few rows takes little longer than one of one row, for it reads the same weights. So tokens that may come
next are computed along, and where the answer, chosen as ever, comes to them, the pass has said what follows (Leviathan
et al., arXiv:2211.17192; Chen et al., arXiv:2302.01318). A token's noise is fixed by its place, so the answer is the
same token for token, whatever was drafted.

What is likely is learnt: of drafts that were found in the same way, by the same program, how many tokens held. How much
to draft follows from that and from what a pass costs by its rows. What is found is compared with what is written even
where it isn't drafted, so that nothing has to be tried in vain.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from promptlang.runtime.acceptance import MODEL_GUESS, MODEL_WEIGHT, Acceptance, Acceptances, Source
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.generation import GenerateJob
from promptlang.runtime.guessing import Guesser
from promptlang.runtime.lookup import Answers, Found, find
from promptlang.runtime.models.pass_costs import PassCosts
from promptlang.runtime.scheduler import Job
from promptlang.runtime.step_price import NOTHING, Amount, StepPrice

MOST = 32
"""Tokens in a draft."""

MOST_PASSES = 8
"""Passes of the drafting model before one of the right one."""

Work = Sequence[tuple[Job, list[Lane]]]
"""What goes through the model in a step: jobs with their lanes."""

Writing = Mapping[GenerateJob, Lane]
"""Answers that may have a draft, with the lanes that reach their ends."""


@dataclass(frozen=True)
class Drafting:
    """What writes ahead, and what a pass of that costs in the unit of the right model's passes."""

    guesser: Guesser
    costs: PassCosts


@dataclass(frozen=True)
class _Draft:
    """What may stand behind position `end` of an answer, and where it is noted whether it did."""

    job: GenerateJob
    end: int
    tokens: list[int]
    acceptance: Acceptance


class Speculation:
    """Drafts for the answers of an engine.

    Args:
        costs: of the model's passes.
        remembers: whether drafts come from other answers too, or only from an answer's own text.
        drafting: writes ahead where nothing better is found; None where there is no such model.
    """

    def __init__(self, costs: PassCosts, remembers: bool = True, drafting: Drafting | None = None) -> None:
        self._costs = costs
        self._answers = Answers() if remembers else None
        self._drafting = drafting
        self._of_model = Acceptance(MODEL_GUESS, MODEL_WEIGHT)
        self._of_found = Acceptances()
        self._drafts: list[_Draft] = []

    @property
    def model_seconds(self) -> float:
        """What the drafting model has taken so far."""
        return self._drafting.guesser.seconds if self._drafting is not None else 0.0

    def extend(self, work: Work, tokens_a_step: int) -> Work:
        """The work with drafts behind the lanes that reach their answer's end.

        Args:
            work: as planned; nothing of it changes.
            tokens_a_step: the most tokens in the pass.
        """
        self._drafts = []
        price = StepPrice(
            self._costs,
            rows=sum(len(lane.tokens) for _, lanes in work for lane in lanes),
            writers=sum(isinstance(job, GenerateJob) and lanes[-1].wants == "last" for job, lanes in work),
            room=min(tokens_a_step, self._costs.alike_rows or tokens_a_step),
        )
        if not price.can_pay:
            return work
        writing = {job: lanes[-1] for job, lanes in work if isinstance(job, GenerateJob) and self._may_have_draft(job)}
        drafted = self._look_up(writing, price)
        drafted |= self._write_ahead({job: lane for job, lane in writing.items() if job not in drafted}, price)
        return [(job, [drafted[job]] if job in drafted else lanes) for job, lanes in work]

    def _may_have_draft(self, job: GenerateJob) -> bool:
        """Whether a draft could be of use, and leaves all that the answer depends on as it is."""
        return job.most_drafted > 0 and not (self._costs.alike_rows and job.reads_prompt)

    def settle(self, jobs: Iterable[Job]) -> None:
        """Learn from what the step has shown, and remember the answers that it ended.

        Args:
            jobs: all that went through the model.
        """
        for draft in self._drafts:
            draft.job.sequence.drop_draft()
            written = draft.job.sequence.tokens[draft.end :]
            pairs = list(zip(draft.tokens, written, strict=False))
            held = next((at for at, (guess, token) in enumerate(pairs) if guess != token), len(pairs))
            draft.acceptance.saw(held, failed=int(held < len(pairs)))
        self._drafts = []
        for job in jobs:
            if self._answers is not None and isinstance(job, GenerateJob) and job.answer.result is not None:
                self._answers.add(job.namespace, job.written)

    # What was said before ----------------------------------------------------------------------------

    def _look_up(self, writing: Writing, price: StepPrice) -> dict[Job, Lane]:
        """Drafts that are found. Where writing ahead gains more, they are left."""
        least = self._best_passes(writing, price).gain
        drafted: dict[Job, Lane] = {}
        for job, lane in writing.items():
            found = self._found(job)
            self._drafts += found
            if not found:
                continue
            best = max(found, key=lambda draft: draft.acceptance.chance)
            most = min(len(best.tokens), job.most_drafted, price.room - price.rows)
            amount = price.best_length(best.acceptance.chance, most) if most > 0 else NOTHING
            if amount.size and amount.gain >= least and job.sequence.reserve_draft(amount.size):
                drafted[job] = job.draft(lane, best.tokens[: amount.size])
                price.rows += amount.size
        return drafted

    def _found(self, job: GenerateJob) -> list[_Draft]:
        """What may come next, from each place to look in."""
        text = job.sequence.ids
        places: list[tuple[Source, Found | None]] = [("text", find(text, text, MOST))]
        if self._answers is not None:
            places.append(("answers", self._answers.find(job.namespace, text, MOST)))
        return [
            _Draft(job, len(text), found.tokens.tolist(), self._of_found.of(job.program, source, found.length))
            for source, found in places
            if found is not None
        ]

    # What a model writes ahead -----------------------------------------------------------------------

    def _write_ahead(self, writing: Writing, price: StepPrice) -> dict[Job, Lane]:
        """Drafts by the drafting model, for all answers together."""
        passes = self._best_passes(writing, price).size
        if self._drafting is None or not passes:
            self._of_model.rest()
            return {}
        answers = [(job, lane) for job, lane in writing.items() if job.sequence.reserve_draft(passes)]
        drafted: dict[Job, Lane] = {}
        for (job, lane), tokens in zip(answers, self._drafting.guesser.write(answers, passes), strict=True):
            self._drafts.append(_Draft(job, job.sequence.end, tokens, self._of_model))
            drafted[job] = job.draft(lane, tokens)
        return drafted

    def _best_passes(self, writing: Writing, price: StepPrice) -> Amount:
        """How many passes of the drafting model pay best. It reads no prompts."""
        jobs, reads = len(writing), sum(len(lane.tokens) for lane in writing.values())
        if self._drafting is None or not jobs or reads > self._drafting.costs.rows[-1]:
            return NOTHING
        most = min(MOST_PASSES, (price.room - price.rows) // jobs, *(job.most_drafted for job in writing))
        return price.best_passes(self._of_model.chance, jobs, most, self._drafting.costs, reads)
