"""Programs in the one layout: what it looks like, and that nothing is lost."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lark import Token
from mutations import PAGE_PROGRAMS, PROGRAM_FILES, mutated_programs
from places import PROGRAMS

from promptlang.diagnostics.rendering import render_all
from promptlang.diagnostics.source import Source
from promptlang.syntax.formatter.layout import FormatError, format_source
from promptlang.syntax.parser import parse, tokenise

BAD_FILES = sorted((PROGRAMS / "bad").glob("*.pl"))


def formatted(text: str) -> str:
    return format_source(Source(text))


def test_a_form_feed_moves_no_block() -> None:
    text = "program p():\n    if true:\n        log 1\n\f\n@        # inside\n@    log 2\n"
    assert formatted(text.replace("@", "\f")) == text.replace("\f", "").replace("@", "")


def is_right(text: str) -> bool:
    """Whether a text has no errors of syntax."""
    return not any(found.is_error for found in parse(Source(text)).diagnostics)


def assert_nothing_is_lost(text: str) -> None:
    """A text's layout means the same, is its own layout, and has every character but white space and commas."""
    before, after = parse(Source(text)), formatted(text)
    again = parse(Source(after))
    assert not any(found.is_error for found in again.diagnostics), render_all(again.diagnostics)
    assert again.module == before.module
    assert formatted(after) == after
    assert re.sub(r"[\s,]", "", after) == re.sub(r"[\s,]", "", text)


# What it looks like ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "laid_out"),
    [
        ("x=1+2*-3", "x = 1 + 2 * -3"),
        ("x = a [ 1 : - 2 ] . b ( c , d = 3 )", "x = a[1:-2].b(c, d=3)"),
        ("x = not(a)and b  or(c<d)", "x = not (a) and b or (c < d)"),
        ('x = {"a":1,"b":[ 2,3 ]}', 'x = {"a": 1, "b": [2, 3]}'),
        ("x = [a for a,b in c if(b)]", "x = [a for a, b in c if (b)]"),
        ("x=gen( int in - 1 .. 5,max_tokens = 3 )", "x = gen(int in -1..5, max_tokens=3)"),
        ("x = gen(/a|b/|'c')", "x = gen(/a|b/ | 'c')"),
        ("x = select (a,b) ", "x = select(a, b)"),
        ("score=score", "score = score"),
        ('user  :  "hi"', 'user: "hi"'),
        ('role"tool":"hi"', 'role "tool": "hi"'),
        ("keep(1)by - x", "keep (1) by -x"),
        ("adopt a [0]", "adopt a[0]"),
        ("require x==1 else retry 3 else 'm'", "require x == 1 else retry 3 else 'm'"),
        ("x = 1 if a else(2)", "x = 1 if a else (2)"),
        ("use lib . f ( )", "use lib.f()"),
        ('"${ a+b }"', '"${ a+b }"'),
        ("beam = 3", "beam = 3"),
    ],
)
def test_white_space_stands_around_operators_and_after_commas(statement: str, laid_out: str) -> None:
    assert formatted(f"program p():\n  {statement}") == f"program p():\n    {laid_out}\n"


@pytest.mark.parametrize(
    ("declaration", "laid_out"),
    [
        ('program p(a:str="x",b=3)->int:pass', 'program p(a: str = "x", b=3) -> int: pass'),
        ("record R :\n\ta:list [ str,1 .. 5 ]=[ ]", "record R:\n    a: list[str, 1..5] = []"),
        ("type T=str( max = 40 )|none", "type T = str(max=40) | none"),
        ("tool t ( a ) -> dict[ str,int ]", "tool t(a) -> dict[str, int]"),
        ('import"a.pl"as b', 'import "a.pl" as b'),
        (
            "program p():\n  beam depth = 2 width=3 branch = 4 by x as b :\n    pass",
            "program p():\n    beam depth=2 width=3 branch=4 by x as b:\n        pass",
        ),
        ("", ""),
        ("\n \n", ""),
        ("# only", "# only"),
    ],
)
def test_declarations_are_laid_out(declaration: str, laid_out: str) -> None:
    assert formatted(declaration) == (f"{laid_out}\n" if laid_out else "")


LONG = """
program p():
    x = first_function(argument_number_one, second=[1, 2, 3]) + second_function(argument_number_two, 3)
    y = [value_of_something + 1 for value_of_something in range(0, 1000) if value_of_something % 2 == 0]
    z = (a_rather_long_name_of_a_variable and another_long_name or the_third_of_the_long_names_in_this)
    user: "A line without brackets stays as it is, however long it may be: there is nowhere to break it."
"""
LONG_LAID_OUT = """
program p():
    x = first_function(argument_number_one, second=[1, 2, 3]) + second_function(
        argument_number_two,
        3,
    )
    y = [
        value_of_something + 1
        for value_of_something in range(0, 1000)
        if value_of_something % 2 == 0
    ]
    z = (
        a_rather_long_name_of_a_variable and another_long_name
        or the_third_of_the_long_names_in_this
    )
    user: "A line without brackets stays as it is, however long it may be: there is nowhere to break it."
"""


def test_a_long_line_is_broken_in_its_brackets() -> None:
    assert formatted(LONG) == LONG_LAID_OUT.lstrip()


def test_a_comma_after_the_last_item_keeps_brackets_broken() -> None:
    assert formatted("const A = [1, 2,]") == "const A = [\n    1,\n    2,\n]\n"
    assert formatted("const A = [\n    1,\n    2\n]") == "const A = [1, 2]\n"


SPREAD = """

const A = 1
const B = 2
# loose

## About p.
program p():


    pass



    pass
record R:
    a: str
# end
"""
SPREAD_LAID_OUT = """
const A = 1
const B = 2
# loose


## About p.
program p():
    pass

    pass


record R:
    a: str
# end
"""


def test_blank_lines_are_two_around_bodies_and_at_most_one_inside() -> None:
    assert formatted(SPREAD) == SPREAD_LAID_OUT.lstrip()


# Comments --------------------------------------------------------------------------------------------

COMMENTED = """
# head

program p(  # trailing
    ## A parameter.
    a: str,  # after a comma

    # a line of its own
    b: int = (
        # inside
        1
    )
    # before the end
):  # after the head
    # first
    if a:  # one
        pass
        # still in the if
    # outside
    elif b:
        pass
    fork as sides:
        # before an arm
        arm left: pass
        # between arms
        arm right: pass
    x = [
        1,  # one
        # two
        2
    ]
    # last in p
# at the end
"""
COMMENTED_LAID_OUT = """
# head


program p(  # trailing
    ## A parameter.
    a: str,  # after a comma

    # a line of its own
    b: int = (
        # inside
        1
    ),
    # before the end
):  # after the head
    # first
    if a:  # one
        pass
        # still in the if
    # outside
    elif b:
        pass
    fork as sides:
        # before an arm
        arm left: pass
        # between arms
        arm right: pass
    x = [
        1,  # one
        # two
        2,
    ]
    # last in p
# at the end
"""


def test_comments_stay_where_they_belong() -> None:
    assert formatted(COMMENTED) == COMMENTED_LAID_OUT.lstrip()


def test_documentation_stays_with_what_it_documents() -> None:
    text = "program p():\n    pass\n    ## About q.\nprogram q(a,\n## About b.\nb): pass\n"
    assert formatted(text) == (
        "program p():\n    pass\n\n\n## About q.\nprogram q(\n    a,\n    ## About b.\n    b,\n): pass\n"
    )


def test_a_comment_in_the_middle_of_an_item_stays_there() -> None:
    text = "const A = [1 +  # why\n  2, 3]\n"
    assert formatted(text) == "const A = [\n    1 +  # why\n        2,\n    3,\n]\n"


# Strings ---------------------------------------------------------------------------------------------


def test_the_lines_of_a_text_move_with_its_statement() -> None:
    assert formatted('program p():\n  """\n    a ${b}\n      c\n\n    d\n  """\n') == (
        'program p():\n    """\n      a ${b}\n        c\n\n      d\n    """\n'
    )


def test_tabs_before_a_text_become_spaces() -> None:
    assert formatted('program p():\n\t"""\n\t\ta\n\t\t\tb\n\t"""\n') == (
        'program p():\n    """\n        a\n        \tb\n    """\n'
    )


@pytest.mark.parametrize(
    "literal",
    [
        '"""\n  shallow\n        deep\n    """',
        '"one \\\n  line"',
        "r'''\n   \\d ${x}\n   '''",
        '"\\q \\u00e9 é \\x41 \' ${"x"}"',
    ],
)
def test_strings_keep_their_characters(literal: str) -> None:
    assert literal in formatted(f"program p():\n    {literal}\n")


@given(
    st.lists(st.text(alphabet=' \t\rab\\\u3000$"', max_size=6), min_size=1, max_size=6),
    st.sampled_from(["\t", "  ", "      "]),
    st.sampled_from(["", "r"]),
)
def test_a_text_says_the_same_however_its_statement_is_indented(lines: list[str], unit: str, raw: str) -> None:
    text = f'program p():\n{unit}if a:\n{unit}{unit}x = {raw}"""{chr(10).join(lines)}"""\n'
    assume(is_right(text))
    assert_nothing_is_lost(text)


# Nothing is lost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PROGRAM_FILES, *BAD_FILES], ids=lambda path: path.stem)
def test_examples_and_test_programs_are_laid_out(path: Path) -> None:
    text = path.read_bytes().decode()
    if is_right(text):
        assert formatted(text) == text, f"run `promptlang fmt {path}`"
    else:
        assert path in BAD_FILES


@pytest.mark.parametrize("text", PAGE_PROGRAMS, ids=[str(number) for number in range(len(PAGE_PROGRAMS))])
def test_programs_of_the_reference_are_laid_out(text: str) -> None:
    assert formatted(text) == text


SOURCES = [*(path.read_text(encoding="utf-8") for path in PROGRAM_FILES), *PAGE_PROGRAMS, COMMENTED, LONG]
IN_BRACKETS = [
    "",
    " ",
    "\t",
    "\n",
    "\n\n\n",
    "\r\n  ",
    "  # c\n",
    "\n# own\n",
    "\n## doc\n",
    "\n  ## a\n\n  # b\n ",
    ",",
    ",\n",
]
BETWEEN_LINES = [
    "\n",
    "\n\n\n\n",
    "  # c\n",
    "\r\n",
    "\n# a\n",
    "\n    # b\n",
    "\n## doc\n",
    "\n        ## deep\n",
    "\n\t\n",
]


@st.composite
def laid_out_anyhow(draw: st.DrawFn) -> str:
    """A program with other white space and comments between its words."""
    text = draw(st.sampled_from(SOURCES))
    changes = draw(st.dictionaries(st.integers(0, 300), st.integers(0, 100), max_size=12))
    unit = draw(st.sampled_from(["    ", "\t", "  "]))
    return respaced(text, tokenise(Source(text)), changes, unit)


def respaced(text: str, tokens: Sequence[Token], changes: dict[int, int], unit: str) -> str:
    """A program with the gaps before some words (by number) changed, and blocks indented by `unit`."""
    pieces: list[str] = []
    depth = brackets = end = 0
    begins_line = True
    for number, token in enumerate(tokens[:-1]):
        depth += (token.type == "_INDENT") - (token.type == "_DEDENT")
        begins_line = begins_line or token.type == "_NEWLINE"
        if token.type in {"_NEWLINE", "_INDENT", "_DEDENT"}:
            continue
        choices = BETWEEN_LINES if begins_line else IN_BRACKETS if brackets else [" ", "  "]
        gap = "\n" if begins_line else text[end : token.start_pos]
        pieces += [
            choices[changes[number] % len(choices)] if number in changes else gap,
            unit * depth * begins_line,
            token,
        ]
        brackets += (token in list("([{")) - (token in list(")]}"))
        end = token.end_pos or 0
        begins_line = False
    return "".join(pieces)


@pytest.mark.slow
@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(laid_out_anyhow())
def test_any_layout_of_a_program_is_formatted_without_loss(text: str) -> None:
    assume(is_right(text))
    assert_nothing_is_lost(text)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(mutated_programs())
def test_mutated_programs_are_formatted_without_loss_or_refused(text: str) -> None:
    if is_right(text):
        assert_nothing_is_lost(text)
    else:
        with pytest.raises(FormatError):
            formatted(text)


@pytest.mark.parametrize("ending", ["", "\n", "\n\n\n", "\n    # end"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_are_kept_and_the_last_line_ends(newline: str, ending: str) -> None:
    text = f'program p():\n\tx = """\n\t\ta\n\t"""{ending}'.replace("\n", newline)
    assert_nothing_is_lost(text)
    assert formatted(text).endswith(newline)
    assert formatted(text).count("\n") == formatted(text).count(newline)


@pytest.mark.parametrize(
    "value",
    [
        "[" * 90 + "]" * 90,
        "(" * 45 + "1" + ")" * 45,
        "f(" * 30 + "1,2" + ")" * 30,
        "+".join(["1"] * 90),
        "[" + "1," * 1000 + "]",
    ],
    ids=["lists", "groups", "calls", "sum", "items"],
)
def test_deep_and_long_programs_are_formatted(value: str) -> None:
    assert_nothing_is_lost(f"const A = {value}")


def test_errors_are_reported_and_warnings_are_not() -> None:
    assert formatted('program p():\n    "\\d"') == 'program p():\n    "\\d"\n'
    with pytest.raises(FormatError) as caught:
        formatted("program p(:\n    pass")
    assert [found.code for found in caught.value.diagnostics] == ["PL001"]
