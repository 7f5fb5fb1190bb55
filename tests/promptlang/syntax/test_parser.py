"""Source text to AST: strings, layout, words, recovery."""

import string
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import PIECES, PROGRAM_FILES, TEXTS, mutated_programs

from promptlang.checker.check import check
from promptlang.diagnostics.rendering import render_all, to_json
from promptlang.diagnostics.source import Source
from promptlang.syntax import ast
from promptlang.syntax.loader import load_source
from promptlang.syntax.parser import parse, parse_statements, tokenise


def statements(text: str) -> ast.Block:
    """The statements of a text that has no errors."""
    block, diagnostics = parse_statements(Source(text))
    assert not diagnostics, render_all(diagnostics)
    return block


def calls_to_parse(text: str) -> int:
    """Calls of Python functions, and resumed generators."""
    made = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal made
        made += event == "call"

    sys.setprofile(count)
    try:
        parse(Source(text))
    finally:
        sys.setprofile(None)
    return made


def statement(text: str) -> Any:
    [only] = statements(text)
    return only


def string_parts(literal: str) -> Sequence[str | ast.Expression]:
    text = statement(literal)
    assert isinstance(text, ast.Text)
    return text.value.parts


def errors(text: str) -> list[tuple[int, str]]:
    """Line and code of each diagnostic of a file."""
    return [(found.span.position.line, found.code) for found in parse(Source(text)).diagnostics]


# Strings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r'"a\tb\n\\ \" \' \x41 \u00e9 \U0001F600 \N{BULLET} \101 \$"', "a\tb\n\\ \" ' A é 😀 • A $"),
        ("'it\\'s \"so\"'", 'it\'s "so"'),
        ('"\\${x} $5 $$ {a} }{ $"', "${x} $5 $$ {a} }{ $"),
        (r'r"\n ${x} \" end"', r"\n ${x} \" end"),
        ("r'''\n  a\\d\n    ${b}\n  '''", "a\\d\n  ${b}"),
        ('"""one line"""', "one line"),
        ('"""\n    a\n      b\n\n    c\n    """', "a\n  b\n\nc"),
        ('"""\n    a\n        """', "a"),
        ('"""\n        a\n    """', "a"),
        ('"""a\n    b\n      c"""', "a\nb\n  c"),
        ('"""\n\n  a\n\n"""', "\na\n"),
        ('"""\n\ta\n\t\tb\n"""', "a\n\tb"),
        ('"""\n  a \\\n  b\n"""', "a b"),
        ('"""\r\n  a\r\n    b\r\n  """', "a\n  b"),
        ('"""say "hi" or ""hi"" """', 'say "hi" or ""hi"" '),
        ('"""\n  \\"""quoted\\"""\n"""', '"""quoted"""'),
        ('"# no comment"', "# no comment"),
        ('"日本 \U0001f600"', "日本 \U0001f600"),
        ('"a\tb"', "a\tb"),
        ('""', ""),
        ("''", ""),
        ('""""""', ""),
        ('"a\\\n  b"', "a  b"),
    ],
)
def test_a_string_says_its_text(literal: str, text: str) -> None:
    assert "".join(map(str, string_parts(literal))) == text


@pytest.mark.parametrize(
    ("literal", "hole"),
    [
        ('"${x}"', "x"),
        ('"${ {"a": {"b": 1}}["a"] }"', ' {"a": {"b": 1}}["a"] '),
        ('"${"}"}"', '"}"'),
        ("\"${'}'}\"", "'}'"),
        ('"${", ".join(["<${x}>" for x in xs])}"', '", ".join(["<${x}>" for x in xs])'),
        ('"${"${"y"}"}"', '"${"y"}"'),
        ("'${xs[\"a\"]}'", 'xs["a"]'),
    ],
)
def test_a_hole_ends_at_its_own_brace(literal: str, hole: str) -> None:
    [part] = string_parts(literal)
    assert isinstance(part, ast.Expression)
    assert part.span.text.strip() == hole.strip()


def test_text_holes_and_text_stay_in_order() -> None:
    before, hole, after = string_parts('"a ${b} c"')
    assert (before, after) == ("a ", " c")
    assert isinstance(hole, ast.Name)
    assert hole.span.position == (1, 6)


def test_the_span_of_a_hole_counts_from_the_start_of_the_file() -> None:
    [text] = statements('"""\n    a ${b}\n    """\n')
    assert isinstance(text, ast.Text)
    hole = next(part for part in text.value.parts if isinstance(part, ast.Expression))
    assert hole.span.position == (2, 9)


@given(st.text(alphabet=st.characters(exclude_characters='\\$"\r\n', exclude_categories=["Cs"])))
def test_any_text_without_signs_is_its_own_string(text: str) -> None:
    assert "".join(map(str, string_parts(f'"{text}"'))) == text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_can_be_written_with_escapes(text: str) -> None:
    literal = "".join(f"\\U{ord(char):08x}" for char in text)
    assert "".join(map(str, string_parts(f'"{literal}"'))) == text


# Layout and words ------------------------------------------------------------------------------------


def test_line_breaks_inside_brackets_do_not_end_a_statement() -> None:
    assert len(statements("x = [\n  1,\n\n# two\n2,\n]\ny = (\n1\n+\n2)\n")) == 2


@pytest.mark.parametrize(
    "ending", ["", "\n", "\n\n  \n", "\n  ", "\n\t\t\t", "\n# end", "\n    # end\n", "\n \t    # end"]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_how_a_file_ends_and_breaks_its_lines_does_not_matter(ending: str, newline: str) -> None:
    text = "if x:\n    y = 1\n\n  # note\n    z = 2\nelse:\n\tw = 3"
    assert statements((text + ending).replace("\n", newline)) == statements(text)


def test_comments_and_blank_lines_do_not_open_or_close_blocks() -> None:
    assert len(statement("if x:\n    y = 1\n# left\n\n        # right\n    z = 2\n").branches[0][1]) == 2


@pytest.mark.parametrize("blank", ["\f", "  \f", "\f  ", "    \f", "\f\f"])
def test_a_form_feed_is_white_space(blank: str) -> None:
    assert statements(f"if x:\n    y = 1\n{blank}\n    z = 2") == statements("if x:\n    y = 1\n    z = 2")


def test_indentation_counts_from_a_form_feed() -> None:
    assert statements("if x:\n    y = 1\n  \f    z = 2\n\fw = 3") == statements("if x:\n    y = 1\n    z = 2\nw = 3")


@pytest.mark.parametrize("word", ["grammar", "schema"])
@pytest.mark.parametrize("gap", [" ", "\n", " # so\n\n  ", "\r\n\t"])
def test_a_file_may_stand_on_the_line_after_its_word(word: str, gap: str) -> None:
    assert statement(f'x = gen({word}{gap}"g.lark")').answer.type.path == "g.lark"
    assert len(statements(f'x = {word}\n"text"')) == 2


def test_a_role_takes_a_statement_or_a_block() -> None:
    assert statement('user: "a"') == statement('user:\n    "a"')
    assert statement('role "tool": "a"').role == "tool"


@pytest.mark.parametrize(
    "word", ["score", "team", "first", "by", "limit", "options", "user", "keep", "type", "max", "log"]
)
def test_words_that_are_not_ambiguous_are_variables_too(word: str) -> None:
    assert statement(f"{word} = {word} + 1").target == word


def test_score_of_a_text_and_the_variable_score_are_told_apart() -> None:
    assert isinstance(statement('x = score("a")').answer, ast.Score)
    assert isinstance(statement("x = score").value, ast.Name)


def test_a_slash_is_a_pattern_in_a_type_and_a_division_elsewhere() -> None:
    assert statement(r"x = gen(/[a\/]+/)").answer.type.pattern == "[a/]+"
    assert shown(statement("x = a / b / c").value) == "((a/b)/c)"


def test_a_range_is_not_a_float() -> None:
    kind = statement("x = gen(int in 1..5)").answer.type
    assert (kind.low, kind.high) == (1, 5)
    kind = statement("x = gen(float in -0.5..1.5)").answer.type
    assert (kind.low, kind.high) == (-0.5, 1.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1 + 2 * 3", "(1+(2*3))"),
        ("x = -2 ** 2", "(-(2**2))"),
        ("x = 2 ** -1", "(2**(-1))"),
        ("x = 2 ** 3 ** 2", "(2**(3**2))"),
        ("x = not a and b or c", "(((not a) and b) or c)"),
        ("x = 1 - 2 - 3", "((1-2)-3)"),
        ("x = a if b else c if d else e", "(a if b else (c if d else e))"),
        ("x = a.b[1](c)", "a.b[1](c)"),
    ],
)
def test_operators_bind_as_in_python(text: str, expected: str) -> None:
    assert shown(statement(text).value) == expected


def shown(node: ast.Expression) -> str:
    """An expression with all its brackets."""
    match node:
        case ast.Literal(value=value):
            return str(value)
        case ast.Name(name=name):
            return name
        case ast.Arithmetic(first=first, rest=rest):
            text = shown(first)
            for operator, operand in rest:
                text = f"({text}{operator}{shown(operand)})"
            return text
        case ast.Logic(operator=operator, operands=operands):
            return f"({f' {operator} '.join(map(shown, operands))})"
        case ast.Unary(operator=operator, operand=operand):
            return f"({operator}{' ' if operator.isalpha() else ''}{shown(operand)})"
        case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
            return f"({shown(then)} if {shown(condition)} else {shown(otherwise)})"
        case ast.Attribute(value=value, name=name):
            return f"{shown(value)}.{name}"
        case ast.Index(value=value, index=index):
            return f"{shown(value)}[{shown(index)}]"
        case ast.CallExpression(function=function, arguments=arguments):
            return f"{shown(function)}({', '.join(shown(argument.value) for argument in arguments)})"
    raise AssertionError(node)


def test_comparisons_chain() -> None:
    chain = statement("x = a < b not in c == d").value
    assert [operator for operator, _ in chain.rest] == ["<", "not in", "=="]


def test_documentation_comes_from_comments_and_docstrings() -> None:
    module, diagnostics = parse(
        Source(
            '"""The file."""\n\n## A limit.\n## Two lines.\nconst A = 1\n'
            "\nprogram p(\n    ## The ticket.\n    t: str,\n):\n"
            '    """What it does."""\n    user: "${t}"\n\nprogram q():\n    """prompt"""\n    x = gen()\n'
        )
    )
    assert not diagnostics
    const, p, q = module.declarations
    assert module.doc == "The file."
    assert const.doc == "A limit.\nTwo lines."
    assert isinstance(p, ast.Program)
    assert isinstance(q, ast.Program)
    assert (p.doc, p.parameters[0].doc, len(p.body)) == ("What it does.", "The ticket.", 1)
    assert (q.doc, len(q.body)) == (None, 2)


def test_spans_are_exact() -> None:
    text = 'program p(a: str = "x") -> int:\n    if a:\n        b = f(a) + 1  # note\n    return b\n\n\n# end\n'
    module, _ = parse(Source(text))
    program = module.declarations[0]
    assert isinstance(program, ast.Program)
    condition, result = program.body
    assert program.span.text == text[: text.index("\n\n\n# end")]
    assert program.name_span.text == "p"
    assert condition.span.text == "if a:\n        b = f(a) + 1"
    assert isinstance(condition, ast.If)
    assert [statement.span.text for statement in condition.branches[0][1]] == ["b = f(a) + 1"]
    assert result.span.text == "return b"
    assert program.parameters[0].span.text == 'a: str = "x"'


# Recovery --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "retrun x",
        "fro i in x:",
        'usr: "a"',
        "x = gne(int in 1..5)",
        "keep 1 buy x",
        "whlie x:",
        "adpot x[0]",
        "lgo x",
        "x = 1 +",
        "x = )",
        "x = (1",
        '"open',
        "log x; log y",
        'log f"a"',
    ],
)
def test_one_fault_is_one_error_and_the_lines_around_it_are_kept(line: str) -> None:
    text = f"program p(x: int):\n    a = 1\n    {line}\n    b = 2\n\nprogram q():\n    pass\n"
    module, diagnostics = parse(Source(text))
    assert [found.span.position.line for found in diagnostics] == [3]
    p, q = module.declarations
    assert isinstance(p, ast.Program)
    assert isinstance(q, ast.Program)
    assert [inner.target for inner in p.body if isinstance(inner, ast.Assign)] == ["a", "b"]


def test_the_block_of_a_broken_line_is_looked_at_too() -> None:
    assert errors(
        "program p(x: int):\n    fro i in x:\n        log i\n        log 1 +\n    elif x:\n        pass\n"
    ) == [
        (2, "PL002"),
        (4, "PL001"),
    ]


def test_a_broken_declaration_does_not_hide_the_next() -> None:
    assert errors(
        'recrod R:\n    a: str\n    b: int = 3\n\nprogam p(x):\n    user: "a"\n\nprogram q():\n    log 1 +\n'
    ) == [
        (1, "PL002"),
        (5, "PL002"),
        (9, "PL001"),
    ]


@pytest.mark.parametrize("opening", ["x = [1, 2", "x = f(a,", 'x = {"a": (1', "gen(int,"])
def test_a_bracket_that_is_never_closed_is_reported_where_it_opens(opening: str) -> None:
    assert errors(f"program p(a: int):\n    {opening}\n    y = 1\n    z = 2\n") == [(2, "PL006")]
    assert errors(f"program p(a: int):\n    {opening}") == [(2, "PL006")]


def test_text_that_never_ends_is_one_error() -> None:
    assert errors('program p():\n    """\n    a\n    b = (\n') == [(2, "PL005")]


def test_many_errors_are_cut_off() -> None:
    assert len(errors("program p():\n" + "    retrun x\n" * 500)) == 50


@pytest.mark.parametrize("text", TEXTS, ids=[path.stem for path in PROGRAM_FILES])
def test_programs_that_are_right_have_no_errors(text: str) -> None:
    assert parse(Source(text)).diagnostics == []


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS, ids=[path.stem for path in PROGRAM_FILES])
def test_every_prefix_of_a_program_gives_diagnostics_and_never_an_exception(text: str) -> None:
    for end in range(len(text)):
        parse(Source(text[:end]))
        if text[end] == "\n":
            look_at(text[:end])


def look_at(text: str) -> None:
    """All that a user can see of a text."""
    found = check(load_source(Source(text))).diagnostics
    render_all(found)
    to_json(found)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(mutated_programs())
def test_mutated_programs_give_diagnostics_and_never_an_exception(text: str) -> None:
    look_at(text)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, *string.ascii_lowercase, "record R:\n", "return ", "a: str\n"]), max_size=60))
def test_any_text_gives_diagnostics_and_never_an_exception(pieces: list[str]) -> None:
    look_at("".join(pieces))


@pytest.mark.parametrize(
    "text",
    [
        "program p():\n    x = " + "(" * 3000 + "1" + ")" * 3000,
        "program p():\n    x = " + "[" * 3000 + "]" * 3000,
        "program p():\n    x = " + "[" * 3000,
        "program p():\n    x = " + "-" * 3000 + "1",
        "program p():\n    x = " + "+".join("1" * 3000),
        "program p():\n    x = a" + ".b" * 3000,
        "program p():\n    x = " + "1 if 1 else " * 3000 + "1",
        "program p(x: " + "list[" * 3000 + "str" + "]" * 3000 + "):\n    pass",
        "program p():\n" + "".join(" " * (4 + depth) + "if true:\n" for depth in range(400)) + " " * 500 + "pass",
        'program p():\n    "' + "${" * 3000 + "}" * 3000 + '"',
    ],
    ids=lambda text: text[17:40],
)
def test_deep_nesting_is_a_diagnostic_or_fine(text: str) -> None:
    look_at(text)


def test_nesting_is_refused_by_its_code() -> None:
    assert errors("program p():\n    x = " + "-" * 200 + "1") == [(2, "PL010")]


# Work ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_token_costs_few_calls_however_long_the_file() -> None:
    program = (
        'program p{}(a: str, n: int = 1) -> str:\n    user: "${{a}} {}"\n    x = gen(max_tokens=n + 2)\n    return x\n'
    )
    short, long = ("".join(program.format(number, number) for number in range(count)) for count in (40, 80))
    parse(Source(short))  # makes the tables
    assert calls_to_parse(long) <= 2.1 * calls_to_parse(short)
    assert calls_to_parse(long) <= 30 * len(tokenise(Source(long)))
