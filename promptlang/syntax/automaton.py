"""The LALR automaton that lark makes of the language's grammar, and one run of it.

lark makes the tables and the lexers. The run is our own: it takes a token in a few steps, and makes no more of a rule
than the AST needs.
"""

import os
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from lark import Lark, Token
from lark.grammar import Rule
from lark.lexer import BasicLexer, ContextualLexer
from lark.parsers.lalr_analysis import Shift

from promptlang.syntax.indentation import Indentation

_NOWHERE = -1


class Node:
    """What a rule of the grammar found.

    Attributes:
        rule: its name.
        children: the nodes and tokens inside that it keeps.
        start: of its first character; -1 where it has none.
        end: behind its last.
        start_pos: as `start`, but of the brackets around it, if any, and None where there is nothing (as a token's is).
        end_pos: as `end`, of these.
        built: what the AST has for it, once that is made.
    """

    __slots__ = ("built", "children", "end", "end_pos", "rule", "start", "start_pos")

    def __init__(self, rule: str, children: "list[Node | Token | None]") -> None:
        self.rule = rule
        self.children = children
        self.start = self.end = _NOWHERE
        self.start_pos: int | None = None
        self.end_pos: int | None = None
        self.built: Any = None

    def stand(self, parts: "list[Node | Token]") -> None:
        """Stand where the parts of a rule do; a node that only gets brackets around it stays where it is."""
        for part in parts:
            if part.start_pos is not None:
                self.start_pos = part.start_pos
                break
        for part in reversed(parts):
            if part.end_pos is not None:
                self.end_pos = part.end_pos
                break
        if self.start == _NOWHERE and self.start_pos is not None and self.end_pos is not None:
            self.start, self.end = self.start_pos, self.end_pos


_Value: TypeAlias = Node | Token


class _Reduction(NamedTuple):
    """What a rule does to the stacks: so many values become one. Without `make`, that is the only one, as it is."""

    size: int
    origin: str
    make: Callable[[list[_Value]], _Value] | None


_Actions: TypeAlias = Mapping[str, Any]
"""What a state does at a token, or at what a rule made, by its name: the next state (an int), or a reduction."""


class Tables(dict[int, _Actions]):
    """The actions of each state, made of lark's when they are first asked for.

    Attributes:
        first: the state to begin with.
        last: the one that says that all is read.
        lexers: that of each state.
        any_lexer: knows all tokens, wherever they may stand.
    """

    def __init__(self, lark: Lark, start: str) -> None:
        super().__init__()
        conf = lark.parse_interactive(start=start).parser_state.parse_conf
        lexer = cast(ContextualLexer, lark.parser.lexer.lexer)
        self.first: int = conf.start_state
        self.last: int = conf.end_state
        self.lexers = cast(Mapping[int, BasicLexer], lexer.lexers)
        self.any_lexer = cast(BasicLexer, lexer.root_lexer)
        self._states = conf.states
        self._callbacks: Mapping[Any, Callable[..., Any]] = conf.callbacks

    def __missing__(self, state: int) -> _Actions:
        self[state] = {
            name: argument if action is Shift else self._reduction(argument)
            for name, (action, argument) in self._states[state].items()
        }
        return self[state]

    def _reduction(self, rule: Rule) -> _Reduction:
        return _Reduction(len(rule.expansion), rule.origin.name, _making(rule, self._callbacks[rule]))


def _making(rule: Rule, make: Callable[[list[Any]], Any]) -> Callable[[list[_Value]], _Value] | None:
    """How a rule makes its value; None for one that stands for its only child, as each level of precedence does that
    an expression makes no use of."""
    is_handed_on = rule.options.expand1 and not rule.alias and len(rule.expansion) == 1
    if is_handed_on and not rule.expansion[0].is_term and not any(rule.options.empty_indices):
        return None
    return make


class Automaton:
    """One run.

    Args:
        tables: of what is to be parsed.
        declared: is told of every declaration, once it is whole: no recovery takes it back.

    Attributes:
        states: the stack of states; the last one is the current.
        result: the node of the whole, once the end was taken.
    """

    def __init__(self, tables: Tables, declared: Callable[[Node], object]) -> None:
        self.states = [tables.first]
        self.result: Node | None = None
        self._tables = tables
        self._declared = declared
        self._values: list[_Value] = []

    def feed(self, token: Token) -> bool:
        """Take a token; whether it may stand here."""
        tables, states, values, kind = self._tables, self.states, self._values, token.type
        while True:
            action = tables[states[-1]].get(kind)
            if type(action) is int:
                states.append(action)
                values.append(token)
                return True
            if action is None:
                return False
            size, origin, make = action
            if make is None:
                states[-1] = tables[states[-2]][origin]
            else:
                first = len(values) - size
                parts = values[first:]
                del values[first:]
                del states[first + 1 :]
                states.append(tables[states[-1]][origin])
                value = make(parts)
                if type(value) is Node:
                    value.stand(parts)
                values.append(value)
            if origin == "declaration":
                self._declared(cast(Node, values[-1]))
            elif states[-1] == tables.last and kind == "$END":
                self.result = cast(Node, values[-1])
                return True

    def accepts(self) -> frozenset[str]:
        """The types of the tokens that may come next."""
        return frozenset(kind for kind in self._tables[self.states[-1]] if kind.isupper() and self._would_take(kind))

    def _would_take(self, kind: str) -> bool:
        states = copy(self.states)
        while isinstance(action := self._tables[states[-1]].get(kind), _Reduction):
            del states[len(states) - action.size :]
            states.append(self._tables[states[-1]][action.origin])
        return action is not None

    def cut_back(self, kind: str) -> None:
        """Drop what was taken last, up to where a token of a type may stand."""
        while kind not in self._tables[self.states[-1]]:
            self.states.pop()
            self._values.pop()


@cache
def tables(start: str) -> Tables:
    """The tables for what begins with a rule: `file`, `statements` or `hole`."""
    return Tables(_lark(), start)


@cache
def _lark() -> Lark:
    grammar = files("promptlang.grammar.language").joinpath("promptlang.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        postlex=Indentation(),
        start=["file", "statements", "hole"],
        maybe_placeholders=True,
        tree_class=Node,
        cache=_table_file() or False,
    )


def _table_file() -> str | None:
    """Where the parser's tables are kept between runs (making them takes longer than checking a file); None
    if nowhere."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "promptlang"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return str(folder / "grammar.tables") if os.access(folder, os.W_OK) else None
