"""The space that some tokenizers put before a text, so that its first word looks like any other."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Lead:
    """What is put before text.

    Attributes:
        everywhere: whether before all text that a control token precedes, too; otherwise only where nothing does.
        doubles: whether before text that begins with a space, too.
    """

    everywhere: bool
    doubles: bool

    def before(self, text: str) -> str:
        """The space before a text that it applies to."""
        return " " if text and (self.doubles or text[0] not in " ▁") else ""


def take_lead(component: Any) -> Lead | None:
    """Take out, in place, whatever puts a space before a text.

    Args:
        component: a normalizer or a pre-tokenizer in `tokenizer.json`, or a list of them.

    Returns:
        What was taken out; None where nothing was.
    """
    if isinstance(component, list):
        found = [lead for part in component if (lead := take_lead(part)) is not None]
        return found[0] if found else None
    if not isinstance(component, dict):
        return None
    kind = component.get("type")
    if kind == "Sequence":
        return take_lead(component.get("normalizers") or component.get("pretokenizers"))
    if kind == "Prepend":
        component.clear()
        component.update(type="Sequence", normalizers=[])
        return Lead(everywhere=True, doubles=True)
    if kind == "Metaspace" and component["prepend_scheme"] != "never":
        everywhere = component["prepend_scheme"] == "always"
        component["prepend_scheme"] = "never"
        return Lead(everywhere, doubles=False)
    if kind == "ByteLevel" and component["add_prefix_space"]:
        component["add_prefix_space"] = False
        return Lead(everywhere=True, doubles=False)
    return None
