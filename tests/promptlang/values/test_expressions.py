"""Expressions have Python's values, within limits, and reach nothing of Python's own."""

from collections.abc import Mapping
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptlang.diagnostics.source import Source
from promptlang.grammar import shapes
from promptlang.syntax import ast
from promptlang.syntax.parser import parse_statements
from promptlang.values.budget import Limits
from promptlang.values.expressions import EvaluationError, evaluate
from promptlang.values.values import RecordType, RecordValue, Value, answered, render_text

REPLY = RecordType(
    shapes.Record(
        "Reply",
        (
            shapes.Field("team", shapes.Union((shapes.Constant("a"), shapes.Constant("b")))),
            shapes.Field("size", shapes.Int(1, 5)),
        ),
    ),
    {"size": 2},
)


def parsed(text: str) -> ast.Expression:
    [statement], diagnostics = parse_statements(Source(f"log {text}"))
    assert not diagnostics
    assert isinstance(statement, ast.Log)
    return statement.value


def value_of(text: str, scope: Mapping[str, Value] | None = None, limits: Limits | None = None) -> Value:
    return evaluate(parsed(text), scope or {}, limits=limits or Limits())


def refusal(text: str, **scope: Value) -> EvaluationError:
    with pytest.raises(EvaluationError) as caught:
        value_of(text, scope)
    return caught.value


# Against Python --------------------------------------------------------------------------------------

LEAVES = st.one_of(
    st.integers(-20, 20).map(str),
    st.floats(-10, 10).map(repr).filter(lambda text: "e" not in text),
    st.sampled_from(['"a"', '"ab c"', '""', "x", "names", "True", "False", "None", "[]", "[1, 2]"]),
)


def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = ["+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
    return st.one_of(
        st.tuples(inner, st.sampled_from(operators), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} < {parts[1]} <= {parts[2]})"),
        inner.map(lambda text: f"(not {text})"),
        inner.map(lambda text: f"(-{text})"),
        st.tuples(inner, inner).map(lambda parts: f"[{parts[0]}, {parts[1]}]"),
        st.tuples(inner, inner).map(lambda parts: f"{parts[0]}[{parts[1]}]"),
        st.tuples(inner, inner).map(lambda parts: f"{parts[0]}[{parts[1]}:]"),
        st.tuples(inner, inner).map(lambda parts: f"[{parts[0]} for x in {parts[1]} if x]"),
        st.tuples(st.sampled_from(["len", "sum", "sorted", "any", "all", "abs", "max", "min"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        st.tuples(
            inner, st.sampled_from(["upper()", "split()", "strip()", 'count("a")', 'replace("a", "b")', "title()"])
        ).map(lambda parts: f"{parts[0]}.{parts[1]}"),
    )


EXPRESSIONS = st.recursive(LEAVES, extend, max_leaves=8)


def python_value(text: str) -> Any:
    return eval(text, {"x": 3, "names": ["ann", "bob"]})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=5 * settings.default.max_examples, deadline=None)
@given(EXPRESSIONS)
def test_what_both_can_evaluate_has_the_value_python_gives_it(text: str) -> None:
    ours = text.replace("True", "true").replace("False", "false").replace("None", "none")
    try:
        found = value_of(ours, {"x": 3, "names": ["ann", "bob"]})
    except EvaluationError:
        return
    try:
        expected = python_value(text)
    except SyntaxError:  # `0.upper` is a number to Python
        return
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 ** 10", 1024),
        ("2 ** -1", 0.5),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("round(2.5)", 2),
        ("round(2.567, 2)", 2.57),
        ("1 if none else 2", 2),
        ('"a" or 1 / 0', "a"),
        ("[] and 1 / 0", []),
        ("1 < 2 > 1", True),
        ("3 < 2 < 1 / 0", False),
        ('"abc"[-1]', "c"),
        ('"abcdef"[1:5:2]', "bd"),
        ("[1, 2, 3][::-1]", [3, 2, 1]),
        ('{"a": 1, "b": 2}["b"]', 2),
        ('{"a": 1}.items()', [["a", 1]]),
        ('{"a": 1}.get("b", 5)', 5),
        ("[index + item for index, item in enumerate([1, 2])]", [1, 3]),
        ("[a + b for a, b in zip([1, 2], [3, 4])]", [4, 6]),
        ("sum(x for x in [1, 2] if x > 1)", 2),
        ("sorted([3, 1, 2], reverse=true)", [3, 2, 1]),
        ('sorted(["b", "a"])', ["a", "b"]),
        ("reversed([1, 2])", [2, 1]),
        ("range(1, 10, 3)", [1, 4, 7]),
        ("min(3, 1, 2)", 1),
        ('max("a", "b")', "b"),
        ('int(" 12 ")', 12),
        ("float(3)", 3.0),
        ("str(true)", "true"),
        ("str([1, none])", "[1,null]"),
        ('json({"a": [1.5, "é"]})', '{"a":[1.5,"é"]}'),
        ('"-".join(["a", "b"])', "a-b"),
        ('"a,b,c".split(",", 1)', ["a", "b,c"]),
        ('"a\\nb".splitlines()', ["a", "b"]),
        ('"xxaxx".strip("x")', "a"),
        ('"aXbX".replace("X", "-", 1)', "a-bX"),
        ('"abc".find("c")', 2),
        ("[1, 2, 1].count(1)", 2),
        ("[1, 2].index(2)", 1),
        ('bool("")', False),
    ],
)
def test_functions_methods_and_operators(text: str, expected: Value) -> None:
    assert value_of(text) == expected


# Text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a${b}\\n", "a${b}\\n"),
        (3, "3"),
        (0.1, "0.1"),
        (True, "true"),
        (None, "none"),
        ([1, "a", None], '[1,"a",null]'),
        ({"a": [True]}, '{"a":[true]}'),
        (RecordValue("R", {"a": RecordValue("S", {"b": 1})}), '{"a":{"b":1}}'),
        (answered("yes", {}), "yes"),
    ],
)
def test_a_value_has_one_text_in_a_prompt(value: Value, text: str) -> None:
    assert value_of('"<${value}>"', {"value": value}) == f"<{text}>"
    assert render_text(value) == text


@given(st.text())
def test_data_is_never_looked_at_again(data: str) -> None:
    assert value_of('"a ${data} b"', {"data": data}) == f"a {data} b"


# Records and choices ---------------------------------------------------------------------------------


def test_a_record_is_built_from_places_names_and_defaults() -> None:
    scope = {"Reply": REPLY}
    assert value_of('Reply("a", 3)', scope) == value_of('Reply(size=3, team="a")', scope)
    assert value_of('Reply("b").size', scope) == 2
    assert value_of('library.Reply("b").team', {"library": RecordValue("library", {"Reply": REPLY})}) == "b"


@pytest.mark.parametrize(
    "call", ['Reply("c")', 'Reply("a", 9)', 'Reply("a", tone=1)', "Reply()", 'Reply("a", 1, 2)', 'Reply("a", team="b")']
)
def test_a_record_that_is_not_of_its_type_is_refused(call: str) -> None:
    assert refusal(call, Reply=REPLY).span.text == call


def test_a_choice_is_its_text_and_knows_its_probabilities() -> None:
    scope = {"team": answered("a", {"probs": {"a": 0.75, "b": 0.25}, "scores": {"a": -1.0, "b": -2.0}})}
    assert value_of('team == "a" and team.probs["b"] < team.probs[team] and team.scores["a"] == -1', scope) is True


# Refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("1 + (2 / 0)", "2 / 0"),
        ('[1, "a" + 1]', '"a" + 1'),
        ("[1][3]", "[1][3]"),
        ('{"a": 1}["b"]', '{"a": 1}["b"]'),
        ('{1: "a"}', "1"),
        ("nobody", "nobody"),
        ('int("x")', 'int("x")'),
        ('float("inf")', 'float("inf")'),
        ("1e308 * 10", "1e308 * 10"),
        ("(-8) ** 0.5", "(-8) ** 0.5"),
        ("10 ** 5000", "10 ** 5000"),
        ("2.0 ** 5000", "2.0 ** 5000"),
        ("[x for x in 3]", "x for x in 3"),
        ("[a for a, b in [[1]]]", "a for a, b in [[1]]"),
        ("range(0, 1, 0)", "range(0, 1, 0)"),
        ("min([])", "min([])"),
        ('sorted([1, "a"])', 'sorted([1, "a"])'),
        ("[1, 2] < [1, none]", "[1, 2] < [1, none]"),
        ('"a".join([1])', '"a".join([1])'),
        ('"a".split("")', '"a".split("")'),
        ("len(3)", "len(3)"),
        ("len()", "len()"),
        ('"%d" % 3', '"%d" % 3'),
    ],
)
def test_what_has_no_value_is_refused_at_its_place(text: str, where: str) -> None:
    assert refusal(text).span.text == where


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("1 + (2 / 0)", "2 / 0"),
        ("1 / (1 - 1)", "1 / (1 - 1)"),
        ("(1 / ((1 - 1) ) + 2 + 3)", "1 / ((1 - 1) )"),
        ("((1) - 1) + [2] - 3", "((1) - 1) + [2]"),
        ("1 - 2 - ([3]) - 4", "1 - 2 - ([3])"),
    ],
)
def test_a_fault_in_a_chain_says_where_it_is(text: str, where: str) -> None:
    assert refusal(text).span.text == where


@pytest.mark.parametrize(
    "text",
    [
        '"".__class__',
        "x.__class__",
        "[].append(1)",
        '"{0.__class__}".format(1)',
        "f.__globals__",
        "().__class__",
        "print(1)",
        "eval('1')",
        "__import__('os')",
        "getattr(x, 'y')",
        "type(x)",
        "names.sort()",
        "names.clear()",
    ],
)
def test_python_objects_are_out_of_reach(text: str) -> None:
    statement, diagnostics = parse_statements(Source(f"log {text}"))
    if not diagnostics:
        refusal(text, x=1, names=["a"])
    assert statement or diagnostics


@pytest.mark.parametrize(
    "text",
    [
        '"a" * 10 ** 9',
        "[0] * 10 ** 9",
        "10 ** 9 * [0]",
        "range(10 ** 12)",
        "range(10 ** 30)",
        '"a".replace("", "b" * 10 ** 7)',
        '("a" * 10 ** 6).join(["b"] * 10 ** 4)',
        "[[[x for x in range(10 ** 3)] for y in range(10 ** 3)] for z in range(10 ** 3)]",
        '"${[0] * 10 ** 7}${[0] * 10 ** 7}"',
        "9 ** 9 ** 9 ** 9",
        "zip(range(10 ** 6), range(10 ** 6), range(10 ** 6), range(10 ** 6), range(10 ** 6), range(10 ** 6))",
    ],
)
def test_work_and_results_are_bounded(text: str) -> None:
    refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "[xs in [ys] for i in range(20000)]",
        "[[ys].count(xs) for i in range(20000)]",
        "[xs in copies for i in range(20000)]",
        "[xs <= ys for i in range(20000)]",
        "[all(letters) for i in range(20000)]",
        "[any(zeros) for i in range(20000)]",
        "letters.split()",
        "letters.split(' ')",
        "letters.splitlines()",
    ],
)
def test_values_from_outside_are_worked_on_in_bounds(text: str) -> None:
    started = process_time()
    numbers = list(range(50_000))
    copies: list[Value] = [list(numbers)] * 1000
    zeros: list[Value] = [0] * 1_000_000
    refusal(text, xs=list(numbers), ys=list(numbers), copies=copies, letters="a \n" * 2_000_000, zeros=zeros)
    assert process_time() - started < 10


def test_limits_can_be_tightened() -> None:
    with pytest.raises(EvaluationError, match="steps"):
        value_of("sum([x for x in range(100)])", limits=Limits(steps=50))
    with pytest.raises(EvaluationError, match="large"):
        value_of('"a" * 100', limits=Limits(size=50))


@pytest.mark.slow
def test_values_that_double_are_refused_before_they_are_written_out() -> None:
    assert "large" in refusal_in_the_end("[value, value]")


def test_values_that_deepen_are_refused_before_python_gives_up() -> None:
    assert "deeper" in refusal_in_the_end("[value]")


def refusal_in_the_end(text: str) -> str:
    """Why an expression is refused that is evaluated over and over on its own result."""
    value: Value = "seed"
    for _ in range(2000):
        try:
            value = value_of(text, {"value": value})
        except EvaluationError as error:
            return error.message
    raise AssertionError("never refused")
