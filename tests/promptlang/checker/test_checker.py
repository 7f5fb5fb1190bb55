"""What the checker lets pass, and what it finds out."""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from places import PROGRAMS

from promptlang.checker.check import check
from promptlang.checker.tables import Checked
from promptlang.compiler.lower import lower
from promptlang.diagnostics.rendering import render_all
from promptlang.diagnostics.source import Source
from promptlang.grammar import shapes
from promptlang.syntax import ast
from promptlang.syntax.loader import load_source
from promptlang.syntax.walk import statements_of
from promptlang.values.values import RecordType, RecordValue


def checked(text: str) -> Checked:
    return check(load_source(Source(text)))


def body(lines: str, parameters: str = "x: int, items: list[str]") -> str:
    """A program with a body, that uses its parameters."""
    indented = "".join(f"    {line}\n" for line in lines.splitlines())
    names = [part.split(":")[0].strip() for part in parameters.split(", ")]
    used = "".join(f"    log {name}\n" for name in names if name)
    return f"program p({parameters}):\n{used}{indented}"


def codes_of(lines: str, parameters: str = "x: int, items: list[str]") -> list[str]:
    return [diagnostic.code for diagnostic in checked(body(lines, parameters)).diagnostics]


def find(result: Checked, kind: type, program: str = "p") -> Any:
    """The first answer or statement of a kind in a program."""
    for statement in statements_of(result.programs[program].declaration.body):
        for node in (statement, getattr(statement, "answer", None), getattr(statement, "value", None)):
            if isinstance(node, kind):
                return node
    raise AssertionError(f"no {kind.__name__}")


# Variables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        "if x:\n    a = 1\nelse:\n    a = 2\nlog a",
        "a = 1\nif x:\n    a = 2\nlog a",
        "for i in [1, 2]:\n    a = i\nlog a",
        "for i in range(3):\n    a = i\nlog a",
        "a = none\nfor item in items:\n    a = item\nlog a",
        "while true:\n    a = 1\n    break\nlog a",
        "if x:\n    return 1\nelse:\n    a = 1\nreturn a",
        "for i in items:\n    if i:\n        continue\n    else:\n        a = 1\n    log a",
        "fork 2 as b:\n    a = 1\nadopt b[0]\nlog a",
        "fork 2 as b:\n    a = x\nlog b[0].a",
        "fork i, item in enumerate(items) as b:\n    log i\nlog [c.item for c in b]",
        "fork as b:\n    arm left:\n        a = 1\nadopt b.left\nlog a + b.left.index",
        "fork 2 as b:\n    a = 1\nfor c in b:\n    log c.a\n    adopt c",
        "fork 2 as b:\n    fork 2 as c:\n        a = 1\n    adopt c[0]\nlog b[0].a",
        "x = x + 1\nlog x",
        "x = 'text'\nlog x.upper()",
        "len = 3\nlog len(items) + len",
        "text = gen()\nfork 2 as b:\n    text = 'a'\nlog b[0].text + text",
    ],
)
def test_a_variable_with_a_value_on_every_way_is_fine(lines: str) -> None:
    assert codes_of(lines) == []


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        ("if x:\n    a = 1\nlog a", ["PL102"]),
        ("for i in items:\n    a = i\nlog a", ["PL102"]),
        ("while x:\n    a = 1\nlog a", ["PL102"]),
        ("for i in items:\n    if i:\n        break\n    a = 1\nlog a", ["PL102"]),
        ("fork 2 as b:\n    a = 1\nlog a", ["PL101"]),
        ("log [y for y in items]\nlog y", ["PL101"]),
        ("log a\na = 1", ["PL101"]),
    ],
)
def test_a_variable_without_a_value_on_some_way_is_found(lines: str, codes: list[str]) -> None:
    assert codes_of(lines) == codes


@pytest.mark.parametrize(
    "lines",
    [
        "log x.finish",
        "log items[0] + 'a'.finish",
        "if x:\n    y = 1\nlog x.finish",
        "if x == 3:\n    log x.finish",
    ],
)
def test_an_argument_has_no_finish(lines: str) -> None:
    assert codes_of(lines) == ["PL107"]


@pytest.mark.parametrize(
    "lines",
    [
        "x = gen(int)\nlog x.finish",
        "if x:\n    x = gen(int)\nlog x.finish",
        "y = [gen_ for gen_ in items]\nlog y[0].finish",
    ],
)
def test_what_may_be_an_answer_may_have_one(lines: str) -> None:
    assert codes_of(lines) == []


def test_an_argument_of_a_fragment_may_be_an_answer() -> None:
    text = "fragment f(a: str):\n    '${a.finish}'\n\nprogram p():\n    b = gen()\n    use f(b)\n"
    assert checked(text).diagnostics == []


def test_what_a_fragment_binds_stays_in_it() -> None:
    text = 'fragment f(a: str):\n    b = gen()\n    log b + a\n\nprogram p():\n    use f("x")\n    log b\n'
    assert [found.code for found in checked(text).diagnostics] == ["PL101"]


def test_only_programs_with_a_result_have_unused_variables() -> None:
    assert codes_of("a = gen()") == []
    assert codes_of("a = gen()\nreturn x") == ["PL103"]
    assert codes_of("_a = gen()\nreturn x") == []


@pytest.mark.parametrize(
    ("reads", "unused"),
    [
        ("return t[0]", 0),
        ("return [t[0], x]", 0),
        ("y = t[0]\nreturn y", 0),
        ("for one in t:\n    log one\nreturn x", 0),
        ("return [one for one in t]", 0),
        ('"${t}"\nreturn x', 0),
        ("return t[0].b", 1),
        ("return [one.b for one in t]", 1),
        ("adopt t[0]\nreturn x", 2),
    ],
)
def test_a_branch_that_is_read_whole_uses_all_its_variables(reads: str, unused: int) -> None:
    assert codes_of(f'"A"\nfork 2 as t:\n    a = gen()\n    b = 1\n{reads}') == ["PL103"] * unused


# Types -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        'log "a" + str(x)',
        "log x + 1.5 * 2 // 3",
        "log items + ['a'] + [1]",
        "log 'a' * 3 + 'b'",
        "log items[0].upper()[1:]",
        "log {'a': 1}['a'] + 1",
        "data = gen(json)\nlog data['a'][0]",
        "log sorted(items, reverse=true)[0]",
        "if x == 3.0 or x in [1, 2] or 'a' in items:\n    pass",
        "y = x if x > 3 else none\nlog y",
        "fork x as b:\n    keep 1 by x\nlog b",
        "kind = select('a', 'b')\nif kind == 'a':\n    log kind.probs['a'] + kind.scores['b']",
        "gen(max_tokens=x, temperature=x / 10, stop=items[0])",
        "select(options=items)",
        "select(options=['a' for item in items])",
        "select(1, 2, true)",
    ],
)
def test_types_that_go_together_are_fine(lines: str) -> None:
    assert codes_of(lines) == []


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("log x.upper()", "PL107"),
        ("log items.upper()", "PL107"),
        ("log items['a']", "PL201"),
        ("log -items", "PL201"),
        ("log items + 'a'", "PL202"),
        ("log items < x", "PL202"),
        ("log {1: 2}", "PL201"),
        ("log x[0]", "PL209"),
        ("for i in x:\n    log i", "PL209"),
        ("fork 1.5 as b:\n    pass\nlog b", "PL201"),
        ("log len(items, items)", "PL206"),
        ("y = gen()\nlog y.probs", "PL107"),
        ("y = gen(int in 1..5)\nif y == 9:\n    pass", "PL210"),
        ("y = gen(int in 1..5)\nif y == 'a':\n    pass", "PL210"),
    ],
)
def test_types_that_do_not_are_found(lines: str, code: str) -> None:
    assert codes_of(lines) == [code]


def test_a_recursive_record_is_one_shape() -> None:
    result = checked(
        "record Tree:\n    name: str\n    kids: list[Tree]\n\nprogram p(t: Tree):\n    log t.kids[0].kids[0].name\n"
    )
    assert result.diagnostics == []
    tree = result.records["Tree"]
    assert tree.fields[1].shape == shapes.List(shapes.Recursive("Tree"))


def test_records_that_contain_each_other_resolve() -> None:
    records = "record A:\n    b: B | none\n\nrecord B:\n    a: A\n\n"
    text = f"{records}program p(a: A, b: B):\n    log a.b\n    log b.a.b\n    x = A(b=b)\n    log x\n"
    assert checked(text).diagnostics == []


def test_options_are_not_checked_beyond_what_is_known() -> None:
    assert codes_of("y = gen(json)\ngen(max_tokens=y, stop=y)\nselect(options=y)\nfork y as b:\n    pass\nlog b") == []


# Tables ----------------------------------------------------------------------------------------------


def test_a_gen_has_the_shape_of_its_type() -> None:
    result = checked('type Team = "a" | "b"\nprogram p():\n    x = gen(list[Team, 1..3])\n    y = gen()\n')
    gens = [statement.answer for statement in result.programs["p"].declaration.body if isinstance(statement, ast.Ask)]
    team = shapes.Union((shapes.Constant("a"), shapes.Constant("b")))
    assert [result.gen_shape(gen) for gen in gens if isinstance(gen, ast.Gen)] == [shapes.List(team, 1, 3), None]


@pytest.mark.parametrize(
    ("lines", "reads"),
    [
        ("log y", False),
        ("log y.probs", True),
        ("z = y\nlog z.scores['a']", True),
        ("fork 2 as b:\n    y = select('a', 'b')\nlog [c.y.probs for c in b]", False),
        ("pairs = [y]\nlog pairs[0].probs", True),
        ("for i in items:\n    y = y\nlog y.probs", True),
    ],
)
def test_whether_a_select_is_asked_for_its_probabilities(lines: str, reads: bool) -> None:
    result = checked(body(f"y = select('a', 'b')\n{lines}"))
    assert result.diagnostics == []
    assert result.reads_scores(find(result, ast.Select)) is reads


def test_calls_know_their_programs() -> None:
    result = checked("program q(a: int = 1) -> int:\n    return a\n\nprogram p():\n    x = q()\n    log len('a')\n")
    call = find(result, ast.CallExpression)
    assert result.callee(call) is result.programs["q"]


def test_constants_hold_consts_records_and_imports() -> None:
    result = checked("const A = 1 + 1\nrecord R:\n    a: int = A\n\nprogram p():\n    log R().a\n")
    assert result.diagnostics == []
    constants = result.programs["p"].constants
    assert constants["A"] == 2
    assert isinstance(constants["R"], RecordType)
    assert not isinstance(constants["R"], RecordValue)
    assert constants["R"].defaults == {"a": 2}


# Errors beside errors --------------------------------------------------------------------------------


def test_a_syntax_error_does_not_hide_errors_of_other_programs() -> None:
    text = "program p():\n    log 1 +\n    log nobody\n\nprogram q():\n    log nobody\n"
    assert [(found.span.position.line, found.code) for found in checked(text).diagnostics] == [
        (2, "PL001"),
        (6, "PL101"),
    ]


def test_a_lost_declaration_makes_no_unknown_names() -> None:
    text = "recrod R:\n    a: int\n\nprogram p(r: R):\n    x = R(a=1)\n    log x\n"
    assert [found.code for found in checked(text).diagnostics] == ["PL002"]


def test_several_errors_come_in_the_order_of_the_file() -> None:
    found = checked(body("log one\nlog two\nlog 1 + 'a'")).diagnostics
    assert [diagnostic.span.position.line for diagnostic in found] == [4, 5, 6]
    assert "3 errors" in render_all(found)


# Speed -----------------------------------------------------------------------------------------------


def long_program(turns: int) -> str:
    turn = '    user: "Hello ${a}"\n    assistant: x = gen(int in 1..5)\n    if x > 3:\n        log "${x} of ${a}"\n'
    programs = [f"program p{index}(a: str) -> int:\n{turn * 10}    return x\n\n" for index in range(turns // 40)]
    return "".join(programs)


def long_body(lines: int) -> str:
    """One program with very many variables, and an `if` for each."""
    part = (
        '    user: "Question N ${x}"\n    assistant: aN = gen(max_tokens=5)\n'
        '    if len(aN) > 3:\n        bN = aN.upper()\n    else:\n        bN = ""\n    log bN\n'
    )
    return "program p(x: str):\n" + "".join(part.replace("N", str(number)) for number in range(lines // 7))


def front_end_seconds(text: str) -> float:
    """Processor time to parse, check and lower a text: the least of two runs."""
    spent = []
    for _ in range(2):
        started = time.process_time()
        result = checked(text)
        assert result.ok
        lower(result)
        spent.append(time.process_time() - started)
    return min(spent)


@pytest.mark.slow
@pytest.mark.parametrize("program", [long_program, long_body])
def test_the_front_end_takes_time_in_proportion_to_length(program: Callable[[int], str]) -> None:
    short = front_end_seconds(program(1000))
    assert short < 2
    assert front_end_seconds(program(4000)) < 8 * short


@pytest.mark.slow
def test_checking_loads_neither_torch_nor_transformers() -> None:
    example = PROGRAMS / "good" / "everything.pl"
    script = (
        "import sys\nfrom promptlang.checker.check import check\nfrom promptlang.syntax.loader import load\n"
        f"assert check(load({str(example)!r})).ok\n"
        "print([name for name in ('torch', 'transformers', 'rich', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_checking_takes_as_many_steps_as_there_are_lines() -> None:
    def steps(number: int) -> int:
        blocks = [
            f"v{i} = x + {i}\nif v{i} > {i}:\n    w{i} = items[0]\nelse:\n    w{i} = [y for y in w{i - 1}][0]\n"
            f"for x{i} in items:\n    y{i} = x{i} + w{i}\n    if y{i} == w{i}:\n        break\n"
            f"fork 2 as f{i}:\n    z{i} = gen(max_tokens=3)\nlog f{i}[0].z{i}\n"
            for i in range(1, number)
        ]
        bundle = load_source(Source(body("w0 = items[0]\n" + "".join(blocks))))
        count = 0

        def count_call(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(count_call)
        try:
            result = check(bundle)
        finally:
            sys.setprofile(None)
        assert result.ok
        return count

    assert steps(200) < 2.2 * steps(100)


@pytest.mark.parametrize(
    "repeats",
    ["beam depth=2 width=1 branch=2 by 1 as paths:\n        a = ask()", "a = ask()\n    require a else retry 2"],
)
@pytest.mark.parametrize(
    ("options", "codes"), [("", {"PL316"}), ("temperature=1, seed=3", {"PL316"}), ("temperature=1", set())]
)
def test_whether_a_call_may_differ_is_seen_in_what_it_runs(repeats: str, options: str, codes: set[str]) -> None:
    text = f"""program p():
    {repeats}

program ask() -> bool:
    use outer()
    return true

fragment outer():
    use inner()

fragment inner():
    gen({options})
"""
    found = {diagnostic.code for diagnostic in checked(text).diagnostics}
    assert found == codes
