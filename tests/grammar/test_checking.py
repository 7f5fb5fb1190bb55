"""What can't be enforced is told before anything runs, and ends no process."""

import json
import math
import re

import pytest

from promptlang.grammar.acceptor import bytes_vocabulary
from promptlang.grammar.checking import check_shape
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.limits import MOST_PROPERTIES, MOST_PROPERTIES_IN_ALL, MOST_RULES
from promptlang.grammar.reader import read, validate
from promptlang.grammar.shapes import AnyJson, ContextFree, Float, List, Schema, Shape


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, r'reference "#"'),
        ({"$ref": "#"}, r'reference "#"'),
        ({"allOf": [{"$ref": "#"}]}, r'reference "#"'),
        ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, r'reference "#a" leads back'),
        ({"items": {"allOf": [{"$ref": "#/items"}]}}, r'reference "#/items" leads back'),
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


@pytest.mark.parametrize(
    ("grammar", "place"),
    [
        ('start: "y" | a\n\na: "x" a', "line 3, `a`"),
        ('start: b\nb: "x" (a | b) | a "z"\na: ("x" | /y/) [b] (a)+', "line 3, `a`|line 2, `b`"),
        ('start: "y" | a\na: b\n  "z"\nb: "q" a', "line 2, `a`|line 4, `b`"),
        ('start: A "b"\nA: /a(?=b)/', "line 2, `A`: lookaround"),
        ('start: "x"\nitems{a}: a', "line 2, `items`: a template"),
        ('start: "a"\n\nfoo bar', "line 3"),
        ("start: A\nA: /[a/", "line 2, `A`"),
        ('start: "a" // start: b\n  | <|end|>', "line 2, `start`"),
        ('start: a\na: %json {"type":\n "strin"}', "line 2, `a`"),
        ('start: "a"\n%declare B', "line 2: "),
        ("start: a &\na: /x/ & /y/", "line [12], `(start|a)`"),
        ('start: A\nA: %json {"type": "null"}', "line 2, `A`: what is no expression"),
    ],
)
def test_what_is_wrong_with_a_grammar_has_a_place(grammar: str, place: str) -> None:
    with pytest.raises(ConstraintError, match=f"^my.lark, ({place})"):
        check_shape(ContextFree(grammar, "my.lark"))


@pytest.mark.parametrize(
    "grammar",
    [
        'start: a\na: "x" a | "y"',
        'start: a\na: "x" [a]',
        'start: a\na: "x" a?',
        'start: a\na: "x" a*',
        'start: a\na: "x" a{0,3}',
        'start: a\na: "x" a~0..3',
        'start: a\na: ("x" a | b) "z"\nb: %json {"type": "integer"}\n',
        'start: a // a: a\na: "a" -> a\n | a "b"',
    ],
)
def test_a_grammar_whose_every_rule_ends_is_served(grammar: str) -> None:
    check_shape(ContextFree(grammar))


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "a" (start "b")?\n%ignore / +/\n%ignore /[\\n]/',
        '?start: inside IGNORED?\nIGNORED: "x"\ninside: "a" ("a" "b")?\n%ignore WS\nWS: " " | "\\n"',
        'start: "a" ("a" "b")?\n%import common.WS\n%ignore WS',
    ],
)
def test_what_a_grammar_ignores_may_stand_at_both_ends(grammar: str) -> None:
    constraint = compile_constraint(ContextFree(grammar), bytes_vocabulary())
    for text in ("a", "aab", " a", "a  ", "\n a a b \n"):
        assert _allows(constraint, text), text
    for text in ("", "  ", "b", " a a"):
        assert not _allows(constraint, text), text


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"properties": {"a": {"items": {"type": "strin"}}}}, "$.properties.a.items: "),
        ({"properties": {"a b": {"anyOf": [True, {"not": {"pattern": "a"}}]}}}, '$.properties["a b"].anyOf[1]'),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"items": {"format": "iri"}}}}, "$.$defs.x.items"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"items": {"$ref": "#/$defs/x"}, "pattern": "("}}}, "$.$defs.x: "),
        ({"properties": {"a": 3}}, "$.properties.a: "),
        ({"items": {"type": "null"}, "minItems": 2, "maxItems": 1, "type": "array"}, "$: no value"),
        ({"type": "strin"}, "$: "),
        ({"properties": {"a": {"multipleOf": 0}}}, '$.properties.a: "multipleOf"'),
    ],
)
def test_what_is_wrong_with_a_schema_has_a_place(schema: object, place: str) -> None:
    for shape in (Schema(json.dumps(schema), "my.json"), List(Schema(json.dumps(schema), "my.json"))):
        with pytest.raises(ConstraintError, match=f"^{re.escape(f'my.json, {place}')}"):
            check_shape(shape)


def test_the_place_of_what_is_wrong_everywhere_is_found_in_little_work() -> None:
    wrong = {"type": "strin"}
    schema = {"properties": {f"p{number}": {"items": wrong} for number in range(1000)}}
    with pytest.raises(ConstraintError, match=r"^my.json, \$.properties.p0.items: "):
        check_shape(Schema(json.dumps(schema), "my.json"))


@pytest.mark.slow
def test_definitions_that_nothing_leads_to_and_remarks_may_be_long() -> None:
    unused = {f"d{number}": {"properties": {str(name): {} for name in range(100)}} for number in range(2000)}
    schema = {"type": "integer", "description": "x" * 2_000_000, "$defs": unused}
    check_shape(Schema(json.dumps(schema)))


def test_the_properties_of_all_objects_count() -> None:
    per_object = MOST_PROPERTIES // 4
    parts = {
        f"a{part}": {"properties": {f"p{number}": True for number in range(per_object)}}
        for part in range(MOST_PROPERTIES_IN_ALL // per_object)
    }
    with pytest.raises(ConstraintError, match="properties in all"):
        check_shape(Schema(json.dumps({"properties": parts})))


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
