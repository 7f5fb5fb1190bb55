"""Every diagnostic there is: one function a kind, so that each is worded in one place. `promptlang explain
CODE` shows their pages."""

from collections.abc import Iterable

from promptlang.diagnostics.rendering import Diagnostic, Severity, did_you_mean
from promptlang.diagnostics.source import Span

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


def string_not_closed(span: Span, quotes: str, breaks_in_hole: bool) -> Diagnostic:
    fix = (
        "close every `${` with `}` on its line, or write `\\${` for the text `${`"
        if breaks_in_hole
        else f"end it with {quotes}"
    )
    return Diagnostic("PL005", "this string is not closed", span, fix=fix)


def never_closed(span: Span) -> Diagnostic:
    return Diagnostic("PL006", f"`{span.text}` is never closed", span)


def nothing_to_close(span: Span, bracket: str) -> Diagnostic:
    return Diagnostic("PL006", f"`{bracket}` closes nothing", span)


def missing_block(span: Span) -> Diagnostic:
    return Diagnostic(
        "PL007", "an indented block must follow", span, fix="indent the lines that belong to it, or write `pass`"
    )


def unknown_character(span: Span) -> Diagnostic:
    words = {
        "&": "and",
        "!": "not",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        ";": "a new line",
    }
    word = words.get(span.text)
    shown = span.text if span.text.isprintable() else f"U+{ord(span.text):04X}"
    return Diagnostic(
        "PL008", f"`{shown}` means nothing here", span, fix=None if word is None else f"write {_quoted(word)}"
    )


def _quoted(word: str) -> str:
    return word if " " in word else f"`{word}`"


def does_nothing(span: Span, is_comparison: bool) -> Diagnostic:
    fix = (
        "`=` gives a value a name, `==` compares"
        if is_comparison
        else 'give the value a name, `log` it, or write `"${...}"` to put it into the prompt'
    )
    return Diagnostic("PL009", "this line computes a value and does nothing with it", span, fix=fix)


def too_deep(span: Span, most: int) -> Diagnostic:
    return Diagnostic(
        "PL010", f"this nests deeper than {most} levels", span, fix="give inner parts names, or use a fragment"
    )


def too_deep_in_place(span: Span, name: str, most: int) -> Diagnostic:
    return Diagnostic(
        "PL010",
        f"`{name}` nests deeper than {most} levels, with fragments in place and `require`s around what they repeat",
        span,
        fix="use fewer fragments inside others, or join the `require`s of one answer by `and`",
    )


def bad_escape(span: Span, stands_for_itself: bool) -> Diagnostic:
    if not stands_for_itself:
        return Diagnostic("PL011", f"`{span.text}` is no character", span)
    message = f"`{span.text}` is no escape, so the backslash stays"
    return Diagnostic(
        "PL011", message, span, Severity.WARNING, fix=f"write `\\{span.text}`, or put `r` before the string"
    )


def bad_type(span: Span, forms: str) -> Diagnostic:
    return Diagnostic("PL012", f"`{span.text}` is no type", span, fix=forms)


def outside_declaration(span: Span, found: str) -> Diagnostic:
    fix = "put it inside a `program` or a `fragment`"
    return Diagnostic("PL013", f"{found} can't stand outside a declaration", span, fix=fix)


def number_too_large(span: Span) -> Diagnostic:
    return Diagnostic("PL014", "this number is too large", span)


def assignment_in_condition(span: Span) -> Diagnostic:
    return Diagnostic("PL001", "`=` can't stand in a condition", span, fix="write `==` to compare")


def else_if(span: Span) -> Diagnostic:
    return Diagnostic("PL002", "`else if` is written as one word", span, fix="write `elif`")


def string_prefix(span: Span, prefix: str) -> Diagnostic:
    return Diagnostic(
        "PL001", f"a string takes no `{prefix}`", span, fix=f"drop the `{prefix}`: every string fills in `${{...}}`"
    )


def adjacent_strings(span: Span) -> Diagnostic:
    return Diagnostic(
        "PL001",
        "two strings stand side by side",
        span,
        fix='put `+` or a comma between them, or use one """string""" over several lines',
    )


def empty_hole(span: Span) -> Diagnostic:
    return Diagnostic("PL015", "`${}` holds no expression", span, fix="write `\\${}` for the text `${}`")


def hole_not_allowed(span: Span, what: str) -> Diagnostic:
    return Diagnostic("PL015", f"{what} is fixed text, so nothing can be filled in", span)


def positional_after_named(span: Span) -> Diagnostic:
    return Diagnostic("PL016", "an argument without a name stands after one with a name", span)


def beam_options(span: Span) -> Diagnostic:
    return Diagnostic("PL017", "a beam needs `depth=`, `width=` and `branch=`, once each", span)


def bad_import(span: Span, why: str) -> Diagnostic:
    return Diagnostic("PL018", why, span)


# Names -----------------------------------------------------------------------------------------------


def unknown_name(span: Span, name: str, known: Iterable[str]) -> Diagnostic:
    return Diagnostic("PL101", f"unknown name `{name}`", span, fix=did_you_mean(name, known))


def not_assigned(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "PL102", f"`{name}` may have no value here", span, fix="give it a value on every way that leads here"
    )


def unused(span: Span, name: str, what: str) -> Diagnostic:
    fixes = {"answer": f"drop `{name} =`", "parameter": "use it, or drop it"}
    return Diagnostic("PL103", f"`{name}` is never used", span, Severity.WARNING, fix=fixes.get(what))


def declared_twice(span: Span, name: str, first: Span) -> Diagnostic:
    return Diagnostic("PL104", f"`{name}` is declared twice", span, notes=(("the first one", first),))


def named_twice(span: Span, what: str, name: str) -> Diagnostic:
    return Diagnostic("PL105", f"two {what} are called `{name}`", span)


def unknown_type(span: Span, name: str, known: Iterable[str]) -> Diagnostic:
    return Diagnostic("PL106", f"unknown type `{name}`", span, fix=did_you_mean(name, known))


def unknown_field(span: Span, owner: str, name: str, known: Iterable[str]) -> Diagnostic:
    fixes = {
        "logprobs": "ask for it: `gen(..., logprobs=true)`",
        "finish": "read it where the answer is given: an argument is its value alone",
    }
    fix = fixes.get(name) or did_you_mean(name, known)
    return Diagnostic("PL107", f"{owner} has no `{name}`", span, fix=fix)


def some_lack_field(span: Span, name: str, having: list[str], lacking: list[str], question: str | None) -> Diagnostic:
    fix = (
        f"ask first which it is: `if {question}:`"
        if question
        else 'give each record a tag, as `kind: "a"`, and ask for it first'
    )
    message = f"only {' and '.join(having)} ha{'s' if len(having) == 1 else 've'} `{name}`, not {' or '.join(lacking)}"
    return Diagnostic("PL107", message, span, fix=fix)


def not_a_value(span: Span, name: str, what: str) -> Diagnostic:
    return Diagnostic("PL108", f"`{name}` is a {what}, not a value", span)


def not_callable(span: Span, name: str, what: str) -> Diagnostic:
    return Diagnostic("PL109", f"`{name}` can't be called: it is {what}", span)


def not_a_fragment(span: Span, name: str, what: str, fix: str | None) -> Diagnostic:
    return Diagnostic("PL110", f"`use` runs fragments, and `{name}` is {what}", span, fix=fix)


# Types -----------------------------------------------------------------------------------------------


def wrong_type(span: Span, what: str, wanted: str, found: str) -> Diagnostic:
    return Diagnostic("PL201", f"{what} must be {wanted}, not {found}", span)


def wrong_operands(span: Span, operator: str, left: str, right: str, fills_text: bool = False) -> Diagnostic:
    fix = "fill a value into text with `${...}`" if fills_text else None
    return Diagnostic("PL202", f"`{operator}` can't take {left} and {right}", span, fix=fix)


def missing_argument(span: Span, what: str, name: str) -> Diagnostic:
    return Diagnostic("PL203", f"{what} needs `{name}`", span)


def unknown_argument(span: Span, what: str, name: str, known: Iterable[str]) -> Diagnostic:
    return Diagnostic("PL204", f"{what} has no `{name}`", span, fix=did_you_mean(name, known))


def argument_twice(span: Span, what: str, name: str) -> Diagnostic:
    return Diagnostic("PL205", f"`{name}` of {what} is given twice", span)


def wrong_count(span: Span, message: str) -> Diagnostic:
    return Diagnostic("PL206", message, span)


def no_constant(span: Span, what: str, why: str) -> Diagnostic:
    return Diagnostic("PL207", f"{what} can't be worked out before the program runs: {why}", span)


def endless_alias(span: Span, name: str) -> Diagnostic:
    return Diagnostic("PL208", f"the type `{name}` is made of itself", span, fix="only a record can contain itself")


def no_items(span: Span, found: str) -> Diagnostic:
    return Diagnostic("PL209", f"{found} has no items to go through", span)


def never_equal(span: Span, left: str, right: str) -> Diagnostic:
    return Diagnostic("PL210", f"{left} and {right} are never equal", span, Severity.WARNING)


def may_not_return(span: Span, wanted: str) -> Diagnostic:
    return Diagnostic("PL211", f"this program may end without returning {wanted}", span)


# Control flow ----------------------------------------------------------------------------------------


def unreachable(span: Span, after: str) -> Diagnostic:
    return Diagnostic("PL301", f"this can never run: {after}", span)


def outside_loop(span: Span, word: str) -> Diagnostic:
    return Diagnostic("PL302", f"`{word}` stands outside a loop", span)


def outside_fork(span: Span, word: str) -> Diagnostic:
    return Diagnostic("PL303", f"`{word}` stands outside a fork", span)


def leaves_branch(span: Span, word: str) -> Diagnostic:
    fix = "return after the fork, from a branch's variables" if word == "return" else None
    return Diagnostic("PL304", f"`{word}` can't leave a branch of a fork", span, fix=fix)


def nested_turn(span: Span) -> Diagnostic:
    return Diagnostic("PL305", "a turn can't stand inside another turn", span)


def between_turns(span: Span) -> Diagnostic:
    return Diagnostic(
        "PL306",
        "this stands between turns, so it belongs to none",
        span,
        Severity.WARNING,
        fix="put it in a turn, such as `user:`",
    )


def call_inside_expression(span: Span, name: str) -> Diagnostic:
    fix = f"give it a line of its own: `result = {name}(...)`"
    return Diagnostic("PL307", f"`{name}(...)` can't stand inside an expression", span, fix=fix)


def endless_fragment(span: Span, circle: Iterable[str]) -> Diagnostic:
    return Diagnostic("PL308", f"this fragment uses itself: {' -> '.join(circle)}", span)


def not_a_branch(span: Span, found: str) -> Diagnostic:
    return Diagnostic(
        "PL309",
        f"`adopt` takes a branch of a fork, not {found}",
        span,
        fix="write `adopt name[0]`, or `adopt name.arm`",
    )


def return_in_fragment(span: Span) -> Diagnostic:
    return Diagnostic("PL311", "a fragment returns nothing", span, fix="make it a program")


def score_alone(span: Span) -> Diagnostic:
    return Diagnostic("PL312", "`score` alone does nothing", span, fix='give its result a name: `x = score("text")`')


def keep_in_beam(span: Span) -> Diagnostic:
    fix = "say what ranks the paths after `by` of the beam"
    return Diagnostic("PL313", "`keep` can't stand in a beam, which keeps its best paths itself", span, fix=fix)


def nothing_to_retry(span: Span) -> Diagnostic:
    return Diagnostic(
        "PL314",
        "nothing in this block gives this another value",
        span,
        fix="put `require` into the block that asks the model for it, or say `retry 0`",
    )


def keep_retried(span: Span, line: int) -> Diagnostic:
    message = f"the `require` of line {line} would run this `keep` again, when its siblings are gone"
    return Diagnostic("PL315", message, span, fix="keep after the `require`")


def nothing_sampled(span: Span, so: str) -> Diagnostic:
    fix = "give a `gen` or `select` in it a temperature above 0, and no `seed`"
    return Diagnostic("PL316", f"nothing here is drawn at random: {so}", span, Severity.WARNING, fix=fix)


def too_many_statements(span: Span, name: str, most: int) -> Diagnostic:
    message = f"`{name}` has more than {most} statements, with its fragments in place"
    return Diagnostic("PL317", message, span, fix="use fewer fragments inside others, or call a program for a part")


def endless_loop(span: Span) -> Diagnostic:
    fix = "leave it by `break` or `return`, or say `limit N`"
    return Diagnostic("PL318", "nothing ends this loop", span, Severity.WARNING, fix=fix)


# Constraints -----------------------------------------------------------------------------------------


def no_options(span: Span) -> Diagnostic:
    return Diagnostic("PL401", "`select` has nothing to choose from", span)


def list_as_option(span: Span) -> Diagnostic:
    return Diagnostic(
        "PL401",
        "an option of `select` is a text, not a list",
        span,
        fix="write `select(options=...)` for a list of them",
    )


def options_twice(span: Span) -> Diagnostic:
    return Diagnostic("PL401", "`select` takes its options one by one, or as `options=`, not both", span)


def empty_option(span: Span) -> Diagnostic:
    return Diagnostic("PL402", "an option of `select` is empty", span)


def option_twice(span: Span, option: str) -> Diagnostic:
    return Diagnostic("PL403", f"`select` has the option {option} twice", span)


def unknown_option(span: Span, what: str, name: str, known: Iterable[str]) -> Diagnostic:
    return Diagnostic("PL404", f"`{what}` has no option `{name}`", span, fix=did_you_mean(name, known))


def bad_option(span: Span, name: str, wanted: str, found: str) -> Diagnostic:
    return Diagnostic("PL405", f"`{name}` must be {wanted}, not {found}", span)


def bad_pattern(span: Span, why: str) -> Diagnostic:
    return Diagnostic("PL406", why, span)


def endless_record(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "PL407",
        f"no text can hold a whole {name}: it always contains another",
        span,
        fix="make the inner one `| none`, or a list",
    )


def bad_file(span: Span, why: str) -> Diagnostic:
    return Diagnostic("PL408", why, span)


def trailing_space(span: Span) -> Diagnostic:
    fix = "drop the space: it belongs to the first token of the answer"
    return Diagnostic("PL409", "this text ends in a space right before an answer", span, Severity.WARNING, fix=fix)


def too_many_parts(span: Span, name: str, most: int) -> Diagnostic:
    return Diagnostic(
        "PL410", f"`{name}` has more than {most} parts, written out", span, fix="use a type less often inside others"
    )


def type_too_deep(span: Span, name: str, most: int) -> Diagnostic:
    fix = "put fewer types inside each other"
    return Diagnostic("PL410", f"`{name}` nests deeper than {most} levels, written out", span, fix=fix)


def no_logprobs(span: Span, found: str) -> Diagnostic:
    message = f"`logprobs` goes with text and numbers, not with {found}"
    return Diagnostic("PL412", message, span, fix="leave it out, or ask for the parts one by one")


def no_pretty(span: Span, found: str) -> Diagnostic:
    message = f"`pretty` goes with lists, dicts, records and JSON, not with {found}"
    return Diagnostic("PL413", message, span, fix="leave it out")


def bad_constraint(span: Span, why: str) -> Diagnostic:
    return Diagnostic("PL411", why, span)


# Cache -----------------------------------------------------------------------------------------------


def text_behind_call(span: Span, tokens: int, behind: Span) -> Diagnostic:
    shown = behind.first_line.text.rstrip()
    return Diagnostic(
        "PL501",
        f"about {tokens} tokens of fixed text stand behind `{shown}`: every call computes them again",
        span,
        Severity.WARNING,
        fix=f"put the fixed text before `{shown}`",
        notes=(("this differs from call to call", behind),),
    )


def text_behind_branch(span: Span, tokens: int, behind: Span) -> Diagnostic:
    shown = behind.first_line.text.rstrip()
    return Diagnostic(
        "PL502",
        f"about {tokens} tokens that all branches share stand behind `{shown}`: every branch computes them again",
        span,
        Severity.WARNING,
        fix=f"put what all share before `{shown}`, or before the fork",
        notes=(("this differs from branch to branch", behind),),
    )


def repeated_text(span: Span, tokens: int, loop: Span) -> Diagnostic:
    return Diagnostic(
        "PL503",
        f"every round of a loop writes the same text again: about {tokens} tokens",
        span,
        Severity.WARNING,
        fix="put what is the same in every round before the loop, once",
        notes=(("this loop", loop),),
    )


# Beside the program ----------------------------------------------------------------------------------


def stale_stub(span: Span, stub: str) -> Diagnostic:
    return Diagnostic(
        "PL601",
        f"type checkers are told what this file said before: `{stub}` is stale",
        span,
        Severity.WARNING,
        fix="write it anew: `promptlang stubs FILE`",
    )
