"""Small random programs that run: every variable has a value where it is read."""

from dataclasses import dataclass, field
from itertools import count

from hypothesis import strategies as st

WORDS = ("fox", "dog", "lazy hill")
ASKED = """
program ask(word: str) -> str:
    "The ${word}"
    said = gen(max_tokens=2)
    return said

program draw(word: str) -> str:
    "A ${word}"
    said = gen(max_tokens=2, temperature=1)
    return said
"""


@dataclass
class _Writing:
    """A program being written; `draw` decides."""

    draw: st.DrawFn
    numbers: "count[int]" = field(default_factory=count)

    def block(self, known: list[str], depth: int, kinds: tuple[str, ...]) -> tuple[list[str], list[str]]:
        """Some lines, and the text variables that have a value after them."""
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 3))):
            known = self._statement(lines, known, self.draw(st.sampled_from(kinds)), depth)
        return lines, known

    def _statement(self, lines: list[str], known: list[str], kind: str, depth: int) -> list[str]:
        name = f"v{next(self.numbers)}"
        word = self.draw(st.sampled_from(known))
        heat = self.draw(st.sampled_from(["", ", temperature=1"]))
        inner = SIMPLE if depth else ALL
        match kind:
            case "text":
                lines.append(self.draw(st.sampled_from([f'" The ${{{word}}}"', '" jumps over"', '" and ${1 + 1}"'])))
                return known
            case "gen":
                lines.append(f"{name} = gen(max_tokens={self.draw(st.integers(1, 3))}{heat})")
            case "select":
                lines.append(f'{name} = select("fox", "the dog"{heat})')
            case "let":
                lines.append(f'{name} = {word} + "!"')
            case "call":
                lines.append(f"{name} = {self.draw(st.sampled_from(['ask', 'draw']))}({word})")
            case "if":
                self._nested(lines, self.draw(st.sampled_from([f"if len({word}) > 4:", "if 1 > 2:"])), known, inner)
                return known
            case "for":
                self._nested(lines, f"for item{name} in range(2):", known, inner)
                return known
            case "fork":
                return self._fork(lines, known, name, inner)
            case "beam":
                return self._beam(lines, known, name, inner)
            case "require":
                lines.append(f"{name} = gen(max_tokens=2, temperature=2)")
                inside, known = self.block([*known, name], 1, SIMPLE)
                lines += [*inside, f'require "e" not in {name} else retry 64']
                return known
            case _:
                raise AssertionError(kind)
        return [*known, name]

    def _nested(self, lines: list[str], head: str, known: list[str], kinds: tuple[str, ...]) -> list[str]:
        inside, after = self.block(known, 1, kinds)
        lines += [head, *(f"    {line}" for line in inside)]
        return after

    def _fork(self, lines: list[str], known: list[str], name: str, kinds: tuple[str, ...]) -> list[str]:
        shape = self.draw(st.sampled_from(["3", 'each in ["a", "b"]', "arms"]))
        field_name = f"end{name}"
        if shape == "arms":
            lines.append(f"fork as {name}:")
            for arm in ("one", "two"):
                inside, after = self.block(known, 1, kinds)
                inside.append(f"{field_name} = {self.draw(st.sampled_from(after))}")
                lines += [f"    arm {arm}:", *(f"        {line}" for line in inside)]
            read = [f"{name}.one.{field_name}", f"{name}.two.{field_name}"]
            branch = f"{name}.two"
        else:
            targets = shape.replace("each", f"each{name}")
            after = self._nested(lines, f"fork {targets} as {name}:", known, kinds)
            lines.append(f"    {field_name} = {self.draw(st.sampled_from(after))}")
            if self.draw(st.booleans()):
                lines.append(f"    keep 1 by len({field_name})")
            read = [f"{name}[0].{field_name}"]
            branch = f"{name}[0]"
        if self.draw(st.booleans()):
            lines.append(f"adopt {branch}")
        value = self.draw(st.sampled_from(read))
        lines.append(f"r{name} = {value}")
        return [*known, f"r{name}"]

    def _beam(self, lines: list[str], known: list[str], name: str, kinds: tuple[str, ...]) -> list[str]:
        by = self.draw(st.sampled_from([f"len(end{name})", f"len(last{name})", "0"]))
        lines.append(f'last{name} = "none"')
        after = self._nested(lines, f"beam depth=2 width=2 branch=2 by {by} as {name}:", [*known, f"last{name}"], kinds)
        lines.append(f"    end{name} = {self.draw(st.sampled_from(after))}")
        lines.append(f"    last{name} = gen(max_tokens=1, temperature=1)")
        if self.draw(st.booleans()):
            lines.append(f"adopt {name}[0]")
        lines.append(f"r{name} = {name}[1].{self.draw(st.sampled_from(['end', 'last']))}{name}")
        return [*known, f"r{name}"]


SIMPLE = ("text", "gen", "select", "let", "call")
ALL = (*SIMPLE, "if", "for", "fork", "fork", "beam", "require")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a file whose program `main` takes a `word`."""
    lines, known = _Writing(draw).block(["word"], 0, ALL)
    returned = draw(st.lists(st.sampled_from(known), max_size=3))
    body = ['"The fox"', *lines, f"return [{', '.join(returned)}]"]
    return "program main(word: str):\n" + "".join(f"    {line}\n" for line in body) + ASKED
