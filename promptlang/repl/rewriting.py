"""Statements that differ in one thing from those that ran; a program can hold them as it can the first ones."""

import json

from promptlang.diagnostics.source import Source
from promptlang.repl.known import Refused
from promptlang.syntax import ast
from promptlang.syntax.parser import parse_statements
from promptlang.syntax.walk import named, statements_of


def with_more_tokens(text: str) -> str:
    """A statement whose last answer may have twice as many tokens.

    Raises:
        Refused: no `gen` of text stands in it.
    """
    answers = [ask.answer for ask in statements_of(_block(text)) if isinstance(ask, ast.Ask)]
    gens = [answer for answer in answers if isinstance(answer, ast.Gen)]
    if not gens:
        raise Refused("error: the last statement has no `gen`; there is no answer to go on with")
    gen = gens[-1]
    limit = named(gen.options).get("max_tokens")
    if limit is None:
        from promptlang.interpreter.answers import DEFAULT_MAX_TOKENS

        more = _with_option(gen, f"max_tokens={2 * DEFAULT_MAX_TOKENS}")
        return text[: gen.span.start] + more + text[gen.span.end :]
    written = limit.span.text
    more = str(2 * int(written)) if written.isdecimal() else f"2 * ({written})"
    return text[: limit.span.start] + more + text[limit.span.end :]


def beginning_with(text: str, beginning: str) -> str:
    """A statement of one answer, which now begins with a text.

    Raises:
        Refused: it is more than an answer of free text in a turn, or outside of turns.
    """
    match _block(text):
        case (ast.Role(body=(ast.Ask(target=target, answer=ast.Gen(type=None) as gen) as ask,)),):
            head, indent = f"{text[: ask.span.start].strip()}\n", "    "
        case (ast.Ask(target=target, answer=ast.Gen(type=None) as gen),):
            head, indent = "", ""
        case _:
            raise Refused("error: an answer begins with other words only where the statement is one `gen` of free text")
    words = json.dumps(beginning, ensure_ascii=False).replace("${", "\\${")
    answer = gen.span.text if "heal" in named(gen.options) else _with_option(gen, "heal=false")
    lines = [words, answer] if target is None else [words, f"{target} = {answer}", f"{target} = {words} + {target}"]
    return head + "".join(f"{indent}{line}\n" for line in lines)


def _with_option(gen: ast.Gen, option: str) -> str:
    """The text of a `gen` with one more option, which it must not have."""
    inside = gen.span.text[:-1].rstrip()
    return f"{inside}{'' if inside.endswith(('(', ',')) else ', '}{option})"


def _block(text: str) -> ast.Block:
    return parse_statements(Source(text))[0]
