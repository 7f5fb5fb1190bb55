"""Matrix products with fixed weights, laid out once for the processor that will run them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch.nn.functional import linear


class Product(Protocol):
    """`x @ weight.T + bias` for a weight [out, in] and a bias [out] or None."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out], in x's type."""


MakeProduct = Callable[[torch.Tensor, torch.Tensor | None], Product]
"""A product from its weight and its bias."""


class PlainLinear:
    """A product with the weight as it is: torch's own.

    Args:
        weight: [out, in].
        bias: [out], or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""
        return linear(x, self._weight, self._bias)


class PackedLinear:
    """A product with the weight in oneDNN's blocked layout.

    Besides being faster than the plain layout for all but a handful of rows, it gives a row the same bits whatever rows
    stand beside it (in float32; measured: one row alone may differ where inputs are wide), so that a sequence's logits
    hardly depend on its neighbours here.

    Args:
        weight: [out, in], of a type that `can_pack`.
        bias: [out], or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight)
        self._bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, self._bias, "none", [], "")
        return product


def can_pack(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether oneDNN multiplies this type here."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if dtype is torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype is torch.float32


GROUP = 32
"""Weights that share a scale and a zero point in four-bit form; the same as in GGUF's Q4 formats."""


class FourBitWeight(NamedTuple):
    """A weight in four bits, laid out for this processor. One that comes from a four-bit format keeps its values, up to
    the rounding of scales to bfloat16.

    Attributes:
        packed: levels, in a form of torch's.
        scales_and_zeros: bfloat16 [in / 32, out, 2].
    """

    packed: torch.Tensor
    scales_and_zeros: torch.Tensor

    @classmethod
    def of(cls, weight: torch.Tensor) -> "FourBitWeight":
        """The nearest one to a weight [out, in] that `has_four_bits`."""
        levels, scales, zeros = _quantised(weight.float())
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels, 1)
        return cls(packed, torch.stack([scales.t(), zeros.t()], -1).contiguous())


def has_four_bits(weight: torch.Tensor) -> bool:
    """Whether a weight [out, in] can be had in four bits."""
    return weight.device.type == "cpu" and weight.shape[0] % 16 == 0 and weight.shape[1] % GROUP == 0


class FourBitLinear:
    """A product with weights in four bits, and inputs and outputs rounded to bfloat16; approximate. A row has the same
    bits whatever rows stand beside it.

    Args:
        weight: of [out, in].
        bias: [out], or None.
    """

    def __init__(self, weight: FourBitWeight, bias: torch.Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""
        product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            x.bfloat16(), self._weight.packed, GROUP, self._weight.scales_and_zeros
        ).to(x.dtype)
        return product if self._bias is None else product + self._bias


def _quantised(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sixteen evenly spaced levels from the least to the greatest weight of each group.

    Returns:
        int32 levels [out, in]; bfloat16 scales and zero points [out, in / 32], a weight being
        (level - 8) * scale + zero point.
    """
    rows = len(weight)
    # Groups as columns: minimum, maximum and the arithmetic then run along memory.
    groups = weight.reshape(-1, GROUP).t().contiguous()
    least = groups.amin(0)
    scales = ((groups.amax(0) - least) / 15).clamp_min_(torch.finfo(torch.float32).tiny)
    levels = groups.sub_(least).div_(scales).round_().to(torch.int32).t().reshape(weight.shape)
    zeros = least + 8 * scales
    return levels, scales.view(rows, -1).bfloat16(), zeros.view(rows, -1).bfloat16()


@dataclass
class RowLimit:
    """Up to how many rows the products of a model go through their layout for few."""

    rows: int


class LinearByRows:
    """One product in two layouts: what is fastest for few rows is not for many.

    Args:
        width: of the input.
        few: up to `limit.rows` rows.
        many: beyond.
        limit: shared by the products of a model.
    """

    def __init__(self, width: int, few: Product, many: Product, limit: RowLimit) -> None:
        self.width = width
        self.few = few
        self.many = many
        self._limit = limit

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""
        return self.few(x) if x.shape[0] <= self._limit.rows else self.many(x)
