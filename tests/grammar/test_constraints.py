"""What every constraint promises, whichever engine serves it."""

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regex_derivatives import after, can_be_empty, is_void
from shape_values import PATTERNS, REPLY, SCALARS, STRUCTURES, compact, fits, pick, values, write

from examples import examples
from promptlang.grammar.acceptor import accepts
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint, State
from promptlang.grammar.ending import shortest_end
from promptlang.grammar.engines import earley
from promptlang.grammar.engines.earley import EarleyConstraint
from promptlang.grammar.engines.trie import TrieConstraint
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.reader import read
from promptlang.grammar.regular.regex_parser import parse
from promptlang.grammar.regular.scalars import bare
from promptlang.grammar.shapes import (
    AnyJson,
    Constant,
    ContextFree,
    Dict,
    Field,
    Float,
    Int,
    List,
    Null,
    Pattern,
    Record,
    Schema,
    Shape,
    Str,
    Union,
)
from promptlang.grammar.vocabulary import Vocabulary

SHAPES = SCALARS + STRUCTURES


def text_of(vocabulary: Vocabulary, tokens: list[int]) -> str:
    return b"".join(vocabulary.token_bytes[token] for token in tokens).decode()


def walk(constraint: Constraint, vocabulary: Vocabulary, seed: int, steps: int = 40) -> str:
    """A random answer, brought to its shortest end when it grows long. Checks the promises on the way."""
    source = random.Random(seed)
    state, taken = constraint.start(), list[int]()
    while not state.is_done() and not (state.can_end() and source.random() < 0.2):
        if len(taken) >= steps:
            taken += shortest_end(state, 64) or []
            break
        forced, allowed = state.forced(), vocabulary.tokens_of(state.mask())
        assert allowed or state.can_end()
        assert vocabulary.special_ids.isdisjoint(allowed)
        if forced:
            assert forced[0] in allowed
        tokens = forced or [pick(source, allowed, list(vocabulary.token_bytes))]
        for token in tokens:
            state.advance(token)
        taken += tokens
    return text_of(vocabulary, taken)


def spell(state: State, tokens: list[int], vocabulary: Vocabulary) -> bool:
    """Whether a state takes all the tokens, each of them in its mask."""
    for token in tokens:
        if token not in vocabulary.tokens_of(state.mask()):
            return False
        state.advance(token)
    return True


# Legal, and nothing else -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@settings(deadline=None, max_examples=examples(15))
@given(seed=st.integers(0, 10**6))
def test_every_answer_is_a_value_of_its_type(shape: Shape, vocabulary: Vocabulary, seed: int) -> None:
    text = walk(compile_constraint(shape, vocabulary), vocabulary, seed)
    assert fits(shape, text), text
    value = read(shape, text)
    # One number has several notations: 1.0, -0, 7e1.
    if isinstance(value, dict | list) and not re.search(r"\.|-0|\d[eE]", text):
        assert compact(value) == text or len(set(value)) != text.count(":")


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@settings(deadline=None, max_examples=examples(15))
@given(data=st.data())
def test_every_value_can_be_written_as_the_tokenizer_writes_it(
    shape: Shape, vocabulary: Vocabulary, data: st.DataObject
) -> None:
    value = data.draw(values(shape))
    text = write(shape, value)
    state = compile_constraint(shape, vocabulary).start()
    assert spell(state, vocabulary.encode(text), vocabulary), text
    assert state.can_end()
    if not isinstance(shape, Union):
        assert read(shape, text) == value


@pytest.mark.parametrize("shape", [Pattern("[a-z]{2,4}"), Float(0, 1), REPLY, Constant("word"), AnyJson()], ids=repr)
def test_a_refused_token_changes_nothing(shape: Shape, byte_level: Vocabulary) -> None:
    state = compile_constraint(shape, byte_level).start()
    before = byte_level.tokens_of(state.mask())
    for token in {0, 1, 5, *byte_level.eos_ids, *byte_level.special_ids} - set(before):
        with pytest.raises(ValueError, match=str(token)):
            state.advance(token)
    assert byte_level.tokens_of(state.mask()) == before
    for token in before:
        state.fork().advance(token)


def test_characters_split_over_tokens_can_be_written(byte_level: Vocabulary) -> None:
    for shape, text in [
        (Str(2), "🙂世"),
        (Pattern("[^a]{2}"), "🙂世"),
        (List(Str(2)), '["🙂世"]'),
        (Constant("🙂"), "🙂"),
        (Str(1), "\U0010ffff"),
    ]:
        tokens = [token for byte in text.encode() for token in byte_level.by_bytes[bytes([byte])][:1]]
        state = compile_constraint(shape, byte_level).start()
        assert spell(state, tokens, byte_level)
        assert state.can_end()


def test_a_length_counts_characters(byte_level: Vocabulary) -> None:
    state = compile_constraint(Str(2), byte_level).start()
    assert spell(state, byte_level.encode("🙂世"), byte_level)
    assert state.is_done()


@pytest.mark.slow
def test_a_pattern_in_a_record_stays_inside_its_quotes(byte_level: Vocabulary) -> None:
    shape = Record("R", (Field("x", Pattern("[^a]*")), Field("y", Int(0, 9))))
    for seed in range(30):
        value = read(shape, walk(compile_constraint(shape, byte_level), byte_level, seed))
        assert list(value) == ["x", "y"]
        assert "a" not in value["x"]


def test_fields_keep_their_order(byte_level: Vocabulary) -> None:
    shape = Record("R", tuple(Field(name, Int(0, 9)) for name in ("zeta", "alpha", "mid")))
    assert list(read(shape, walk(compile_constraint(shape, byte_level), byte_level, 1))) == ["zeta", "alpha", "mid"]


def test_json_holds_no_free_white_space(byte_level: Vocabulary) -> None:
    for shape in (AnyJson(), Schema('{"type":"object"}'), List(Int())):
        state = compile_constraint(shape, byte_level).start()
        assert not spell(state.fork(), byte_level.encode(" "), byte_level)
        assert not spell(state, byte_level.encode("[\n" if isinstance(shape, List) else "{\n"), byte_level)


@pytest.mark.parametrize("text", ["[" * 50 + "]" * 50, '{"a":' * 40 + "1" + "}" * 40])
def test_json_nests_without_a_fixed_depth(text: str, byte_level: Vocabulary) -> None:
    state = compile_constraint(AnyJson(), byte_level).start()
    assert spell(state, byte_level.encode(text), byte_level)
    assert state.is_done()


NESTS: dict[str, tuple[Callable[[Shape], Shape], str, str]] = {
    "lists": (List, "[", "]"),
    "dicts": (Dict, '{"a":', "}"),
    "unions": (lambda inner: List(Union((Null(), inner))), "[", "]"),
}
"""What nests: a shape around another, and what stands around its value."""


def nested(kind: str, depth: int) -> tuple[Shape, str]:
    """A shape of so many levels, and one of its values."""
    around, opening, closing = NESTS[kind]
    shape: Shape = Int()
    for _ in range(depth):
        shape = around(shape)
    return shape, opening * depth + "1" + closing * depth


@pytest.mark.parametrize("kind", NESTS)
def test_a_shape_that_nests_deeply_has_a_grammar_that_grows_with_each_level(kind: str, byte_level: Vocabulary) -> None:
    few, more = (len(to_grammar(nested(kind, depth)[0], "")) for depth in (8, 16))
    assert more < 2.5 * few
    for depth in (60, 100):
        shape, text = nested(kind, depth)
        state = compile_constraint(shape, byte_level).start()
        assert spell(state, byte_level.encode(text), byte_level)
        assert state.can_end()


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('start: "(" start ")" | "x"', "((x))", "((x)"),
        ('start: term (/[+*-]/ term)*\nterm: /[0-9]+/ | "(" start ")"', "(1+2)*3", "1+"),
        ('start: "select " NAME (", " NAME)* " from " NAME\nNAME: /[a-z_]+/', "select a, b from t", "select a b"),
        ('start: "<" /[<>]/ // <comment>', "<>", "<"),
    ],
)
def test_a_context_free_grammar_is_followed(grammar: str, good: str, bad: str, vocabulary: Vocabulary) -> None:
    for prefix in ("", "> "):
        constraint = compile_constraint(ContextFree(grammar), vocabulary, prefix=prefix)
        whole, part = constraint.start(), constraint.start()
        assert spell(whole, vocabulary.encode(prefix + good), vocabulary)
        assert whole.can_end()
        assert not (spell(part, vocabulary.encode(prefix + bad), vocabulary) and part.can_end())


# States ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [Constant("network"), Int(0, 1000), Pattern("[a-z]{1,9}"), REPLY, AnyJson()], ids=repr
)
@settings(deadline=None, max_examples=examples(20))
@given(seed=st.integers(0, 10**6), back=st.integers(1, 6))
def test_a_rollback_restores_what_was_legal(shape: Shape, byte_level: Vocabulary, seed: int, back: int) -> None:
    source = random.Random(seed)
    state, masks = compile_constraint(shape, byte_level).start(), []
    while len(masks) < 8 and not state.is_done():
        masks.append(byte_level.tokens_of(state.mask()))
        state.advance(source.choice(masks[-1]))
    back = min(back, len(masks))
    other = state.fork()
    state.rollback(back)
    assert byte_level.tokens_of(state.mask()) == masks[-back]
    state.advance(source.choice(masks[-back]))
    other.rollback(len(masks))
    assert byte_level.tokens_of(other.mask()) == masks[0]


@pytest.mark.parametrize("shape", [Constant("network"), Pattern("[a-z]{1,9}"), REPLY], ids=repr)
def test_a_fork_goes_its_own_way(shape: Shape, byte_level: Vocabulary) -> None:
    state = compile_constraint(shape, byte_level).start()
    before = byte_level.tokens_of(state.mask())
    for token in before:
        fork = state.fork()
        fork.advance(token)
    assert byte_level.tokens_of(state.mask()) == before


# Forced text -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@settings(deadline=None, max_examples=examples(10))
@given(data=st.data())
def test_what_is_forced_is_how_every_value_goes_on(shape: Shape, byte_level: Vocabulary, data: st.DataObject) -> None:
    text = write(shape, data.draw(values(shape)))
    tokens = byte_level.encode(text)
    state = compile_constraint(shape, byte_level).start()
    for index, token in enumerate(tokens):
        forced = state.forced()
        assert tokens[index : index + len(forced)] == forced
        state.advance(token)
    assert not state.forced()


def test_a_constant_is_forced_whole(vocabulary: Vocabulary) -> None:
    for shape in (Constant("The fox runs"), Pattern("The fox runs")):
        assert compile_constraint(shape, vocabulary).start().forced() == vocabulary.encode("The fox runs")


def test_the_frame_of_a_record_is_forced(byte_level: Vocabulary) -> None:
    shape = Record("R", (Field("urgency", Int(3, 3)), Field("team", Union((Constant("a"), Constant("b"))))))
    forced = compile_constraint(shape, byte_level).start().forced()
    assert text_of(byte_level, forced).startswith('{"urgency":3,"tea')


# Prefixes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize("prefix", [" ", "The ", '"', "é"])
@settings(deadline=None, max_examples=examples(4))
@given(data=st.data())
def test_a_value_follows_its_prefix_even_inside_one_token(
    shape: Shape, prefix: str, byte_level: Vocabulary, data: st.DataObject
) -> None:
    text = prefix + write(shape, data.draw(values(shape)))
    state = compile_constraint(shape, byte_level, prefix=prefix).start()
    assert spell(state, byte_level.encode(text), byte_level)
    assert state.can_end()
    written = walk(compile_constraint(shape, byte_level, prefix=prefix), byte_level, 3)
    assert written.startswith(prefix)
    assert fits(shape, written.removeprefix(prefix))


# Engines ---------------------------------------------------------------------------------------------------

SMALL = [*PATTERNS, r"0(\.5)?", r"(a|ab)(c|bcd)?", r"\d{1,3}(,\d{3})*", "", "a?b?c?", "(the|fox|dog)*", "[é🙂]{0,2}x?"]


@pytest.mark.parametrize("pattern", SMALL)
@settings(deadline=None, max_examples=examples(15))
@given(seed=st.integers(0, 10**6))
def test_a_mask_holds_the_tokens_after_which_a_text_of_the_expression_can_follow(
    pattern: str, vocabulary: Vocabulary, seed: int
) -> None:
    texts = whole_texts(vocabulary)
    state, rest = compile_constraint(Pattern(pattern), vocabulary).start(), parse(pattern)
    source = random.Random(seed)
    for _ in range(12):
        expected = {token for token, text in texts.items() if not is_void(after(rest, text))}
        allowed = expected & {*vocabulary.tokens_of(state.mask())}
        assert allowed == texts.keys() & {*vocabulary.tokens_of(state.mask())}
        if not state.forced():  # else the mask may hold the forced token alone
            assert allowed == expected
        assert state.can_end() == can_be_empty(rest)
        assert state.is_done() == (can_be_empty(rest) and not expected)
        if not allowed:
            return
        token = source.choice(sorted(allowed))
        state.advance(token)
        rest = after(rest, texts[token])


def whole_texts(vocabulary: Vocabulary) -> dict[int, str]:
    """The tokens of whole characters."""
    found = {}
    for token in vocabulary.tokens_of(vocabulary.text_mask):
        with suppress(UnicodeDecodeError):
            found[token] = vocabulary.token_bytes[token].decode()
    return found


def test_each_engine_serves_what_it_is_good_at(byte_level: Vocabulary) -> None:
    served = {
        Constant("a"): TrieConstraint,
        Union((Constant("a"), Constant(2))): TrieConstraint,
        Int(1, 5): EarleyConstraint,
        Str(200): EarleyConstraint,
        List(Int()): EarleyConstraint,
    }
    for shape, engine in served.items():
        assert isinstance(compile_constraint(shape, byte_level), engine)


def test_a_compiled_constraint_is_found_again_by_shape_prefix_and_tokenizer(
    byte_level: Vocabulary, embedded_vocabulary: Vocabulary
) -> None:
    first = compile_constraint(Int(1, 5), byte_level)
    assert compile_constraint(Int(1, 5), byte_level) is first
    assert compile_constraint(Int(1, 5), byte_level, prefix=" ") is not first
    assert compile_constraint(Int(1, 5), embedded_vocabulary) is not first
    assert compile_constraint(Constant(1), byte_level) is not compile_constraint(Constant(True), byte_level)


# Limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape",
    [
        Str(20),
        Str(200),
        Str(1_000_000),
        Pattern(r"[A-Z][^.]{0,18}\."),
        Pattern(r"[^\n]{1,200}"),
        Pattern(r"(a|b)*a(a|b){300}"),
        Record("R", (Field("a", Str(20)), Field("b", Pattern(r"[A-Z][^.]{0,18}\.")))),
        List(List(Int(), 0, 1000), 0, 1000),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_long_repetitions_compile_within_the_limits(shape: Shape, embedded_vocabulary: Vocabulary) -> None:
    constraint = compile_constraint(shape, embedded_vocabulary)
    assert fits(shape, walk(constraint, embedded_vocabulary, 1)) or isinstance(shape, Pattern)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (Pattern("(?:a{1,1000}){1,1000}"), "{1,1000}"),
        (Int(5, 1), "5..1"),
        (List(Int(), 3, 2), "3..2"),
        (List(ContextFree('start: "a"')), "grammar"),
        (ContextFree('start: "<" <|im_end|> /[<]/'), "control token"),
        (ContextFree("start: (a"), ")"),
        (ContextFree('first: "a"'), "start"),
        (Union((Str(), List(Int()))), "ambiguous"),
        (Union((Pattern("[^a]+"), AnyJson())), "ambiguous"),
    ],
    ids=repr,
)
def test_what_cannot_be_served_is_an_error_that_says_why(shape: Shape, name: str, byte_level: Vocabulary) -> None:
    with pytest.raises(ConstraintError) as caught:
        compile_constraint(shape, byte_level)
    assert name in str(caught.value)


def test_a_character_without_tokens_is_an_error() -> None:
    letters = Vocabulary([b"a", b"b", b""], frozenset([2]), (2,), lambda text: [ord(c) - 97 for c in text], "letters")
    with pytest.raises(ConstraintError, match="abc"):
        compile_constraint(Constant("abc"), letters)


# The embedded model's tokens -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_answers_in_the_embedded_model_s_tokens_are_values(shape: Shape, embedded_vocabulary: Vocabulary) -> None:
    for seed in range(5):
        assert fits(shape, walk(compile_constraint(shape, embedded_vocabulary), embedded_vocabulary, seed))


def test_regular_shapes_have_one_expression_bare() -> None:
    assert all(bare(shape) is not None for shape in SCALARS)
    assert all(bare(shape) is None for shape in STRUCTURES)


def test_starts_and_forks_compile_nothing(byte_level: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = compile_constraint(REPLY, byte_level)
    monkeypatch.delattr(earley, "LLMatcher")
    state = constraint.start()
    state.advance(state.forced()[0])
    assert state.fork().mask().any()


# Laid out for people ---------------------------------------------------------------------------------------


def has_end(shape: Shape) -> bool:
    """Whether the depth of a shape's values is known, so that they are indented throughout."""
    return all(word not in repr(shape) for word in ("Recursive", "AnyJson", "Schema"))


@pytest.mark.parametrize("shape", [shape for shape in STRUCTURES if not isinstance(shape, ContextFree)], ids=repr)
@settings(deadline=None, max_examples=examples(15))
@given(data=st.data())
def test_a_pretty_value_is_laid_out_as_json_dumps_would(
    shape: Shape, byte_level: Vocabulary, data: st.DataObject
) -> None:
    value = data.draw(values(shape))
    if not isinstance(value, list | dict):
        return
    layout: dict[str, Any] = {"indent": 2} if has_end(shape) else {}
    text = json.dumps(value, ensure_ascii=False, **layout)
    grammar = to_grammar(shape, "", pretty=True)
    assert accepts(grammar, text) or not has_end(shape), text
    wider = json.dumps(value, ensure_ascii=False, separators=("," if layout else ", ", ":  "), **layout)
    assert not accepts(grammar, wider) or wider == text
    if accepts(grammar, text):
        assert read(shape, text) == value


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (List(AnyJson()), '[\n  {"a": [1, 2]},\n  []\n]'),
        (AnyJson(), '{"a": [1, {}]}'),
        (Schema('{"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}}'), '{"a": 1, "b": [2, 3]}'),
        (Record("Empty", ()), "{}"),
        (Record("R", (Field("a", List(Int())), Field("b", Str()))), '{\n  "a": [],\n  "b": "x"\n}'),
    ],
    ids=repr,
)
def test_what_nests_without_end_stands_on_one_line(shape: Shape, text: str) -> None:
    grammar = to_grammar(shape, "", pretty=True)
    assert accepts(grammar, text)
    assert not accepts(grammar, text.replace(" ", "")) or " " not in text
    assert not accepts(grammar, text.replace(" ", "  ")) or " " not in text


def test_pretty_and_compact_are_compiled_apart(byte_level: Vocabulary) -> None:
    shape = List(Int(1, 9), 1, 1)
    compact_state = compile_constraint(shape, byte_level).start()
    pretty_state = compile_constraint(shape, byte_level, pretty=True).start()
    tokens = byte_level.encode("[\n  3\n]")
    assert spell(pretty_state, tokens, byte_level)
    assert not spell(compact_state, tokens, byte_level)
