"""Shapes as grammars in llguidance's notation, a dialect of Lark.

JSON is compact unless it is asked for otherwise: no white space, fields in their order, no escapes but those that are
needed.
"""

import json
from dataclasses import dataclass, replace
from typing import TypeAlias

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.grammar_text import GrammarText
from promptlang.grammar.json_schema.schema import prepare
from promptlang.grammar.regular.regex import Characters, Regex, can_begin_with, literal, to_text
from promptlang.grammar.regular.scalars import TEXT, bare, json_string, quoted
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

BRACKETS = Characters.of([(ord("{"),) * 2, (ord("["),) * 2])

DEEPEST = 60
"""Records inside records."""

SCALAR = Union((Str(), Float(), Bool(), Null()))


@dataclass(frozen=True)
class WhiteSpace:
    """The white space of JSON, which is always the same: there is nothing to choose.

    Attributes:
        spaced: whether a space stands behind colons, and behind commas on one line.
        level: how far what stands here is indented; None where all is on one line.
    """

    spaced: bool = False
    level: int | None = None

    @property
    def colon(self) -> str:
        return ": " if self.spaced else ":"

    @property
    def comma(self) -> str:
        return f",{self.opening}" if self.level is not None else ", " if self.spaced else ","

    @property
    def opening(self) -> str:
        """Behind an opening bracket."""
        return "" if self.level is None else "\n" + INDENT * (self.level + 1)

    @property
    def closing(self) -> str:
        """Before a closing bracket."""
        return "" if self.level is None else "\n" + INDENT * self.level

    def inside(self) -> "WhiteSpace":
        return replace(self, level=None if self.level is None else self.level + 1)

    def on_one_line(self) -> "WhiteSpace":
        return replace(self, level=None)


INDENT = "  "


def to_grammar(shape: Shape, prefix: str, pretty: bool = False) -> str:
    """A shape behind a literal prefix, in llguidance's notation.

    Args:
        shape: which.
        prefix: what stands first.
        pretty: whether lists, dicts and records are indented. What may nest without end (`json`, a schema, a record
            that contains itself) stands on one line, with spaces.

    Raises:
        ConstraintError: a part can't be compiled.
    """
    if isinstance(shape, ContextFree):
        grammar = GrammarText(shape.text)
        grammar.check()
        return _behind(prefix, grammar.with_ignored_ends())
    rules = _Rules()
    value = rules.top(shape, WhiteSpace(spaced=True, level=0) if pretty else WhiteSpace())
    return _grammars("\n".join([f"start: {_prefix(prefix)}({value})", *rules.lines]))


def _behind(prefix: str, grammar: str) -> str:
    return _grammars(f"start: {_prefix(prefix)}@value", value=grammar) if prefix else _grammars(grammar)


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
        self._of_record: dict[tuple[Record, Enclosing, WhiteSpace], str] = {}

    def top(self, shape: Shape, space: WhiteSpace) -> str:
        """A shape where scalars stand bare."""
        regular = bare(shape)
        if regular is not None:
            return _terminal(regular)
        if isinstance(shape, Union):
            return " | ".join(self._top_option(option, space) for option in shape.options)
        return self._json(shape, (), space)

    def _top_option(self, shape: Shape, space: WhiteSpace) -> str:
        """An option beside JSON; the lexer takes the longest token, so text must not begin as JSON does."""
        regular = bare(shape)
        if regular is not None and can_begin_with(regular, BRACKETS):
            raise ConstraintError("a union of JSON and text that can begin with { or [, or be empty, is ambiguous")
        return self.top(shape, space)

    def _json(self, shape: Shape, enclosing: Enclosing, space: WhiteSpace) -> str:
        """An expression for a shape as JSON."""
        regular = quoted(shape)
        if regular is not None:
            return _terminal(regular)
        match shape:
            case Union(options=options):
                return f"({' | '.join(self._json(option, enclosing, space) for option in options)})"
            case List(item=item, minimum=minimum, maximum=maximum):
                return _list(self._item(item, enclosing, space.inside()), minimum or 0, maximum, space)
            case Dict(value=value):
                return _dict(self._item(value, enclosing, space.inside()), space)
            case Record():
                return self._record(shape, enclosing, space.on_one_line() if _is_recursive(shape) else space)
            case Recursive(name=name):
                return dict(enclosing)[name]
            case AnyJson():
                return self._any(space.on_one_line())
            case Schema(text=text):
                return self._rule(f"%json {prepare(text, space.spaced)}")
        raise ConstraintError("a grammar can only be the whole type of a gen, never a part of one")

    def _item(self, shape: Shape, enclosing: Enclosing, space: WhiteSpace) -> str:
        """What a list or a dict is made of. It stands there twice, so what has parts is a rule: the grammar grows with
        each level, and does not double."""
        item = self._json(shape, enclosing, space)
        return self._rule(item) if isinstance(shape, List | Dict | Union) and quoted(shape) is None else item

    def _record(self, record: Record, enclosing: Enclosing, space: WhiteSpace) -> str:
        key = (record, enclosing, space)
        if key not in self._of_record:
            if len(enclosing) > DEEPEST:
                raise ConstraintError(f"records nest deeper than {DEEPEST}")
            rule = self._of_record[key] = f"record_{len(self._of_record)}"
            inside = (*enclosing, (record.name, rule))
            members = [
                (_key(field.name, space) + self._json(field.shape, inside, space.inside()), field.required)
                for field in record.fields
            ]
            self.lines.append(f"{rule}: {_members(members, space)}")
        return self._of_record[key]

    def _any(self, space: WhiteSpace) -> str:
        scalar = self._json(SCALAR, (), space)
        lines = [f"any: {scalar} | {_dict('any', space)} | {_list('any', 0, None, space)}"]
        self.lines += [line for line in lines if line not in self.lines]
        return "any"

    def _rule(self, body: str) -> str:
        name = f"part_{len(self.lines)}"
        self.lines.append(f"{name}: {body}")
        return name


def _is_recursive(record: Record) -> bool:
    """Whether a record contains itself."""
    waiting: list[Shape] = [field.shape for field in record.fields]
    while waiting:
        match waiting.pop():
            case Recursive(name=name) if name == record.name:
                return True
            case Union(options=options):
                waiting += options
            case List(item=item) | Dict(value=item):
                waiting.append(item)
            case Record(fields=fields):
                waiting += [field.shape for field in fields]
    return False


def _members(members: list[tuple[str, bool]], space: WhiteSpace) -> str:
    """Members in order, commas only between: one option for each that can come first."""
    options, comma = [], _text(space.comma)
    for index, (member, required) in enumerate(members):
        rest = "".join(f" ({comma} {later})" + ("" if is_needed else "?") for later, is_needed in members[index + 1 :])
        options.append(member + rest)
        if required:
            break
    is_needed = any(required for _, required in members)
    return _bracketed("{", " | ".join(options), "}", space, may_be_empty=not is_needed)


def _bracketed(opening: str, content: str, closing: str, space: WhiteSpace, *, may_be_empty: bool) -> str:
    """Content between brackets; none at all stands without white space."""
    whole = f"{_text(opening + space.opening)} ({content}) {_text(space.closing + closing)}"
    empty = _text(opening + closing)
    return empty if not content else f"({whole} | {empty})" if may_be_empty else whole


def _list(item: str, minimum: int, maximum: int | None, space: WhiteSpace) -> str:
    if maximum is not None and maximum < minimum:
        raise ConstraintError(f"no list has {minimum}..{maximum} items")
    if maximum == 0:
        return _text("[]")
    more = f"{{{max(0, minimum - 1)},{'' if maximum is None else maximum - 1}}}"
    items = item if maximum == 1 else f"{item} ({_text(space.comma)} {item}){more}"
    return _bracketed("[", items, "]", space, may_be_empty=not minimum)


def _dict(value: str, space: WhiteSpace) -> str:
    member = f"{_terminal(json_string(TEXT))} {_text(space.colon)} {value}"
    return _bracketed("{", f"{member} ({_text(space.comma)} {member})*", "}", space, may_be_empty=True)


def _key(name: str, space: WhiteSpace) -> str:
    return f"{_terminal(literal(json.dumps(name, ensure_ascii=False)))} {_text(space.colon)} "


def _text(text: str) -> str:
    return _terminal(literal(text))


def _terminal(regex: Regex) -> str:
    text = to_text(regex)
    return f"/{text}/" if text else '""'
