"""What conditions say of unions."""

import pytest

from promptlang.checker.check import check
from promptlang.diagnostics.source import Source
from promptlang.syntax.loader import load_source

RECORDS = """\
record A:
    kind: "a"
    x: int
record B:
    kind: "b"
    y: int
record C:
    kind: "c"
    y: int
record Pair:
    one: A | B
    other: A | none
const TAG = "a"
const TAGS = ["b", "c"]
"""
PARAMETERS = "s: A | B | C, m: A | none, p: Pair, many: list[A | B], d: 1 | 2 | none"


def codes_of(lines: str) -> list[str]:
    body = "".join(f"    {line}\n" for line in f"log [s, m, p, many, d]\n{lines}".splitlines())
    return [
        found.code for found in check(load_source(Source(f"{RECORDS}program q({PARAMETERS}):\n{body}"))).diagnostics
    ]


@pytest.mark.parametrize(
    "lines",
    [
        "log s.kind",
        'if s.kind == "a":\n    log s.x\nelse:\n    log s.y',
        'if "a" == s.kind:\n    log s.x',
        'if s.kind != "a":\n    log s.y\nelse:\n    log s.x',
        'if not s.kind == "a":\n    log s.y',
        'if s.kind in ["b", "c"]:\n    log s.y',
        'if s.kind not in ["b", "c"]:\n    log s.x',
        "if s.kind == TAG:\n    log s.x\nelif s.kind in TAGS:\n    log s.y",
        'if s.kind == "b" or s.kind == "c":\n    log s.y\nelse:\n    log s.x',
        'if s.kind == "a" and s.x > 1:\n    log s.x',
        'if s.kind != "a" or s.x > 1:\n    log s.kind',
        'log s.x if s.kind == "a" else s.y',
        'log [item.x for item in many if item.kind == "a"]',
        'for item in many:\n    if item.kind == "b":\n        continue\n    log item.x',
        'for item in many:\n    if item.kind == "a":\n        break\n    log item.y',
        'fork item in many as done:\n    keep where item.kind == "a"\n    log item.x\nlog done[0].item.x',
        'if s.kind == "a":\n    return 1\nlog s.y',
        'if s.kind == "a":\n    return 1\nelif s.kind == "b":\n    log s.y\nelse:\n    log s.y\nlog s.y',
        'require s.kind == "a" else retry 0\nlog s.x',
        'if p.one.kind == "a":\n    log p.one.x\n    if p.other:\n        log p.one.x + p.other.x',
        'if p.one.kind == "b":\n    log p.one.y\nelse:\n    log p.one.x\nr = p\nif r.one.kind == "a":\n    log r.one.x',
        "if m:\n    log m.x",
        "if m == none:\n    return 1\nlog m.x",
        'while s.kind == "a":\n    log s.x\n    break',
        'if s.kind == "a":\n    s = gen(A | B)\n    log s.kind\n    s = gen(B | C)\n    log s.y',
        'if s.kind == "a":\n    s = gen(B)\nlog s.y',
    ],
)
def test_fields_are_there_where_conditions_say_so(lines: str) -> None:
    assert codes_of(lines) == []


@pytest.mark.parametrize(
    "lines",
    [
        "log s.x",
        "log s.z",
        "log m.z",
        'if s.kind == "a":\n    log s.y',
        'if s.kind != "a":\n    log s.x',
        'if s.kind == "b":\n    log s.y\nlog s.y',
        'if s.kind == "a" or s.kind == "b":\n    log s.y',
        'if s.kind == "a" and s.y > 1:\n    log s.x',
        'if s.kind == "a":\n    s = gen(A | B)\n    log s.x',
        'if p.one.kind == "a":\n    p = Pair(one=B(kind="b", y=1), other=none)\n    log p.one.x',
        'for item in many:\n    if item.kind == "a":\n        continue\n    log item.x',
        'for item in many:\n    if item.kind == "a":\n        pass\n    log item.x',
        "if m == none:\n    return 1\nlog m.z",
        'log [item.x for item in many if item.kind == "b"]',
    ],
)
def test_fields_that_are_not_sure_are_named(lines: str) -> None:
    assert codes_of(lines) == ["PL107"]


def test_what_a_loop_assigns_is_not_narrowed_in_it() -> None:
    """In a later round it has another value."""
    assert codes_of('if s.kind == "a":\n    for i in range(2):\n        log s.y\n        s = gen(B)') == []


def test_a_union_of_constants_is_narrowed_too() -> None:
    assert codes_of("if d == 1:\n    log 2 == d") == ["PL210"]
    assert codes_of("if d:\n    log d + 1\nelse:\n    log d == none") == []
    assert codes_of('if d:\n    log d + "a"') == ["PL202"]


@pytest.mark.slow
def test_many_questions_of_many_fields_stay_one_record() -> None:
    """Where ways meet, a record stands once, however it was narrowed on each of them."""
    fields = "".join(f"    f{number}: A | B\n" for number in range(30))
    asks = "".join(f'    if r.f{n}.kind == "a":\n        log 1\n    else:\n        log 2\n' for n in range(30))
    text = f"{RECORDS}record Wide:\n{fields}program q(r: Wide):\n{asks}    log r.f0.x\n"
    assert [found.message for found in check(load_source(Source(text))).diagnostics] == ["only A has `x`, not B"]
