"""The memory behind all keys and values: one tensor a layer, addressed by slot."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class KvShape:
    """What one token's keys and values take.

    Attributes:
        layers: attention layers.
        kv_heads: key/value heads a layer.
        head_size: width of a head.
    """

    layers: int
    kv_heads: int
    head_size: int


class KvPool:
    """Keys and values of all cached tokens; slot `s` of every layer belongs to one token.

    The pool knows nothing of who owns a slot. Its memory is reserved at once but committed by the operating
    system only as slots are first written.

    Args:
        shape: of a token's keys and values.
        size: number of slots.
        dtype: of keys and values.
        device: where they live.

    Attributes:
        keys, values: per layer, [KV heads, slots, head size].
    """

    def __init__(
        self,
        shape: KvShape,
        size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.size = size
        layer = (shape.kv_heads, size, shape.head_size)
        self.keys = [torch.empty(layer, dtype=dtype, device=device) for _ in range(shape.layers)]
        self.values = [torch.empty(layer, dtype=dtype, device=device) for _ in range(shape.layers)]

    @staticmethod
    def bytes_per_token(shape: KvShape, dtype: torch.dtype = torch.float32) -> int:
        """Memory of one slot over all layers, in bytes."""
        return 2 * shape.layers * shape.kv_heads * shape.head_size * dtype.itemsize
