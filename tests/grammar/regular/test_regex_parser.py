"""The dialect of patterns: as Python's `re` with ASCII classes, or refused by name."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from promptlang.grammar.acceptor import matches
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.regular.regex import to_text
from promptlang.grammar.regular.regex_parser import parse, parse_search

PATTERNS = [
    r"[A-Z]{3}-\d+",
    r"a|bc|",
    r"(?P<name>ab?)+?c*",
    r"[^\W\d_]{2,3}",
    r"\s?\S\D\W",
    r".\n.",
    r"[\w.+-]+@[\w-]+\.[a-z]{2,}",
    r"\x41\u00e9\t",
    r"[\]\-\\^]+",
    r"[a\-z]|[-a]|[a-]",
    r"((a{2}|b){1,2}c?){2}",
    r"[é-ü]",
]
ALPHABET = st.text(st.sampled_from(list("ABCabcz019-_.@+ \n\t\\^]é٣ü")), max_size=8)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=ALPHABET)
def test_a_pattern_means_what_python_reads_in_it(pattern: str, text: str) -> None:
    expected = re.fullmatch(pattern, text, re.ASCII) is not None
    assert (re.fullmatch(to_text(parse(pattern)), text) is not None) == expected
    assert matches(parse(pattern), text) == expected


@pytest.mark.parametrize("pattern", PATTERNS)
@given(data=st.data())
def test_texts_made_from_a_pattern_match_it(pattern: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True))
    assert matches(parse(pattern), text)


@pytest.mark.parametrize("pattern", ["b", "^a", "a$", "^ab$", "^a|c$", "(?:a|b)c"])
@given(text=st.text("abc", max_size=5))
def test_a_search_covers_the_whole_texts_with_a_match_inside(pattern: str, text: str) -> None:
    assert matches(parse_search(pattern), text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (r"a(?=b)", "lookahead"),
        (r"a(?!b)", "negative lookahead"),
        (r"(?<=a)b", "lookbehind"),
        (r"(?<!a)b", "negative lookbehind"),
        (r"(a)\1", "back-reference"),
        (r"(?P<x>a)(?P=x)", "back-reference"),
        (r"\bword", "word boundary"),
        (r"a\Z", "anchor"),
        (r"a^b", "anchor"),
        (r"(a$)b", "anchor"),
        (r"\p{L}", "Unicode property"),
        (r"(?i)a", "flags"),
        (r"(?i:a)", "flags"),
        (r"a++", "possessive"),
        (r"(?>a)", "atomic"),
        (r"a{2,1}", "{2,1}"),
        (r"[z-a]", "z-a"),
        (r"[[:alpha:]]", "["),
        (r"[a&&b]", "&&"),
        (r"(a", "without its )"),
        (r"a)", "without its ("),
        (r"*a", "after nothing"),
        (r"a**", "group"),
        (r"{", "repetition"),
        (r"[a", "]"),
        ("\\", "character"),
        (r"\q", r"\q"),
        (r"\xZZ", "code point"),
        (r"[^\d\D]", "no text"),
        (r"(?:a{1,1000}){1,1000}", "{1,1000}"),
        ("(" * 60 + "a" + ")" * 60, "deeper"),
        ("a" * 20_000, "longer"),
        ("[]|", r"\]"),
        ("[^]a]", r"\]"),
        (r"a|[^\s\S]", "every character"),
    ],
)
def test_what_is_not_in_the_dialect_is_refused_by_name(pattern: str, name: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        parse(pattern)
    assert name in str(caught.value)


@example("[]|")
@example(r"a|[^\s\S]")
@given(st.text(st.sampled_from(list(r"ab1.*+?{},()[]^$|\-dwsx:P<>=!")), max_size=12))
def test_any_text_is_a_pattern_or_a_clear_refusal(pattern: str) -> None:
    try:
        regex = parse(pattern)
    except ConstraintError:
        return
    re.compile(to_text(regex))
