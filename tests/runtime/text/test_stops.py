"""What a reader sees of a growing answer, and where a stop string cuts it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from promptlang.runtime.text.stops import AnswerText


def push_all(answer: AnswerText, pieces: list[bytes]) -> str:
    """Push until a stop string is complete; returns what was shown on the way."""
    shown = ""
    for piece in pieces:
        stopped = answer.push(piece)
        shown += answer.show()
        if stopped:
            break
    return shown + answer.show(final=True)


def test_a_stop_string_over_several_tokens_is_never_shown() -> None:
    answer = AnswerText(["END"])
    assert answer.push(b"one E") is False
    assert answer.show() == "one "
    answer.push(b"N")
    assert answer.show() == ""
    assert answer.push(b"D two") is True
    assert answer.show(final=True) == ""
    assert answer.text == "one "


def test_what_only_looked_like_a_stop_is_shown_in_the_end() -> None:
    answer = AnswerText(["END"])
    assert push_all(answer, [b"the E", b"N", b"GINE"]) == "the ENGINE"


def test_the_earliest_of_several_stops_wins() -> None:
    answer = AnswerText(["stop", "\n"])
    push_all(answer, [b"a\nb stop"])
    assert answer.text == "a"


def test_a_stop_inside_a_longer_token_keeps_the_tokens_beginning() -> None:
    answer = AnswerText(["\n"])
    push_all(answer, [b"Yes", b".\n\n"])
    assert answer.text == "Yes."
    assert answer.kept_tokens() == (1, b".")


def test_a_stop_at_a_token_border_keeps_whole_tokens() -> None:
    answer = AnswerText(["\n"])
    push_all(answer, [b"Yes", b".", b"\n"])
    assert answer.kept_tokens() == (2, b"")


def test_a_character_that_ends_in_the_stops_token_is_kept_whole() -> None:
    answer = AnswerText(["\n"])
    snowman = "☃".encode()
    push_all(answer, [b"A", snowman[:1], snowman[1:2], snowman[2:] + b"\n"])
    assert answer.text == "A☃"
    assert answer.kept_tokens() == (1, snowman)


def test_withdrawn_text_is_no_part_of_the_answer_and_matches_no_stop() -> None:
    answer = AnswerText([" "], withdrawn=b" ")
    assert push_all(answer, [b" blue", b" sky"]) == "blue"
    assert answer.text == "blue"


def test_a_character_is_shown_only_when_whole() -> None:
    answer = AnswerText()
    snowman = "☃".encode()
    answer.push(snowman[:2])
    assert answer.show() == ""
    answer.push(snowman[2:] + b"!")
    assert answer.show() == "☃!"


def test_a_character_cut_by_the_end_is_left_out_with_all_its_tokens() -> None:
    answer = AnswerText()
    snowman = "☃".encode()
    assert push_all(answer, [b"a", b"b" + snowman[:1], snowman[1:2]]) == "ab"
    assert answer.text == "ab"
    assert answer.kept_tokens() == (1, b"b")


def test_the_longer_of_two_stops_that_end_together_is_never_shown() -> None:
    answer = AnswerText(["END", "\nEND"])
    shown = ""
    for piece in (b"Fine", b".", b"\n", b"E", b"N", b"D"):
        answer.push(piece)
        shown += answer.show()
    assert shown + answer.show(final=True) == answer.text == "Fine."


def test_a_stop_that_begins_in_the_first_tokens_is_text_like_any_other() -> None:
    answer = AnswerText(["ab", "bcdef"], min_tokens=3)
    shown = []
    for piece in (b"xab", b"ab", b"a", b"b", b"a"):
        assert answer.push(piece) is False
        shown.append(answer.show())
    assert shown == ["xab", "ab", "a", "", "b"]
    assert answer.push(b"b!") is True
    assert answer.show(final=True) == ""
    assert answer.text == "xabab" + "ab"
    assert answer.kept_tokens() == (4, b"")


def test_tokens_that_only_write_withdrawn_text_anew_are_none_of_the_answers() -> None:
    answer = AnswerText([], withdrawn=b" is", min_tokens=1)
    counts = []
    for piece in (b" ", b"is", b" Paris", b"."):
        answer.push(piece)
        counts.append((answer.anew, answer.tokens))
    assert counts == [(1, 0), (2, 0), (2, 1), (2, 2)]
    longer = AnswerText([], withdrawn=b" is")
    longer.push(b" isn't")
    assert (longer.anew, longer.tokens) == (0, 1)


@given(st.text("ab\né☃", max_size=30), st.lists(st.text("ab\n", min_size=1, max_size=3), max_size=3), st.data())
def test_shown_text_is_the_text_before_the_first_complete_stop_however_it_is_cut(
    text: str, stops: list[str], data: st.DataObject
) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    matches = [(at + len(stop.encode()), at) for stop in stops if (at := raw.find(stop.encode())) >= 0]
    end = min(matches)[1] if matches else len(raw)
    answer = AnswerText(stops)
    shown = push_all(answer, pieces)
    assert shown == answer.text == raw[:end].decode()


@given(st.text("ab\né☃", max_size=12), st.lists(st.text("abé", min_size=1, max_size=4), max_size=3), st.data())
@example("ab", ["ba", "abb"], None)
def test_all_is_shown_at_once_but_what_may_begin_a_stop(
    text: str, stops: list[str], data: st.DataObject | None
) -> None:
    raw = text.encode()
    ends = range(1, len(raw) + 1) if data is None else sorted(data.draw(st.sets(st.integers(1, max(1, len(raw))))))
    answer, shown, pushed = AnswerText(stops), "", 0
    for end in ends:
        if answer.push(raw[pushed:end]):
            break
        pushed = end
        shown += answer.show()
        may_begin = [at for at in range(end) if any(stop.encode().startswith(raw[at:end]) for stop in stops)]
        assert shown == raw[: min(may_begin, default=end)].decode(errors="ignore")


@pytest.mark.parametrize("pieces", [[b"x", b"y\n", b"z"], [b"x", b"y", b"\n"]])
def test_kept_tokens_and_the_rest_spell_the_text(pieces: list[bytes]) -> None:
    answer = AnswerText(["\n"])
    push_all(answer, pieces)
    whole, rest = answer.kept_tokens()
    assert b"".join(pieces[:whole]) + rest == b"xy"
