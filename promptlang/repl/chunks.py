"""Typed text as the statements and declarations it consists of."""

import re
from collections.abc import Iterator

_PART = re.compile(
    r'"""[\s\S]*?"""'
    r"|'''[\s\S]*?'''"
    r"|(?P<never_closed>\"\"\"|''')[\s\S]*"
    r'|"(?!"")(?:\\.|[^"\\\n])*"'
    r"|'(?!'')(?:\\.|[^'\\\n])*'"
    r"|#[^\n]*"
    r"|(?P<opens>[(\[{])"
    r"|(?P<closes>[)\]}])"
    r"|(?P<breaks>\n)"
)
_GOES_ON = re.compile(r"[ \t\r\n]|(elif|else)\b")


def _breaks(text: str) -> Iterator[int | None]:
    """Where the lines begin that stand in no bracket and in no string, and None where the text ends in one."""
    depth = 0
    for found in _PART.finditer(text):
        if found.lastgroup == "breaks":
            if not depth:
                yield found.end()
        elif found.lastgroup == "opens":
            depth += 1
        elif found.lastgroup == "closes":
            depth = max(0, depth - 1)
        elif found.lastgroup == "never_closed":
            yield None
    if depth:
        yield None


def is_complete(text: str) -> bool:
    """Whether typed text can run: nothing is open, and a block ended with an empty line."""
    begins = [0, *_breaks(text)]
    if None in begins:
        return False
    lines = [_PART.sub(_mark, text[begin:end]) for begin, end in zip(begins, [*begins[1:], len(text)], strict=True)]
    has_block = any(line.rstrip().endswith(":") or line.startswith((" ", "\t")) for line in lines)
    return not has_block or not lines[-1].strip()


def _mark(found: re.Match[str]) -> str:
    """A string or a comment as something that ends no line with a colon; all else as it is."""
    return found[0] if found.lastgroup else "_"


def chunks(text: str) -> Iterator[tuple[int, str]]:
    """The statements and declarations of a text, each with the number of its first line."""
    begin, line = 0, 1
    for end in (*_breaks(text), len(text)):
        if end is None or (end < len(text) and _GOES_ON.match(text, end)):
            continue
        chunk = text[begin:end]
        if chunk.strip():
            yield line, chunk.rstrip("\n") + "\n"
        begin, line = end, line + chunk.count("\n")
