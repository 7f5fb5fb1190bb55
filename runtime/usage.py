"""The numbers every run reports."""

from collections.abc import Sequence
from dataclasses import dataclass, field


class PromptTrie:
    """The trie of all prompts: its distinct tokens are what must be computed at least, but for those the model
    wrote."""

    def __init__(self) -> None:
        self._edges: dict[tuple[int, int], int] = {}
        self._written: set[int] = set()

    @property
    def size(self) -> int:
        """Distinct tokens, without those that the model wrote before any prompt held them."""
        return len(self._edges) - len(self._written)

    def add(self, tokens: Sequence[int], node: int = 0) -> int:
        """A prompt, or how one goes on behind `node`. Returns the node at its end."""
        for token in tokens:
            node = self._edges.setdefault((node, token), len(self._edges) + 1)
        return node

    def add_written(self, tokens: Sequence[int]) -> None:
        """A prompt and what the model wrote behind it."""
        known = len(self._edges)
        self.add(tokens)
        self._written.update(range(known + 1, len(self._edges) + 1))

    def merge(self, other: "PromptTrie") -> None:
        """Count another trie's prompts too."""
        nodes = {0: 0}
        for (node, token), child in other._edges.items():
            edge = nodes[node], token
            if edge not in self._edges and child in other._written:
                self._written.add(len(self._edges) + 1)
            nodes[child] = self._edges.setdefault(edge, len(self._edges) + 1)


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
        forwards: model passes this run took part in.
        calls: model calls (answers asked for).
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
    forwards: int = 0
    calls: int = 0
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
        """Distinct tokens in the trie of all prompts, without those that have their KV because the model wrote them."""
        return self.prompts.size

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that were not computed again."""
        return self.requested_tokens - self.computed_tokens

    def ask(self, prompt: Sequence[int]) -> int:
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
            "calls",
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
            "forwards": self.forwards,
            "calls": self.calls,
            "peak_kv_tokens": self.peak_kv_tokens,
            "evicted_tokens": self.evicted_tokens,
            "preemptions": self.preemptions,
            "load_seconds": round(self.load_seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "prefill_seconds": round(self.prefill_seconds, 3),
            "decode_seconds": round(self.decode_seconds, 3),
            "host_seconds": round(self.host_seconds, 3),
        }
