"""Matrix products with fixed weights, laid out once for the processor that will run them."""

from typing import Protocol

import torch
from torch.nn.functional import linear


class Product(Protocol):
    """`x @ weight.T + bias` for a weight [out, in] and a bias [out] or None."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""


FEW_ROWS = 3
"""Up to this many rows the plain layout is the faster one: oneDNN takes 20 to 40 µs a call beside its arithmetic."""


class Linear:
    """A product in the weight's own precision.

    On a CPU the weight is kept in oneDNN's blocked layout. Besides being faster than the plain layout for all but a
    handful of rows, it gives a row the same bits whatever rows stand beside it (in float32; measured: one row alone may
    differ where inputs are wide), so that a sequence's logits hardly depend on its neighbours here.

    Args:
        weight: [out, in].
        bias: [out], or None.
        keeps_plain: keep the plain layout too, for up to `FEW_ROWS` rows in float32: a step of one sequence is then a
            fifth faster, for twice the memory. Few and many rows differ in their last bits.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, keeps_plain: bool = False) -> None:
        self._bias = bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight) if _can_pack(weight) else None
        is_needed = self._packed is None or (keeps_plain and weight.dtype is torch.float32)
        self._plain = weight if is_needed else None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""
        if self._plain is not None and (self._packed is None or len(x) <= FEW_ROWS):
            return linear(x, self._plain, self._bias)
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, self._bias, "none", [], "")
        return product


def _can_pack(weight: torch.Tensor) -> bool:
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype is torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype is torch.float32


class HalfLinear:
    """A float32 product whose weight and input are rounded to bfloat16: half the memory to read.

    Where the processor can't multiply in bfloat16 it is a `Linear`. A row's last bits may depend on how many rows there
    are.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        half = weight.bfloat16()
        self._dtype = torch.bfloat16 if _can_pack(half) else torch.float32
        self._product = Linear(half if self._dtype is torch.bfloat16 else weight)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out], float32."""
        return self._product(x.to(self._dtype)).float()


GROUP = 32
"""Weights that share a scale and a zero point in four-bit form; the same as in GGUF's Q4 formats."""


class FourBitLinear:
    """A product with weights in four bits, inputs and outputs rounded to bfloat16; approximate, and fast for few rows.

    A weight that comes from a four-bit format keeps its values, up to the rounding of scales to bfloat16. A row has the
    same bits whatever rows stand beside it.

    Args:
        weight: float32 [out, in]; `in` is a multiple of 32 and `out` of 16.
        bias: [out], or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        levels, scales, zeros = _quantised(weight)
        self._bias = bias
        self._packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels, 1)
        self._scales_and_zeros = torch.stack([scales.t(), zeros.t()], -1).contiguous()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out], float32."""
        product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            x.bfloat16(), self._packed, GROUP, self._scales_and_zeros
        ).float()
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
