"""Which properties and items of a JSON value a schema evaluates, case by case: what `unevaluated...` asks."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.json_schema.document import Document, Json
from promptlang.grammar.json_schema.negation import Premise, negated


@dataclass(frozen=True)
class Case:
    """One way in which a value may satisfy a schema.

    Attributes:
        conditions: schemas that hold in this case.
        properties: evaluated by name.
        patterns: regular expressions of the names of evaluated properties.
        all_properties: whether every property is evaluated.
        items: how many items are, from the first.
        all_items: whether every item is.
    """

    conditions: tuple[Json, ...] = ()
    properties: frozenset[str] = field(default_factory=frozenset)
    patterns: frozenset[str] = field(default_factory=frozenset)
    all_properties: bool = False
    items: int = 0
    all_items: bool = False

    def under(self, condition: Json) -> "Case":
        """The same, where a condition holds too."""
        return replace(self, conditions=(*self.conditions, condition))

    def __and__(self, other: "Case") -> "Case":
        return Case(
            (*self.conditions, *other.conditions),
            self.properties | other.properties,
            self.patterns | other.patterns,
            self.all_properties or other.all_properties,
            max(self.items, other.items),
            self.all_items or other.all_items,
        )


NOTHING = Case()
Cases: TypeAlias = list[Case]


def cases_of(schema: Json, document: Document) -> Cases:
    """The cases of a schema; whoever satisfies it is in one of them.

    Raises:
        ConstraintError: they can't be told apart, or there are too many.
    """
    if not isinstance(schema, dict):
        return [NOTHING]
    with document.deeper("unevaluated"):
        cases = [_own(schema, document)]
        for part in _applied(schema, document):
            cases = [document.spent(one & other) for one, other in product(cases, part)]
    return cases


def _own(schema: dict[str, Json], document: Document) -> Case:
    """What the keywords of the schema itself evaluate."""
    if "contains" in schema and "unevaluatedItems" in schema:
        raise ConstraintError('"unevaluatedItems" beside "contains" can\'t be enforced')
    return Case(
        properties=frozenset(schema.get("properties", {})),
        patterns=frozenset(schema.get("patternProperties", {})),
        all_properties="additionalProperties" in schema,
        items=len(schema.get("prefixItems", [])),
        all_items="items" in schema,
    )


def inner_cases(schema: Json, document: Document) -> Cases:
    """The cases of a schema that is applied to the same value: its own `unevaluated...` evaluate all."""
    whole = Case(
        all_properties=isinstance(schema, dict) and "unevaluatedProperties" in schema,
        all_items=isinstance(schema, dict) and "unevaluatedItems" in schema,
    )
    if isinstance(schema, dict) and "contains" in schema:
        raise ConstraintError('"unevaluatedItems" over "contains" can\'t be enforced')
    return [case & whole for case in cases_of(schema, document)]


def _applied(schema: dict[str, Json], document: Document) -> Iterator[Cases]:
    """The cases of each schema that is applied to the same value."""
    if "$dynamicRef" in schema:
        raise ConstraintError('"unevaluated..." over the keyword "$dynamicRef" can\'t be enforced')
    if "$ref" in schema:
        yield inner_cases(document.resolve(schema["$ref"]), document)
    for part in schema.get("allOf", []):
        yield inner_cases(part, document)
    for part in [*schema.get("anyOf", []), *schema.get("oneOf", [])]:
        yield _either(part, inner_cases(part, document), [NOTHING], document)
    if "if" in schema:
        yield _conditional(schema, document)
    for name, part in {**schema.get("dependencies", {}), **schema.get("dependentSchemas", {})}.items():
        yield _either({"type": "object", "required": [name]}, inner_cases(part, document), [NOTHING], document)


def _conditional(schema: dict[str, Json], document: Document) -> Cases:
    condition, then, otherwise = (inner_cases(schema.get(key, True), document) for key in ("if", "then", "else"))
    both = [one & other for one, other in product(condition, then)]
    return _either(schema["if"], both, otherwise, document)


def _either(condition: Json, cases: Cases, others: Cases, document: Document) -> Cases:
    """Some cases where a condition holds, others where it doesn't."""
    if cases == others == [NOTHING]:
        return [NOTHING]
    fails = {"anyOf": negated(condition, Premise(document)) or [False]}
    return [*(case.under(condition) for case in cases), *(case.under(fails) for case in others)]
