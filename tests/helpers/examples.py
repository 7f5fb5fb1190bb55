"""How many examples a property is tried on."""

from hypothesis import settings


def examples(count: int) -> int:
    """That many in the whole run, a tenth in the fast one, and never fewer than two."""
    return max(2, count * settings.default.max_examples // 100)
