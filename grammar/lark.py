"""Shapes as grammars in llguidance's Lark dialect.

JSON is compact: no white space, fields in their order, no escapes but those that are needed.
"""

import json
import re
from typing import TypeAlias

from promptlang.grammar.automaton import can_begin_with
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.limits import MOST_SPECIFICATION
from promptlang.grammar.regex import Characters, Regex, literal, to_text
from promptlang.grammar.scalars import TEXT, bare, json_string, quoted
from promptlang.grammar.schema import prepare
from promptlang.grammar.shapes import (
    AnyJson,
    Bool,
    ContextFree,
    Dict,
    Float,
    List,
    Null,
    Record,
    Recursive,
    Schema,
    Shape,
    Str,
    Union,
)

QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/(?:\\.|[^/\\\n])+/')
"""Strings, comments and expressions in a grammar."""

BRACKETS = Characters.of([(ord("{"),) * 2, (ord("["),) * 2])

DEEPEST = 60
"""Records inside records."""

SCALAR = Union((Str(), Float(), Bool(), Null()))


def to_grammar(shape: Shape, prefix: str) -> str:
    """A shape behind a literal prefix, in llguidance's notation.

    Raises:
        ConstraintError: a part can't be compiled.
    """
    if isinstance(shape, ContextFree):
        _check_text(shape.text)
        return _behind(prefix, shape.text)
    rules = _Rules()
    value = rules.top(shape)
    return _grammars("\n".join([f"start: {_prefix(prefix)}({value})", *rules.lines]))


def _behind(prefix: str, grammar: str) -> str:
    return _grammars(f"start: {_prefix(prefix)}@value", value=grammar) if prefix else _grammars(grammar)


def _check_text(grammar: str) -> None:
    if len(grammar) > MOST_SPECIFICATION:
        raise ConstraintError(f"the grammar is longer than {MOST_SPECIFICATION} characters")
    if "<" in QUOTED.sub("", grammar):
        raise ConstraintError("a control token (<...>) in a grammar is not supported: answers are text")


def _grammars(start: str, **others: str) -> str:
    named = [{"name": name, "lark_grammar": grammar} for name, grammar in others.items()]
    return json.dumps({"grammars": [{"lark_grammar": start}, *named]})


def _prefix(text: str) -> str:
    return _terminal(literal(text)) + " " if text else ""


Enclosing: TypeAlias = tuple[tuple[str, str], ...]
"""The rules of the records around a place: pairs of a record's name and its rule's."""


class _Rules:
    """Collects the rules that a grammar needs beside its start."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._of_record: dict[tuple[Record, Enclosing], str] = {}

    def top(self, shape: Shape) -> str:
        """A shape where scalars stand bare."""
        regular = bare(shape)
        if regular is not None:
            return _terminal(regular)
        if isinstance(shape, Union):
            return " | ".join(map(self._top_option, shape.options))
        return self._json(shape, ())

    def _top_option(self, shape: Shape) -> str:
        """An option beside JSON; the lexer takes the longest token, so text must not begin as JSON does."""
        regular = bare(shape)
        if regular is not None and can_begin_with(regular, BRACKETS):
            raise ConstraintError("a union of JSON and text that can begin with { or [, or be empty, is ambiguous")
        return self.top(shape)

    def _json(self, shape: Shape, enclosing: Enclosing) -> str:
        """An expression for a shape as JSON."""
        regular = quoted(shape)
        if regular is not None:
            return _terminal(regular)
        match shape:
            case Union(options=options):
                return f"({' | '.join(self._json(option, enclosing) for option in options)})"
            case List(item=item, minimum=minimum, maximum=maximum):
                return _list(self._json(item, enclosing), minimum or 0, maximum)
            case Dict(value=value):
                return _dict(self._json(value, enclosing))
            case Record():
                return self._record(shape, enclosing)
            case Recursive(name=name):
                return dict(enclosing)[name]
            case AnyJson():
                return self._any()
            case Schema(text=text):
                return self._rule(f"%json {prepare(text)}")
        raise ConstraintError("a grammar can only be the whole type of a gen, never a part of one")

    def _record(self, record: Record, enclosing: Enclosing) -> str:
        key = (record, enclosing)
        if key not in self._of_record:
            if len(enclosing) > DEEPEST:
                raise ConstraintError(f"records nest deeper than {DEEPEST}")
            rule = self._of_record[key] = f"record_{len(self._of_record)}"
            inside = (*enclosing, (record.name, rule))
            members = [(_key(field.name) + self._json(field.shape, inside), field.required) for field in record.fields]
            self.lines.append(f'{rule}: "{{" {_members(members)} "}}"')
        return self._of_record[key]

    def _any(self) -> str:
        lines = [f"any: {self._json(SCALAR, ())} | {_dict('any')} | {_list('any', 0, None)}"]
        self.lines += [line for line in lines if line not in self.lines]
        return "any"

    def _rule(self, body: str) -> str:
        name = f"part_{len(self.lines)}"
        self.lines.append(f"{name}: {body}")
        return name


def _members(members: list[tuple[str, bool]]) -> str:
    """Members in order, commas only between: one option for each that can come first."""
    options = []
    for index, (member, required) in enumerate(members):
        rest = "".join(f' ("," {later})' + ("" if is_required else "?") for later, is_required in members[index + 1 :])
        options.append(member + rest)
        if required:
            return f"({' | '.join(options)})"
    return f"({' | '.join(options)})?" if options else ""


def _list(item: str, minimum: int, maximum: int | None) -> str:
    if maximum is not None and maximum < minimum:
        raise ConstraintError(f"no list has {minimum}..{maximum} items")
    if maximum == 0:
        return '"[]"'
    more = f"{{{max(0, minimum - 1)},{'' if maximum is None else maximum - 1}}}"
    items = f'{item} ("," {item}){more}'
    return f'"[" {items} "]"' if minimum else f'"[" ({items})? "]"'


def _dict(value: str) -> str:
    member = f'{_terminal(json_string(TEXT))} ":" {value}'
    return f'"{{" ({member} ("," {member})*)? "}}"'


def _key(name: str) -> str:
    return _terminal(literal(json.dumps(name, ensure_ascii=False))) + ' ":" '


def _terminal(regex: Regex) -> str:
    text = to_text(regex)
    return f"/{text}/" if text else '""'
