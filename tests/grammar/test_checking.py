"""What can't be enforced is told before anything runs, and ends no process."""

import json

import pytest

from promptlang.grammar.checking import check_shape
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.limits import MOST_PROPERTIES, MOST_RULES
from promptlang.grammar.shapes import ContextFree, Schema


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
