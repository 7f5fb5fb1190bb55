"""Matrix products with fixed weights, laid out once for the processor that will run them."""

from typing import Protocol

import torch
from torch.nn.functional import linear


class Product(Protocol):
    """`x @ weight.T + bias` for a weight [out, in] and a bias [out] or None."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None: ...

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""


class Linear:
    """A product in the weight's own precision.

    On a CPU the weight is kept in oneDNN's blocked layout. Besides being faster than the plain layout for all but a
    handful of rows, it gives each row the same bits whatever rows stand beside it (in float32), so that a sequence's
    logits do not depend on its neighbours here.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._bias = bias
        self._is_packed = _can_pack(weight)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight) if self._is_packed else weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out]."""
        if self._is_packed:
            product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
            return product
        return linear(x, self._weight, self._bias)


def _can_pack(weight: torch.Tensor) -> bool:
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype is torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype is torch.float32


GROUP = 32
"""Weights that share a scale and a zero point in four-bit form; the same as in GGUF's Q4 formats."""

FEW_ROWS = 8
"""Up to this many rows, reading a weight costs more than computing with it: then it pays to read four bits."""


class FourBitLinear:
    """A product with weights in four bits, inputs and outputs in bfloat16; approximate, and fast for few rows.

    A weight that comes from a four-bit format keeps its values, up to the rounding of scales to bfloat16. Many rows go
    through the same values in float32: both ways compute the same sums, up to their order.

    Args:
        weight: float32 [out, in]; `in` is a multiple of 32 and `out` of 16.
        bias: [out], or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        levels, scales, zeros = _quantised(weight)
        self._bias = bias
        self._packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels, 1)
        self._scales_and_zeros = torch.stack([scales.t(), zeros.t()], -1).contiguous()
        self._many_rows = Linear(_dequantised(levels, scales, zeros))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] to [rows, out], float32."""
        x = x.bfloat16()
        if len(x) <= FEW_ROWS:
            product = torch.ops.aten._weight_int4pack_mm_for_cpu(x, self._packed, GROUP, self._scales_and_zeros)
        else:
            product = self._many_rows(x.float()).bfloat16()
        result: torch.Tensor = product.float()
        return result if self._bias is None else result + self._bias


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


def _dequantised(levels: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    grouped = (levels - 8).view(*scales.shape, GROUP)
    return (grouped * scales.float().unsqueeze(-1) + zeros.float().unsqueeze(-1)).view(levels.shape)
