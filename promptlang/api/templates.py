"""Texts with holes: `p.user("Ticket: ${ticket}", ticket=ticket)`."""

import re
from collections.abc import Mapping
from typing import Any

from promptlang.api.data import to_data
from promptlang.api.errors import UsageError
from promptlang.values.values import render_text

_HALF = re.compile("[\ud800-\udfff]")
_HOLE = re.compile(r"\\\$|\$\{\s*(\w+)\s*\}")


def filled(text: str, values: Mapping[str, Any]) -> str:
    """A text with values in its holes; what a value holds is data, and never looked at again.

    Args:
        text: `${name}` is a hole, `\\$` a dollar. Without values it is taken as it is.
        values: by name, one for each hole.

    Raises:
        UsageError: a hole has no value, or a value no hole; or this is no text.
    """
    if not isinstance(text, str):
        raise UsageError(f'a text is a str, not {type(text).__name__}; write it into one: `f"{{value}}"`')
    if _HALF.search(text):
        raise UsageError("the text holds half a character (a lone surrogate)")
    if not values:
        return text
    used: set[str] = set()

    def fill(hole: re.Match[str]) -> str:
        name = hole[1]
        if name is None:
            return "$"
        if name not in values:
            raise UsageError(f"the text has a hole `${{{name}}}`, and there is no value for it; say `{name}=...`")
        used.add(name)
        return render_text(to_data(values[name]))

    result = _HOLE.sub(fill, text)
    unused = [name for name in values if name not in used]
    if unused:
        raise UsageError(f"the text has no hole `${{{unused[0]}}}` for the value {unused[0]!r}")
    return result
