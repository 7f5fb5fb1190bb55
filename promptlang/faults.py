"""Every diagnostic there is: one function a kind, so that each is worded in one place. `promptlang explain CODE` shows their pages."""

from collections.abc import Iterable

from promptlang.diagnostics import Diagnostic, Severity, did_you_mean
from promptlang.source import Span

# Syntax ----------------------------------------------------------------------------------------------


def unexpected(span: Span, found: str, wanted: str | None) -> Diagnostic:
    expected = "" if wanted is None else f"; expected {wanted}"
    return Diagnostic("PL001", f"{found} can't stand here{expected}", span)


def ends_early(span: Span, what: str, wanted: str | None) -> Diagnostic:
    expected = "" if wanted is None else f"; expected {wanted}"
    return Diagnostic("PL001", f"{what} ends too early{expected}", span)


def unknown_word(span: Span, word: str, known: Iterable[str]) -> Diagnostic:
    return Diagnostic("PL002", f"`{word}` is not a keyword", span, fix=did_you_mean(word, known))


def unexpected_indentation(span: Span) -> Diagnostic:
    return Diagnostic("PL003", "this line is indented, but nothing above it opens a block", span)


def misaligned(span: Span) -> Diagnostic:
    text = span.source.text
    if "\t" in span.text or "\t" in text[: span.start].rpartition("\n\t")[1]:
        return Diagnostic("PL004", "tabs and spaces are mixed in one block", span, fix="indent all its lines alike")
    return Diagnostic("PL003", "this line's indentation fits no block above it", span)


def string_not_closed(span: Span, quotes: str, has_hole: bool) -> Diagnostic:
    fix = "close every `${` with `}` on its line, or write `\\${` for the text `${`" if has_hole else f"end it with {quotes}"
    return Diagnostic("PL005", "this string is not closed", span, fix=fix)


def never_closed(span: Span) -> Diagnostic:
    return Diagnostic("PL006", f"`{span.text}` is never closed", span)


def nothing_to_close(span: Span, bracket: str) -> Diagnostic:
    return Diagnostic("PL006", f"`{bracket}` closes nothing", span)


def missing_block(span: Span) -> Diagnostic:
    return Diagnostic("PL007", "an indented block must follow", span, fix="indent the lines that belong to it, or write `pass`")


def unknown_character(span: Span) -> Diagnostic:
    words = {"&": "and", "!": "not", "\N{LEFT DOUBLE QUOTATION MARK}": '"', "\N{RIGHT DOUBLE QUOTATION MARK}": '"', ";": "a new line"}
    word = words.get(span.text)
    shown = span.text if span.text.isprintable() else f"U+{ord(span.text):04X}"
    return Diagnostic("PL008", f"`{shown}` means nothing here", span, fix=None if word is None else f"write {_quoted(word)}")


def _quoted(word: str) -> str:
    return word if " " in word else f"`{word}`"


def does_nothing(span: Span, is_comparison: bool) -> Diagnostic:
    fix = "`=` gives a value a name, `==` compares" if is_comparison else "give the value a name, `log` it, or put it in a string"
    return Diagnostic("PL009", "this line computes a value and does nothing with it", span, fix=fix)


def too_deep(span: Span, most: int) -> Diagnostic:
    return Diagnostic("PL010", f"this nests deeper than {most} levels", span, fix="give inner parts names, or use a fragment")


def bad_escape(span: Span, stands_for_itself: bool) -> Diagnostic:
    if not stands_for_itself:
        return Diagnostic("PL011", f"`{span.text}` is no character", span)
    message = f"`{span.text}` is no escape, so the backslash stays"
    return Diagnostic("PL011", message, span, Severity.WARNING, fix=f"write `\\{span.text}`, or put `r` before the string")


def bad_type(span: Span, forms: str) -> Diagnostic:
    return Diagnostic("PL012", f"`{span.text}` is no type", span, fix=forms)


def outside_declaration(span: Span, found: str) -> Diagnostic:
    fix = "a file holds `program`, `fragment`, `record`, `type`, `const`, `tool` and `import`; statements stand inside a program"
    return Diagnostic("PL013", f"{found} can't stand outside a declaration", span, fix=fix)


def number_too_large(span: Span) -> Diagnostic:
    return Diagnostic("PL014", "this number is too large", span)


def assignment_in_condition(span: Span) -> Diagnostic:
    return Diagnostic("PL001", "`=` can't stand in a condition", span, fix="write `==` to compare")


def else_if(span: Span) -> Diagnostic:
    return Diagnostic("PL002", "`else if` is written as one word", span, fix="write `elif`")


def string_prefix(span: Span, prefix: str) -> Diagnostic:
    return Diagnostic("PL001", f"a string takes no `{prefix}`", span, fix=f"drop the `{prefix}`: every string fills in `${{...}}`")


def adjacent_strings(span: Span) -> Diagnostic:
    return Diagnostic("PL001", "two strings stand side by side", span, fix='join them with `+`, or use one """string""" over several lines')


def empty_hole(span: Span) -> Diagnostic:
    return Diagnostic("PL015", "`${}` holds no expression", span, fix="write `\\${}` for the text `${}`")


def hole_not_allowed(span: Span, what: str) -> Diagnostic:
    return Diagnostic("PL015", f"{what} is fixed text, so nothing can be filled in", span)


def positional_after_named(span: Span) -> Diagnostic:
    return Diagnostic("PL016", "an argument without a name stands after one with a name", span)


def beam_options(span: Span) -> Diagnostic:
    return Diagnostic("PL017", "a beam needs `depth=`, `width=` and `branch=`, once each", span)
