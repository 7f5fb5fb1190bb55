"""What goes wrong with constraints; apart from `constraint`, so that a program is checked without loading numpy."""

import re


class ConstraintError(Exception):
    """A specification that can't be compiled: `str()` says what and why, in one sentence for the program's author."""


NOTHING_LEGAL = "no text is legal: a rule or a part leads only back to itself, so give it a way to end"


def explained(message: str) -> ConstraintError:
    """An error of llguidance's, without its places in text that the author hasn't written, and in our words."""
    first = message.strip().partition("\n")[0]
    first = re.sub(r"^at \d+\(\d+\): |^\d+\(\d+\): ", "", first)
    first = first.replace("failed to compile JSON schema: ", "the JSON Schema can't be compiled: ")
    if first.startswith("NoExtensionBias"):
        return ConstraintError(NOTHING_LEGAL)
    if first.startswith("panic"):
        return ConstraintError("it is too large to be compiled: split it, or leave out what isn't needed")
    if "oneOf constraints are not supported" in first:
        return ConstraintError("oneOf of a JSON Schema can't be enforced where its options may overlap")
    if "Unsatisfiable schema: " in first:
        return ConstraintError(f"no value satisfies the JSON Schema: {first.partition('Unsatisfiable schema: ')[2]}")
    if "'multipleOf' has too many digits" in first:
        return ConstraintError(
            "this multipleOf of a JSON Schema can't be enforced: it is no exact decimal to llguidance"
        )
    unknown = re.search(r"Unimplemented keys: \[(.*)\]", first)
    if unknown:
        return ConstraintError(f"the keyword {unknown[1]} of a JSON Schema can't be enforced")
    return ConstraintError(first)
