"""Random programs that pass the checker: names that hide one another, guards, loops around forks, faults, branches
that are printed whole.

Names tell types: `a0`, `tone`, `word` are texts, `n0`, `size` whole numbers, `b0` the branches of a fork, `c0` its
arms. Whatever a branch binds, it binds a text `end` last.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

TEXTS = ("a0", "a1", "a2", "tone", "word")
NUMBERS = ("n0", "n1", "size")
FORKS = ("b0", "b1", "b2")
MOST_STATEMENTS = 40
DEEPEST = 3

CONSTS = """
const tone = "calm"
const size = 2
const words = ["fox", "dog"]
const pairs = [["a", 1], ["b", 0]]

"""

CALLED = """
fragment say(tone: str, a0: str = "well"):
    " ${tone} ${a0} ${size}"
    for word in words:
        " ${word}"

fragment answer(word: str):
    fork tone in words as b0:
        " ${tone}"
        end = gen(max_tokens=1, temperature=1)
    unread = ask(word)
    " ${b0}"
    a0 = gen(max_tokens=1)

program ask(word: str) -> str:
    "The ${word}"
    a0 = gen(max_tokens=2)
    return a0

program draw(word: str):
    "A ${word}"
    a0 = gen(max_tokens=2, temperature=1)
    n0 = gen(int in 0..9, temperature=2)
    return a0

program rate(n0: int in 1..5, word: str = tone) -> str:
    "Rate ${n0} ${word}"
    a0 = gen(max_tokens=1, temperature=1)
    return a0

program divide(n0: int):
    a0 = gen(max_tokens=1, temperature=1)
    n1 = 10 // n0
    return a0 + str(n1)

program both(word: str) -> str:
    a0 = gen(max_tokens=2, temperature=1)
    n1 = len(a0)
    a1 = ask(word)
    a2 = draw(a0)
    unread = ask(a0)
    a3 = ask("the ${word}")
    return a1 + a2 + a3

program tell(word: str) -> str:
    log "told ${word}"
    return word + "."
"""


@dataclass(frozen=True)
class _Place:
    """Where a statement stands."""

    depth: int = 0
    in_fork: bool = False
    in_loop: bool = False
    in_retry: bool = False


@dataclass
class _Known:
    """The names that have a value; of a fork, the names that all its branches bind."""

    names: dict[str, frozenset[str]]

    def copy(self) -> "_Known":
        return _Known(dict(self.names))

    def among(self, pool: tuple[str, ...]) -> list[str]:
        return [name for name in pool if name in self.names]

    def forks(self) -> list[str]:
        return [name for name in self.names if name[0] in "bc"]


@dataclass
class _Writing:
    """A program being written; `random` decides."""

    random: Random
    left: int = MOST_STATEMENTS
    bound: list[set[str]] = field(default_factory=lambda: [set()])

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def bind(self, known: _Known, name: str, fields: frozenset[str] = frozenset()) -> str:
        known.names[name] = fields
        self.bound[-1].add(name)
        return name

    def text(self, known: _Known) -> str:
        """An expression of a text that is known."""
        return self.random.choice([*known.among(TEXTS), f'"{self.pick("fox", "lazy hill", "")}"'])

    def number(self, known: _Known) -> str:
        return self.random.choice([*known.among(NUMBERS), self.pick("0", "1", "3")])

    def block(self, known: _Known, place: _Place, most: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, most)):
            if self.left <= 0:
                break
            self.left -= 1
            lines += self.statement(known, place)
        return lines or ["pass"]

    def statement(self, known: _Known, place: _Place) -> list[str]:
        kinds: list[Callable[[_Known, _Place], list[str]]] = [*[self.simple] * 4, *[self.value] * 4]
        kinds += [self.call, self.call, self.whole, self.use, self.log]
        if place.depth < DEEPEST:
            kinds += [self.conditional, self.loop, self.loop, self.fork, self.fork, self.fork, self.beam, self.require]
        if place.in_fork and not place.in_retry:
            kinds += [self.keep, self.keep, self.keep]
        if place.in_loop:
            kinds += [lambda known, place: [f"if {self.condition(known)}:", f"    {self.pick('break', 'continue')}"]]
        return self.random.choice(kinds)(known, place)

    # Lines ----------------------------------------------------------------------------------------------------

    def heat(self) -> str:
        return self.pick("", "", ", temperature=1")

    def simple(self, known: _Known, place: _Place) -> list[str]:
        match self.random.randrange(5):
            case 0:
                return [self.pick('" jumps over"', f'" The ${{{self.text(known)}}}"', f'" ${{{self.number(known)}}}"')]
            case 1:
                return [f'" ${{{self.number(known)} + 1}} ${{{self.text(known)}}}"']
            case 2:
                line = f"gen(max_tokens={self.random.randint(1, 3)}{self.heat()})"
                return [f"{self.bind(known, self.pick(*TEXTS))} = {line}"]
            case 3:
                return [f"{self.bind(known, self.pick(*NUMBERS))} = gen(int in 0..9{self.heat()})"]
            case _:
                options = self.pick('"fox", "the dog"', "options=words", f'{self.text(known)} + "x", "dog"')
                return [f"{self.bind(known, self.pick(*TEXTS))} = select({options}{self.heat()})"]

    def value(self, known: _Known, place: _Place) -> list[str]:
        if self.chance(2):
            number = self.number(known)
            value = self.pick(f"{number} + 1", f"10 // {number}", f"len({self.text(known)})", number, "1 + 1", "size")
            value = value if value != "size" or "size" in known.names else "7"
            return [f"{self.bind(known, self.pick(*NUMBERS))} = {value}"]
        text = self.text(known)
        value = self.pick(f'{text} + "!"', f'"${{{text}}} and ${{{self.number(known)}}}"', text, '"red"')
        forks = known.forks()
        if forks and self.chance(2):
            value = self.branch(known, self.random.choice(forks)) + ".end"
        return [f"{self.bind(known, self.pick(*TEXTS))} = {value}"]

    def call(self, known: _Known, place: _Place) -> list[str]:
        name = self.pick("ask", "ask", "draw", "both", "rate", "divide", "tell")
        argument = self.number(known) if name in ("rate", "divide") else self.text(known)
        argument = argument.replace("0", "4") if argument.isdigit() else argument
        if name == "rate" and self.chance(2):
            argument += f", {self.text(known)}"
        call = f"{name}({argument})"
        if name == "tell":  # what logs is waited for, or a `keep` may end it anywhere
            target = self.bind(known, self.pick(*TEXTS))
            return [f"{target} = {call}", f"{target} = {target}"]
        return [call if self.chance(6) else f"{self.bind(known, self.pick(*TEXTS))} = {call}"]

    def branch(self, known: _Known, name: str) -> str:
        if name[0] == "c":
            return f"{name}.{self.pick('one', 'two')}"
        return f"{name}[{self.pick('0', '0', '0', '1')}]"

    def whole(self, known: _Known, place: _Place) -> list[str]:
        forks = known.forks()
        if not forks:
            return [f'" ${{[{self.text(known)}, {self.number(known)}]}}"']
        name = self.random.choice(forks)
        branch = self.branch(known, name)
        match self.random.randrange(4):
            case 0:
                self.bound[-1] |= known.names[name]
                known.names.update(dict.fromkeys(known.names[name], frozenset()))
                return [f"adopt {branch}"]
            case 1:
                return [f'" ${{{branch}.index}} ${{{branch}.text}}"']
            case 2:
                return [f'" ${{{branch}}}"']
            case _:
                return [f'" ${{{name}}}"']

    def use(self, known: _Known, place: _Place) -> list[str]:
        return [
            self.pick(
                f"use say({self.text(known)})",
                f"use say({self.text(known)}, a0={self.text(known)})",
                f"use answer({self.text(known)})",
            )
        ]

    def log(self, known: _Known, place: _Place) -> list[str]:
        return [f'log "${{{self.text(known)}}} ${{{self.number(known)}}}"']

    def condition(self, known: _Known) -> str:
        text, number = self.text(known), self.number(known)
        size = "size" if "size" in known.names else "2"
        always = self.pick("1 > 2", f"{size} > 1", f"{number} == {size}")
        return self.pick(f"len({text}) > 3", f"{number} > 0", f'"e" in {text}', always)

    def keep(self, known: _Known, place: _Place) -> list[str]:
        return [
            self.pick(
                f"keep where {self.condition(known)}",
                f"keep where {self.number(known)} != 0",
                f"keep {self.pick('1', '2')} by {self.number(known)}",
            )
        ]

    # What holds other lines -------------------------------------------------------------------------------------

    def within(self, known: _Known, head: str, place: _Place, most: int = 5) -> list[str]:
        return [head, *(f"    {line}" for line in self.block(known, place, most))]

    def conditional(self, known: _Known, place: _Place) -> list[str]:
        lines: list[str] = []
        self.bound.append(set())
        for head in [f"if {self.condition(known)}:", *(["else:"] if self.chance(2) else [])]:
            lines += self.within(known.copy(), head, replace(place, depth=place.depth + 1), 3)
        self.forget(known)
        return lines

    def forget(self, known: _Known) -> None:
        """Names that may have been bound, or not, have no value for sure unless they had one before."""
        bound = self.bound.pop()
        for name in bound:
            if name in ("tone", "size"):
                known.names.pop(name, None)
            elif name in known.names and name[0] in "bc":
                known.names[name] = frozenset({"end"})
        self.bound[-1] |= bound

    def loop(self, known: _Known, place: _Place) -> list[str]:
        inner = known.copy()
        for name in inner.forks():
            inner.names[name] = frozenset({"end"})
        self.bound.append(set())
        match self.random.randrange(3):
            case 0:
                over = self.pick("words", '["x", "yz"]')
                head = f"for {self.bind(inner, self.pick(*TEXTS))} in {over}:"
            case 1:
                text, number = self.bind(inner, self.pick(*TEXTS)), self.bind(inner, self.pick(*NUMBERS))
                head = f"for {text}, {number} in pairs:"
            case _:
                head = f"while {self.pick('true', f'len({self.text(known)}) < 9')} limit 2:"
        lines = self.within(inner, head, replace(place, depth=place.depth + 1, in_loop=True), 4)
        self.forget(known)
        return lines

    def end(self, known: _Known) -> str:
        self.bound[-1].add("end")
        return f"    end = {self.text(known)}"

    def body(self, known: _Known, head: str, place: _Place) -> tuple[list[str], frozenset[str]]:
        """A branch, and what it surely binds."""
        lines = [*self.within(known, head, place), self.end(known)]
        return lines, frozenset({"end"})

    def fork(self, known: _Known, place: _Place) -> list[str]:
        inner = replace(place, depth=place.depth + 1, in_fork=True, in_loop=False, in_retry=False)
        self.bound.append(set())
        shape = self.random.randrange(4)
        name = self.pick("c0", "c1") if shape == 3 else self.pick(*FORKS)
        if shape == 3:
            lines, fields = [f"fork as {name}:"], frozenset({"end"})
            for arm in ("one", "two"):
                held, _ = self.body(known.copy(), f"arm {arm}:", replace(inner, in_fork=False))
                lines += [f"    {line}" for line in held]
        else:
            own = known.copy()
            if shape == 0:
                over = self.pick("2", "3", "3")
            elif shape == 1:
                over = f"{self.bind(own, self.pick(*TEXTS))} in " + self.pick("words", '["kind", "rude"]')
            else:
                text, number = self.bind(own, self.pick(*TEXTS)), self.bind(own, self.pick(*NUMBERS))
                over = f"{text}, {number} in pairs"
            lines, fields = self.body(own, f"fork {over} as {name}{self.pick('', ' or none')}:", inner)
        self.bound.pop()
        self.bind(known, name, fields)
        return lines

    def beam(self, known: _Known, place: _Place) -> list[str]:
        name, own = self.pick(*FORKS), known.copy()
        self.bound.append(set())
        inner = replace(place, depth=place.depth + 1, in_fork=False, in_loop=False, in_retry=False)
        lines, fields = self.body(own, "", inner)
        self.bound.pop()
        lines[0] = f"beam depth=2 width=2 branch=2 by {self.number(own)} as {name}:"
        self.bind(known, name, fields)
        return [*lines, "    _drawn = gen(max_tokens=1, temperature=1)"]

    def require(self, known: _Known, place: _Place) -> list[str]:
        target = self.bind(known, self.pick(*TEXTS[:3]))
        lines = [f"{target} = gen(max_tokens=2, temperature=2)"]
        inner = replace(place, depth=place.depth + 1, in_retry=True)
        if self.chance(2):
            held = self.block(known, inner, 2)
            lines += held
            if any(line.startswith(f"{target} =") or f" {target} =" in line or "adopt" in line for line in held):
                return lines
        letter, retries = self.pick("e", "o", "a"), self.pick("1", "8")
        message = self.pick("", f' else "bad ${{{target}}}"')
        return [*lines, f'require "{letter}" not in {target} else retry {retries}{message}']


def random_program(random: Random) -> str:
    """The text of a file whose program `main` takes a `word`."""
    writing = _Writing(random)
    known = _Known(dict.fromkeys(("word", "tone", "size"), frozenset[str]()))
    lines = ['"The fox"', *writing.block(known, _Place(), 8)]
    while writing.left > 0 and not writing.chance(4):
        lines += writing.block(known, _Place(), 8)
    if not writing.chance(5):
        everything = [*known.among(TEXTS), *known.among(NUMBERS), *known.forks()]
        read = random.sample(everything, random.randint(0, min(3, len(everything))))
        lines.append(f"return [{', '.join(read)}]")
    return CONSTS + "program main(word: str):\n" + "".join(f"    {line}\n" for line in lines) + CALLED
