"""The memory behind all keys and values: one tensor a layer, addressed by slot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class ModelShape:
    """What the engine needs to know of a model's dimensions.

    Attributes:
        layers: attention layers.
        heads: query heads a layer.
        kv_heads: key/value heads a layer; a divisor of `heads`.
        head_size: width of a head.
        vocab_size: rows of the output head.
        max_positions: positions the model was made for.
        windows: of each layer, how many positions a token sees (itself and those just before it); None where it sees
            all. Empty where no layer has a window.
    """

    layers: int
    heads: int
    kv_heads: int
    head_size: int
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


class KvPool:
    """Keys and values of all cached tokens; slot `s` of every layer belongs to one token.

    The pool knows nothing of who owns a slot. Its memory is reserved at once but committed by the operating
    system only as slots are first written.

    Args:
        shape: the model's dimensions.
        size: number of slots.
        dtype: of keys and values.
        device: where they live.

    Attributes:
        keys, values: per layer, [KV heads, slots, head size].
    """

    def __init__(
        self,
        shape: ModelShape,
        size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.shape = shape
        self.size = size
        layer = (shape.kv_heads, size, shape.head_size)
        self.keys = [torch.empty(layer, dtype=dtype, device=device) for _ in range(shape.layers)]
        self.values = [torch.empty(layer, dtype=dtype, device=device) for _ in range(shape.layers)]

    @staticmethod
    def bytes_per_token(shape: ModelShape, dtype: torch.dtype = torch.float32) -> int:
        """Memory of one slot over all layers, in bytes."""
        return 2 * shape.layers * shape.kv_heads * shape.head_size * dtype.itemsize

    def write(self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Store the keys and values of new tokens.

        Args:
            layer: which layer.
            slots: int64 [T].
            keys, values: [KV heads, T, head size].
        """
        self.keys[layer].index_copy_(1, slots, keys)
        self.values[layer].index_copy_(1, slots, values)
