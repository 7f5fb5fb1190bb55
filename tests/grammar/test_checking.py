"""What can't be enforced is told before anything runs, and ends no process."""

import json
import math

import pytest

from promptlang.grammar.acceptor import bytes_vocabulary
from promptlang.grammar.checking import check_shape
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.limits import MOST_PROPERTIES, MOST_RULES
from promptlang.grammar.reader import read, validate
from promptlang.grammar.shapes import AnyJson, ContextFree, Float, List, Schema, Shape


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, r'"\$ref": "#"'),
        ({"$ref": "#"}, r'"\$ref": "#"'),
        ({"allOf": [{"$ref": "#"}]}, r'"\$ref": "#"'),
        ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, "leads back"),
        ({"if": {"$ref": "#/$defs/a"}, "$defs": {"a": {"not": {"$ref": "#"}}}}, "leads back"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "leads back"),
        ({"items": {"anyOf": [{"$ref": "#/items"}, {"type": "null"}]}}, "leads back"),
        ({"$schema": 5}, r'"\$schema"'),
        ({"properties": {f"p{number}": True for number in range(MOST_PROPERTIES + 1)}}, '"properties"'),
    ],
)
def test_a_schema_without_an_end_is_refused_by_name(schema: object, keyword: str) -> None:
    with pytest.raises(ConstraintError, match=keyword):
        check_shape(Schema(json.dumps(schema)))


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]},
        {"properties": {"next": {"$ref": "#"}}},
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "string"}}},
    ],
)
def test_a_schema_that_goes_inside_on_its_way_round_is_served(schema: object) -> None:
    check_shape(Schema(json.dumps(schema)))


@pytest.mark.parametrize("grammar", ["start: start", "start: a\na: start | start a"])
def test_a_grammar_without_a_text_is_refused(grammar: str) -> None:
    with pytest.raises(ConstraintError, match="back to itself"):
        check_shape(ContextFree(grammar))


def test_a_grammar_of_many_rules_is_refused_before_it_is_compiled() -> None:
    """llguidance follows a chain by recursion."""
    chain = [f'r{number}: r{number + 1} "b"' for number in range(3 * MOST_RULES)]
    with pytest.raises(ConstraintError, match=f"more than {MOST_RULES}"):
        check_shape(ContextFree("\n".join(["start: r0", *chain, f'r{3 * MOST_RULES}: "a"'])))


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ('{"maximum": 1e400}', "1e400"),
        ('{"const": Infinity}', "Infinity"),
        ('{"const": 9007199254740993}', "9007199254740993"),
        ('{"enum": [[1, 9007199254740993]]}', "9007199254740993"),
        ('{"minimum": 9007199254740993}', "minimum"),
        ('{"exclusiveMaximum": -9223372036854775808}', "exclusiveMaximum"),
    ],
)
def test_a_number_that_no_float_holds_is_refused(schema: str, place: str) -> None:
    with pytest.raises(ConstraintError, match=place):
        check_shape(Schema(schema))


@pytest.mark.parametrize("bound", [9007199254740993, 9223372036854775806, 18446744073709551615, 1e300])
def test_what_is_written_lies_within_a_bound_that_no_float_holds(bound: float) -> None:
    least = 9007199254740990
    schema = json.dumps({"type": "integer", "minimum": least, "maximum": bound})
    constraint = compile_constraint(Schema(schema), bytes_vocabulary())
    written = [number for number in range(least - 5, least + 15) if _allows(constraint, str(number))]
    assert written == list(range(least, 2**53 + 1))


def _allows(constraint: Constraint, text: str) -> bool:
    state = constraint.start()
    try:
        for byte in text.encode():
            state.advance(byte)
    except ValueError:
        return False
    return state.can_end()


@pytest.mark.parametrize("shape", [Schema('{"type": "number"}'), AnyJson(), List(Float())])
def test_infinity_is_no_number(shape: Shape) -> None:
    with pytest.raises(ValueError, match="too large"):
        read(shape, "[1e400]" if isinstance(shape, List) else "1e400")
    with pytest.raises(ValueError, match="expected"):
        validate(shape, [math.inf] if isinstance(shape, List) else math.inf)


@pytest.mark.parametrize(("name", "rest"), [("date", ""), ("date-time", "T10:00:00Z")])
def test_the_29th_of_february_is_in_leap_years_only(name: str, rest: str) -> None:
    constraint = compile_constraint(Schema(json.dumps({"type": "string", "format": name})), bytes_vocabulary())
    days = ["2023-02-28", "2023-02-29", "2024-02-29", "1900-02-29", "2000-02-29", "2023-12-31", "2023-04-31"]
    assert [day for day in days if _allows(constraint, f'"{day}{rest}"')] == [
        "2023-02-28",
        "2024-02-29",
        "2000-02-29",
        "2023-12-31",
    ]
