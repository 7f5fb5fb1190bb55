"""Matrix products with fixed weights, laid out once for the processor that will run them."""

import torch
from torch.nn.functional import linear


class Linear:
    """`x @ weight.T + bias`.

    On a CPU the weight is kept in oneDNN's blocked layout. Besides being faster than the plain layout for all
    but a handful of rows, it gives each row the same bits whatever rows stand beside it (in float32), so that
    a sequence's logits do not depend on its neighbours here.

    Args:
        weight: [out, in]; not kept where it is laid out anew.
        bias: [out], or None.
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
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if weight.dtype is torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype is torch.float32
