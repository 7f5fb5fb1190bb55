"""Passes over graphs: what a program means stays, what it costs falls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from promptlang.compiler.graph import Graph, walk
from promptlang.compiler.passes.dead import dead
from promptlang.compiler.passes.early import early
from promptlang.compiler.passes.findings import Finding, Pass, Places
from promptlang.compiler.passes.fold import fold
from promptlang.compiler.passes.hoist import hoist
from promptlang.compiler.passes.last_use import last_use
from promptlang.compiler.passes.merge import merge
from promptlang.compiler.passes.next_calls import next_calls

__all__ = ["PASSES", "Finding", "Optimised", "UnknownPassError", "optimise", "pass_names"]

PASSES: Mapping[str, Pass] = {
    "hoist": hoist,
    "fold": fold,
    "dead": dead,
    "merge": merge,
    "early": early,
    "last_use": last_use,
    "next_calls": next_calls,
}
"""All passes, in the order in which they run."""


class UnknownPassError(Exception):
    """A name that no pass has; `str()` lists those there are."""


@dataclass(frozen=True)
class Optimised:
    """Programs after some passes.

    Attributes:
        graphs: by the names callers use.
        findings: what was done, by program, in the order it was done in.
    """

    graphs: dict[str, Graph]
    findings: dict[str, list[Finding]] = field(default_factory=dict)


def optimise(graphs: Mapping[str, Graph], names: Sequence[str] = tuple(PASSES)) -> Optimised:
    """Run passes over all programs of a bundle.

    Args:
        graphs: from `lower`; not changed.
        names: which passes; they run in the order of `PASSES`.
    """
    current = dict(graphs)
    findings: dict[str, list[Finding]] = {name: [] for name in graphs}
    for name, run in PASSES.items():
        if name not in names:
            continue
        for program, result in run(current).items():
            current[program] = result.graph
            findings[program] += result.findings
    settled = {name: _settled(found, graphs[name], current[name]) for name, found in findings.items()}
    return Optimised(current, settled)


def _settled(findings: list[Finding], before: Graph, after: Graph) -> list[Finding]:
    """The findings with the places of what was removed as they are after all passes."""
    removed = {finding.node.id for finding in findings if finding.removed}
    if not removed:
        return findings
    kept = {node.id for node in walk(after.body)}
    places = Places(before.body)
    return [places.settled(finding, kept, removed) if finding.removed else finding for finding in findings]


def pass_names(text: str) -> tuple[str, ...]:
    """The passes that `all`, `none` or a list of names with commas between means.

    Raises:
        UnknownPassError: a name is no pass's.
    """
    if text == "all":
        return tuple(PASSES)
    if text == "none":
        return ()
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in PASSES]
    if unknown:
        raise UnknownPassError(f"no pass is called {unknown[0]!r}; there are {', '.join(PASSES)}, or all, or none")
    return names
