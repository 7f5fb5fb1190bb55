"""Depth: what nests as deeply as the limit allows works everywhere, what nests deeper is a diagnostic, and what only
goes on does not nest."""

import json
from functools import partial

import pytest
from tiny_engine import tiny_engine

from promptlang.checker.check import check
from promptlang.checker.tables import Checked
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import optimise
from promptlang.diagnostics.source import Source
from promptlang.drawing.data import document
from promptlang.drawing.picture import picture
from promptlang.interpreter.interpreter import Interpreter
from promptlang.lints.cache import lint
from promptlang.runtime.local_backend import LocalBackend
from promptlang.syntax import ast
from promptlang.syntax.formatter.layout import FormatError, format_source
from promptlang.syntax.loader import load_source
from promptlang.syntax.parser import parse
from promptlang.values.expressions import evaluate

DEEP = 90
TOO_DEEP = 110
LONG = 2_000


def nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


EXPRESSIONS = {
    "parentheses": ("(", "1", ")"),
    "lists": ("[", "1", "]"),
    "dicts": ('{"a": ', "1", "}"),
    "calls": ("abs(", "1", ")"),
    "methods": ('"".join([', '"a"', "])"),
    "signs": ("-", "1", ""),
    "not": ("not ", "true", ""),
    "indices": ("[", "[1]", "][0]"),
    "attributes": ("", '"a"', ".upper()"),
    "conditionals": ("1 if true else ", "1", ""),
    "powers": ("1 ** ", "1", ""),
    "comparisons": ("(1 == ", "1", ")"),
}
"""What nests: how a level begins, what stands in the innermost, how a level ends."""

TWO_LEVELS = {"methods", "attributes", "indices"}
"""Where a call or an index holds a list or an attribute."""


def program(expression: str) -> str:
    return f"program p():\n    x = {expression}\n    return x\n"


def ifs(depth: int) -> str:
    lines = [f"{'    ' * level}if {'true' if level % 2 else 'a'}:" for level in range(1, depth + 1)]
    return "\n".join(["program p(a: bool):", *lines, "    " * (depth + 1) + "log a", ""])


def expression_of(text: str) -> ast.Expression:
    [declaration] = parse(Source(text)).module.declarations
    assert isinstance(declaration, ast.Program)
    first = declaration.body[0]
    assert isinstance(first, ast.Assign)
    return first.value


def checked(text: str) -> Checked:
    return check(load_source(Source(text)))


def codes(text: str) -> set[str]:
    return {diagnostic.code for diagnostic in checked(text).diagnostics}


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_an_expression_that_nests_deeply_is_checked_formatted_and_evaluated(kind: str) -> None:
    opening, inner, closing = EXPRESSIONS[kind]
    depth = DEEP // 2 if kind in TWO_LEVELS else DEEP
    text = program(nested(opening, inner, closing, depth))
    result = checked(text)
    assert result.ok
    assert format_source(Source(format_source(Source(text)))) == format_source(Source(text))
    evaluate(expression_of(text), {})
    optimise(lower(result))


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_an_expression_that_nests_too_deeply_is_a_diagnostic(kind: str) -> None:
    opening, inner, closing = EXPRESSIONS[kind]
    text = program(nested(opening, inner, closing, 500))
    assert codes(text) == {"PL010"}
    with pytest.raises(FormatError):
        format_source(Source(text))


def test_blocks_may_nest_as_deeply_as_expressions() -> None:
    result = checked(ifs(DEEP))
    assert result.ok
    optimise(lower(result))
    assert format_source(Source(ifs(DEEP))) == ifs(DEEP)
    assert codes(ifs(TOO_DEEP)) == {"PL010"}


def test_holes_count_what_stands_around_them() -> None:
    inner = nested("[", "1", "]", 60)
    assert codes(program('"${' + inner + '}"')) == set()
    assert codes(program(nested("[", '"${' + inner + '}"', "]", 60))) == {"PL010"}


@pytest.mark.parametrize(
    "operator", ["+", "and", "<=", *(pytest.param(one, marks=pytest.mark.slow) for one in ("-", "*", "or"))]
)
def test_a_long_chain_of_operators_does_not_nest(operator: str) -> None:
    text = program(f" {operator} ".join(["1"] * LONG))
    result = checked(text)
    assert result.ok
    assert evaluate(expression_of(text), {}) == {"+": LONG, "-": 2 - LONG, "<=": True}.get(operator, 1)
    optimise(lower(result))


def test_many_calls_in_a_sum_do_not_nest() -> None:
    text = program(" + ".join(["abs(-1)"] * 500))
    assert checked(text).ok
    assert format_source(Source(text))
    assert evaluate(expression_of(text), {}) == 500


def records(number: int, *, first_is_innermost: bool) -> str:
    chain = ["record A0:\n    x: int\n", *(f"record A{index}:\n    x: A{index - 1}\n" for index in range(1, number))]
    return "".join(chain if first_is_innermost else reversed(chain))


@pytest.mark.parametrize("first_is_innermost", [True, False])
def test_records_in_a_chain_nest(first_is_innermost: bool) -> None:
    assert codes(records(30, first_is_innermost=first_is_innermost)) == set()
    assert codes(records(TOO_DEEP, first_is_innermost=first_is_innermost)) == {"PL410"}
    assert codes(records(500, first_is_innermost=first_is_innermost)) == {"PL410"}


def test_aliases_in_a_chain_nest() -> None:
    aliases = [f"type A{index} = list[A{index - 1}]\n" for index in range(1, 500)]
    assert codes("".join(["type A0 = int\n", *aliases[:40]])) == set()
    assert codes("".join(["type A0 = int\n", *aliases])) == {"PL410"}


BLOCKS = {
    "if": "if len(x) > {0}:",
    "for": "for i{0} in x:",
    "while": "while len(x) > {0} limit 2:",
    "fork": "fork 1 as b{0}:",
    "fork in": "fork e{0} in x as b{0}:",
    "beam": "beam depth=1 width=1 branch=1 by 1 as b{0}:",
}


def blocks(head: str, depth: int, inner: str = "log x") -> str:
    lines = [f"{'    ' * (level + 1)}{head.format(level)}" for level in range(depth)]
    return "\n".join(["program p(x: str):", *lines, f"{'    ' * (depth + 1)}{inner}", ""])


def arms(depth: int) -> str:
    lines = [f"{'    ' * (2 * n + 1)}fork as b{n}:\n{'    ' * (2 * n + 2)}arm a:" for n in range(depth)]
    return "\n".join(["program p(x: str):", *lines, f"{'    ' * (2 * depth + 1)}log x", ""])


def uses(depth: int) -> str:
    links = (f"fragment f{n}(x: str):\n    use f{n + 1}(x)\n\n" for n in range(depth))
    return "".join([*links, f'fragment f{depth}(x: str):\n    "${{x}}"\n\nprogram p(x: str):\n    use f0(x)\n'])


def requires(depth: int) -> str:
    lines = "".join(f'    require y != "{number}" else retry 1\n' for number in range(depth))
    return f'program p(x: str):\n    "${{x}}"\n    y = gen(max_tokens=2, temperature=1)\n{lines}    return y\n'


WRITTEN = {
    **{name: partial(blocks, head) for name, head in BLOCKS.items()},
    "turn": partial(blocks, 'if x != "{0}":', inner='user: "${x}"'),
    "arms": arms,
    "use": uses,
    "require": requires,
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_block_may_nest_to_the_limit_from_the_check_to_the_run(kind: str) -> None:
    text = WRITTEN[kind](DEEP)
    result = checked(text)
    assert result.ok
    formatted = format_source(Source(text))
    assert format_source(Source(formatted)) == formatted
    graphs = lower(result)
    lint(graphs)
    better = optimise(lower(result))
    json.dumps(document([picture(better.graphs["p"], better.findings["p"], len)]))
    for each in (graphs, better.graphs):
        interpreter = Interpreter(LocalBackend(tiny_engine()), each)
        interpreter.wait(interpreter.start("p", {"x": "a" if kind != "while" else ""}))
    assert "PL010" in codes(WRITTEN[kind](TOO_DEEP))
