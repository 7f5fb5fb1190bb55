"""A model's dimensions, as far as the engine cares for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from promptlang.runtime.cache.kv_pool import KvShape


@dataclass(frozen=True)
class ModelShape(KvShape):
    """What the engine needs to know of a model's dimensions.

    Attributes:
        heads: query heads a layer; a multiple of `kv_heads`.
        vocab_size: rows of the output head.
        max_positions: positions the model was made for.
        windows: of each layer, how many positions a token sees (itself and those just before it); None where it sees
            all. Empty where no layer has a window.
    """

    heads: int
    vocab_size: int
    max_positions: int
    windows: tuple[int | None, ...] = ()

    def window(self, layer: int) -> int | None:
        """The window of one layer."""
        return self.windows[layer] if self.windows else None


def read_windows(config: Mapping[str, Any], max_positions: int) -> tuple[int | None, ...]:
    """The windows of a model's layers, as `ModelShape` has them.

    Args:
        config: as transformers writes it.
        max_positions: a window that reaches this far hides nothing.
    """
    width = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    if width is None or width >= max_positions:
        return ()
    kinds = config.get("layer_types") or ["sliding_attention"] * config["num_hidden_layers"]
    windows = tuple(width if kind == "sliding_attention" else None for kind in kinds)
    return windows if any(windows) else ()
