"""What goes wrong with constraints; apart from `constraint`, so that a program is checked without loading numpy."""

import re


class ConstraintError(Exception):
    """A specification that can't be compiled: `str()` says what and why, in one sentence for the program's author.

    Attributes:
        line: of a grammar's text, from 1; None where none is known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class TooLargeError(ConstraintError):
    """A specification that would make too much work as a whole: no part of it is to blame."""


NOTHING_LEGAL = "no text is legal: a rule or a part leads only back to itself, so give it a way to end"

PLACE = re.compile(r"^(?:at )?(?P<line>\d+)\(\d+\): ")
"""Where llguidance places an error, in the text that it was given."""

DETAIL = re.compile(r"^error: (?P<what>.*)", re.MULTILINE)
"""What is wrong with a regular expression, behind the lines that show it."""

WITHIN = {"failed to compile JSON schema: ": "", "Unsatisfiable schema: ": "no value satisfies it: "}
"""What says only where an error comes from, and what is said instead."""

LOOKS_AROUND = "lookaround in an expression ((?=...), (?<=...), \\b) can't be enforced: say what stands there"

EXPLANATIONS: tuple[tuple[str, str], ...] = (
    # Anything.
    (r"NoExtensionBias", NOTHING_LEGAL),
    (
        r"panic|too big|too large|too deeply|stack level|too many (?:states|items|rules)|fuel",
        "it is too large to be compiled: split it, or leave out what isn't needed",
    ),
    # Regular expressions.
    (r"look-around|lookarounds", LOOKS_AROUND),
    (
        r"backreferences",
        "an expression that refers back to a group (\\1) can't be enforced: write out what may stand there",
    ),
    # JSON Schema.
    (
        r"oneOf constraints are not supported",
        'options of "oneOf" that may overlap can\'t be enforced: write "anyOf", or make them exclude one another',
    ),
    (r"'multipleOf' has too many digits", 'this "multipleOf" can\'t be enforced: give it fewer digits'),
    (r"invalid multiple of", '"multipleOf" is a number above 0'),
    (r"Unimplemented keys: \[(?P<what>.*)\]", "the keyword {what} can't be enforced: leave it out"),
    (
        r"patternProperty regexes (?P<one>/.*/) and (?P<other>/.*/) are",
        '"patternProperties" can\'t be enforced where a name may match both {one} and {other}',
    ),
    (
        r"(?:No|All) options in anyOf",
        'no value satisfies it: none of the options of "anyOf" can be had',
    ),
    (r"(?:minProperties|required) > maxProperties", "no value satisfies it: more properties must be there than may be"),
    (r"required (?:item|property)", "no value satisfies it: what must be there can have no value"),
    (r"schema is false|Regex is empty", "no value satisfies it: its keywords contradict one another"),
    (r"Invalid type: (?P<what>.*)", '"{what}" is no type of JSON'),
    (
        r"Resource '(?:json-schema:///)?(?P<what>.*?)' is not present",
        'the reference to "{what}" leads out of the file: copy what is there into "$defs"',
    ),
    (r"(?:Pointer|Anchor) '(?P<what>.*?)' does not exist", 'a reference leads to "{what}", where nothing is'),
    # Grammars.
    (r'unknown name: "(?P<what>.*)"', "nothing is called `{what}` here: write a rule or a token of that name"),
    (
        r'duplicate (?:rule|token).*?: "(?P<what>.*)"',
        "`{what}` is there twice: write its options in one rule, with | between them",
    ),
    (
        r'circular reference in token "(?P<what>.*)"',
        "the token `{what}` refers to itself: write a rule, in small letters",
    ),
    (r"no start rule found", "there is no rule `start`, where a text begins"),
    (r"params not supported", "a template (`name{x}: ...`) is not supported: write a rule for each use"),
    (r"priority not supported", "a priority (`NAME.2`) is not supported: of two tokens, the longer one goes on"),
    (r"declare statement not supported", "`%declare` is not supported: write what the token looks like"),
    (
        r"Unknown common regex: (?P<what>\S+);",
        "`{what}` can't be imported: only Lark's common tokens can, such as `common.INT`",
    ),
    (r"Expected token '?(?P<wanted>.*?)'?, found .* \(at (?P<found>\".*?\")", "`{wanted}` must stand before {found}"),
    (r"[Ee]xpect(?:ed|ing) (?:rule|name|value|at least)", "a rule, a token or a value must stand here"),
    (r"only supported for tokens", "`&` and `~` stand in tokens only: write the rule's name in capitals"),
    (r"in terminals", "what is no expression can't stand in a token: write a rule, in small letters"),
    (r"override statement not supported", "`%override` is not supported: write the rule once"),
    (r"lexer error", "something begins here that does not end on its line, or has no meaning"),
)
"""llguidance's messages, by what they hold, in the words of an author."""


def explained(message: str) -> ConstraintError:
    """An error of llguidance's in our words, and its line; what it shows of text is left out."""
    place, detail = PLACE.match(message.strip()), DETAIL.search(message)
    line = int(place["line"]) if place else None
    first = PLACE.sub("", message.strip()).partition("\n")[0]
    for pattern, words in EXPLANATIONS:
        found = re.search(pattern, detail["what"] if detail else first)
        if found:
            return ConstraintError(words.format(**found.groupdict()) if found.groupdict() else words, line)
    if detail:
        return ConstraintError(f"a regular expression is wrong: {detail['what']}", line)
    for head, words in WITHIN.items():
        first = first.replace(head, words)
    return ConstraintError(first, line)
