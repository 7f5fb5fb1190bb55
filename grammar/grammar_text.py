"""A context-free grammar as its author wrote it: its rules, where they stand, and which of them come to an end."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.limits import MOST_RULES, MOST_SPECIFICATION

QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"i?|//[^\n]*|/(?:\\.|[^/\\\n])+/[a-z]*')
"""Strings, comments and expressions in a grammar."""

FOREIGN = re.compile(r"%[a-z]+\s*\{")
"""Where something in another language begins (`%json {...}`)."""

RULE = re.compile(r"^[ \t]*[?!]*(?P<name>[A-Za-z_][A-Za-z0-9_]*)[^\n:|%]*:", re.MULTILINE)
"""Where a rule or a token begins."""

DIRECTIVE = re.compile(r"^[ \t]*%(?P<name>[a-z]+)", re.MULTILINE)

PART = re.compile(r"->\s*\w+|[A-Za-z_]\w*|\{\s*0?\s*,[^}]*\}|~\s*0\b|[\"|()\[\]?*]")
"""What decides whether a rule comes to an end."""

START = re.compile(r"(?<![\w.@])start(?!\w)")


@dataclass(frozen=True)
class Rule:
    """A rule or a token.

    Attributes:
        name: what others call it.
        line: where it begins, from 1.
        body: what stands behind its colon, texts and expressions blanked.
    """

    name: str
    line: int
    body: str


@dataclass(frozen=True)
class GrammarText:
    """The text of a grammar in llguidance's dialect of Lark."""

    text: str

    @cached_property
    def _blanked(self) -> str:
        """The text with all that stands in quotation marks, comments and other languages blanked, in its place."""
        text = QUOTED.sub(lambda found: _blank(found[0], '"' if found[0][:2] != "//" else " "), self.text)
        at = 0
        while found := FOREIGN.search(text, at):
            at = _closing(text, found.end())
            text = text[: found.start()] + _blank(text[found.start() : at], '"') + text[at:]
        return text

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """All rules and tokens, in order."""
        return tuple(
            Rule(found["name"], self._blanked.count("\n", 0, found.start()) + 1, self._blanked[found.end() : end])
            for found, end in self._statements(RULE)
        )

    def _statements(self, kind: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
        """Where statements of a kind begin, each with where it ends."""
        starts = sorted(found.start() for pattern in (RULE, DIRECTIVE) for found in pattern.finditer(self._blanked))
        ends = dict(pairwise([*starts, len(self._blanked)]))
        for found in kind.finditer(self._blanked):
            yield found, ends[found.start()]

    def rule_at(self, line: int) -> str | None:
        """The name of the rule that stands on a line; None where none does."""
        is_directive = DIRECTIVE.match(self._blanked.splitlines()[line - 1]) is not None
        return None if is_directive else next((rule.name for rule in reversed(self.rules) if rule.line <= line), None)

    def check(self) -> None:
        """Check what llguidance doesn't.

        Raises:
            ConstraintError: the grammar is too long, has too many rules, something that is no text, or a rule that
                comes to no end whichever way is taken in it.
        """
        if len(self.text) > MOST_SPECIFICATION:
            raise ConstraintError(f"the grammar is longer than {MOST_SPECIFICATION} characters")
        if len(self.rules) > MOST_RULES:
            raise ConstraintError(
                f"the grammar has {len(self.rules)} rules and tokens, more than {MOST_RULES}: write some in others"
            )
        if "<" in self._blanked:
            line = self._blanked.count("\n", 0, self._blanked.index("<")) + 1
            raise ConstraintError("a control token (<...>) is not supported: answers are text", line)
        self._check_ends()

    def _check_ends(self) -> None:
        rules = [rule for rule in self.rules if rule.name[0].islower() or rule.name[0] == "_"]
        users: dict[str, list[Rule]] = {}
        for rule in rules:
            for part in dict.fromkeys(PART.findall(rule.body)):
                users.setdefault(part, []).append(rule)
        endless = {rule.name for rule in rules}
        waiting = rules
        while waiting:
            ended = {rule.name for rule in waiting if rule.name in endless and _ends(rule.body, endless)}
            endless -= ended
            waiting = [user for name in ended for user in users.get(name, ())]
        if endless:
            raise ConstraintError(
                "it leads only back to itself, so no text of it ends: give it another option",
                _in_circle([rule for rule in rules if rule.name in endless]).line,
            )

    def with_ignored_ends(self) -> str:
        """The text, with what it ignores before its first token and behind its last too, as in Lark."""
        ignored = [
            self.text[found.end() : end].strip()
            for found, end in self._statements(DIRECTIVE)
            if found["name"] == "ignore"
        ]
        if not ignored:
            return self.text
        inside, token = self._unused("inside"), self._unused("IGNORED")
        text = self.text
        for found in reversed([*START.finditer(self._blanked)]):
            text = text[: found.start()] + inside + text[found.end() :]
        options = " | ".join(f"({option})" for option in ignored)
        return f"{text}\nstart: {token}* {inside} {token}*\n{token}: {options}\n"

    def _unused(self, name: str) -> str:
        while name in self.text:
            name += "_"
        return name


def _in_circle(endless: list[Rule]) -> Rule:
    """Of rules that don't end, one that leads back to itself."""
    by_name = {rule.name: rule for rule in endless}
    rule, met = endless[0], set[str]()
    while rule.name not in met:
        met.add(rule.name)
        rule = next(by_name[part] for part in PART.findall(rule.body) if part in by_name)
    return rule


def _blank(text: str, first: str) -> str:
    return first + re.sub(r"[^\n]", " ", text[1:])


def _closing(text: str, at: int) -> int:
    """Behind the brace that closes the one before `at`."""
    depth = 1
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def _ends(body: str, endless: set[str]) -> bool:
    """Whether some way through a rule's body avoids the rules that don't end."""
    levels = [[False, True]]  # one a bracket: whether an option ends, and whether the one under way may
    last = True
    for part in PART.findall(body):
        if part.startswith(("?", "*", "{", "~")):
            last = True
            continue
        levels[-1][1] &= last
        last = True
        if part in "([":
            levels.append([False, True])
        elif part == "|":
            levels[-1] = [levels[-1][0] or levels[-1][1], True]
        elif part in ")]" and len(levels) > 1:
            has_ended, may_end = levels.pop()
            last = has_ended or may_end or part == "]"
        else:
            last = part not in endless
    levels[-1][1] &= last
    return any(levels[-1])
