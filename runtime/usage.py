"""The numbers every run reports."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from promptlang.runtime.prompt_trie import PromptEdge, PromptTrie


@dataclass
class Usage:
    """Counters of one run (or of one row of one). Token counts unless they say otherwise; times in seconds.

    Attributes:
        requested_tokens: prompt tokens of all model calls, nothing shared.
        computed_tokens: prompt tokens that went through the model.
        generated_tokens: sampled tokens.
        forced_tokens: tokens a constraint forced, appended without asking the model.
        option_tokens: distinct tokens of what `select` and `score` chose from; what options share counts once.
        unscored_tokens: those of them that were never scored, for nothing that goes on from there could win.
        drafted_tokens: tokens that went through the model as a guess at what an answer goes on with.
        accepted_tokens: those of them that it went on with.
        forwards: model passes this run took part in.
        calls: model calls (answers asked for).
        cut_answers: answers that `max_tokens` ended.
        overruled_answers: answers that their type ended where the model went on with more than white space.
        peak_kv_tokens: the most KV slots in use at once, by the whole engine.
        evicted_tokens: cached tokens given up for room, by the whole engine.
        preemptions: answers interrupted for room and resumed.
    """

    requested_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    forced_tokens: int = 0
    option_tokens: int = 0
    unscored_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    forwards: int = 0
    calls: int = 0
    cut_answers: int = 0
    overruled_answers: int = 0
    peak_kv_tokens: int = 0
    evicted_tokens: int = 0
    preemptions: int = 0
    load_seconds: float = 0.0
    compile_seconds: float = 0.0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    host_seconds: float = 0.0
    prompts: PromptTrie = field(default_factory=PromptTrie, repr=False)

    @property
    def optimal_tokens(self) -> int:
        """Distinct tokens in the trie of all prompts, without those that have their KV because the model wrote them;
        of prompts beyond `prompt_trie.MOST_BYTES`, what is new counts each time it comes."""
        return self.prompts.size

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that were not computed again."""
        return self.requested_tokens - self.computed_tokens

    def ask(self, prompt: Sequence[int]) -> PromptEdge:
        """Count a model call with this prompt. Returns where it ends in the trie of prompts."""
        self.calls += 1
        self.requested_tokens += len(prompt)
        return self.prompts.add(prompt)

    def wrote(self, tokens: Sequence[int]) -> None:
        """Note what has its KV when an answer ends: the prompt, and what was written behind it."""
        self.prompts.add_written(tokens)

    def add_tokens(self, run: "Usage") -> None:
        """Count a run's calls and tokens too. Its passes and times are left out: runs share them."""
        for name in (
            "requested_tokens",
            "computed_tokens",
            "generated_tokens",
            "forced_tokens",
            "option_tokens",
            "unscored_tokens",
            "drafted_tokens",
            "accepted_tokens",
            "calls",
            "cut_answers",
            "overruled_answers",
            "preemptions",
        ):
            setattr(self, name, getattr(self, name) + getattr(run, name))
        self.prompts.merge(run.prompts)

    def as_dict(self) -> dict[str, int | float]:
        """The figures by the names reports use, in a fixed order."""
        return {
            "requested_tokens": self.requested_tokens,
            "optimal_tokens": self.optimal_tokens,
            "computed_tokens": self.computed_tokens,
            "cached_tokens": self.cached_tokens,
            "generated_tokens": self.generated_tokens,
            "forced_tokens": self.forced_tokens,
            "option_tokens": self.option_tokens,
            "unscored_tokens": self.unscored_tokens,
            "drafted_tokens": self.drafted_tokens,
            "accepted_tokens": self.accepted_tokens,
            "forwards": self.forwards,
            "calls": self.calls,
            "cut_answers": self.cut_answers,
            "overruled_answers": self.overruled_answers,
            "peak_kv_tokens": self.peak_kv_tokens,
            "evicted_tokens": self.evicted_tokens,
            "preemptions": self.preemptions,
            "load_seconds": round(self.load_seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "prefill_seconds": round(self.prefill_seconds, 3),
            "decode_seconds": round(self.decode_seconds, 3),
            "host_seconds": round(self.host_seconds, 3),
        }
