"""More that a user may tell the chat template, such as `enable_thinking`: which names are free, which are read."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from promptlang.diagnostics.rendering import did_you_mean

OWN_NAMES = frozenset(
    {"messages", "add_generation_prompt", "tools", "documents"}
    | {"raise_exception", "strftime_now", "range", "dict", "lipsum", "cycler", "joiner", "namespace"}
)
"""What a template finds without being told: the conversation, and Jinja's functions."""


def is_own(name: str) -> bool:
    """Whether a template has this name from whoever renders it (`messages`, `bos_token`): no option may have it."""
    return name in OWN_NAMES or name.endswith("_token")


def unread(options: Mapping[str, Any], names: Collection[str], model: str) -> Iterator[str]:
    """A sentence on each option that changes nothing.

    Args:
        options: by name.
        names: all that the template takes from outside.
        model: whose template it is.
    """
    free = [name for name in names if not is_own(name)]
    for option in options:
        if option not in names:
            near = did_you_mean(option, free)
            yield f"the chat template of {model} never reads the option `{option}`{f'; {near}' if near else ''}"
