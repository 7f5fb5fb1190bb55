"""Typed text as the statements and declarations it consists of."""

import re
from collections.abc import Iterator

_CLOSED = re.compile(
    r'"""[\s\S]*?"""'
    r"|'''[\s\S]*?'''"
    r"|(?P<open>\"\"\"|''')[\s\S]*"
    r'|"(?!"")(?:\\.|[^"\\\n])*"'
    r"|'(?!'')(?:\\.|[^'\\\n])*'"
    r"|#[^\n]*"
)
_GOES_ON = re.compile(r"[ \t]|(elif|else)\b")


def is_open(text: str) -> bool:
    """Whether a bracket or a string of several lines is not closed."""
    rest = _CLOSED.sub(lambda found: found["open"] or "", text)
    if '"""' in rest or "'''" in rest:
        return True
    return sum(map(rest.count, "([{")) > sum(map(rest.count, ")]}"))


def is_complete(text: str) -> bool:
    """Whether typed text can run: nothing is open, and a block ended with an empty line."""
    if is_open(text):
        return False
    lines = _CLOSED.sub('""', text).split("\n")
    has_block = any(line.rstrip().endswith(":") or line.startswith((" ", "\t")) for line in lines)
    return not has_block or not lines[-1].strip()


def chunks(text: str) -> Iterator[tuple[int, str]]:
    """The statements and declarations of a text, each with the number of its first line."""
    chunk: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        begins = bool(line.strip()) and _GOES_ON.match(line) is None
        if begins and chunk and not is_open("\n".join(chunk)):
            if "".join(chunk).strip():
                yield first, "\n".join(chunk) + "\n"
            chunk = []
        if not chunk:
            first = number
        chunk.append(line)
    if "".join(chunk).strip():
        yield first, "\n".join(chunk) + "\n"
