"""The plain way to tell which texts begin a text of an expression: derivatives (Brzozowski 1964)."""

from promptlang.grammar.regular.regex import (
    EMPTY,
    Alternation,
    Characters,
    Concatenation,
    Regex,
    Repetition,
    either,
    repeated,
    then,
)

VOID = Alternation(())


def after(regex: Regex, text: str) -> Regex:
    """What may follow a text."""
    for character in text:
        regex = _derivative(regex, ord(character))
    return regex


def can_be_empty(regex: Regex) -> bool:
    match regex:
        case Characters():
            return False
        case Concatenation(parts=parts):
            return all(map(can_be_empty, parts))
        case Alternation(options=options):
            return any(map(can_be_empty, options))
        case Repetition(item=item, low=low, high=high):
            return low == 0 or high == 0 or can_be_empty(item)


def is_void(regex: Regex) -> bool:
    """Whether there is no text at all."""
    match regex:
        case Characters(ranges=ranges):
            return not ranges
        case Concatenation(parts=parts):
            return any(map(is_void, parts))
        case Alternation(options=options):
            return all(map(is_void, options))
        case Repetition(item=item, low=low):
            return low > 0 and is_void(item)


def _derivative(regex: Regex, character: int) -> Regex:
    match regex:
        case Characters():
            return EMPTY if character in regex else VOID
        case Concatenation(parts=()):
            return VOID
        case Concatenation(parts=(first, *rest)):
            options = [_then(_derivative(first, character), *rest)]
            if can_be_empty(first):
                options.append(_derivative(then(*rest) if rest else EMPTY, character))
            return _either(options)
        case Alternation(options=parts):
            return _either([_derivative(part, character) for part in parts])
        case Repetition(item=item, low=low, high=high):
            if high == 0:
                return VOID
            rest = repeated(item, max(0, low - 1), None if high is None else high - 1)
            return _then(_derivative(item, character), rest)
    raise TypeError(regex)


def _then(first: Regex, *rest: Regex) -> Regex:
    return VOID if is_void(first) else then(*rest) if first == EMPTY and rest else then(first, *rest)


def _either(options: list[Regex]) -> Regex:
    return either(*dict.fromkeys(option for option in options if not is_void(option)))
