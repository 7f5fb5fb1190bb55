"""How a model's weights are kept: in which type, in which layouts, and which of two serves a step."""

from collections.abc import Callable, Mapping

import torch

from promptlang.runtime.models.crossover import measured_limit
from promptlang.runtime.models.four_bit_weights import FourBitWeights
from promptlang.runtime.models.linear import (
    FourBitLinear,
    LinearByRows,
    MakeProduct,
    PackedLinear,
    PlainLinear,
    Product,
    RowLimit,
    can_pack,
    has_four_bits,
)

MOST_TWICE = 1 << 30
"""Layers of up to this many bytes are kept in two layouts."""

_LAYERS = "model.layers."

MeasureLimit = Callable[[list[LinearByRows], torch.dtype], int]
"""`measured_limit`, or what remembers it."""


class Layouts:
    """The layouts of one model's weights.

    Args:
        dtype: of activations, and of weights that have not four bits.
        four_bits: keep the layers' weights in four bits for few rows. Then `dtype` is bfloat16 where the processor
            multiplies in it, else float32.
        one_layout: never choose by rows, so that a row's products don't depend on how many rows there are.
        drafts: keep the weights in four bits besides, for drafts, where they are small and not so already.
        measure_limit: from how many rows on the layout for many rows is the faster one.
        four_bit_weights: where those are kept from one start to the next.
    """

    def __init__(
        self,
        dtype: torch.dtype = torch.float32,
        four_bits: bool = False,
        one_layout: bool = False,
        drafts: bool = False,
        measure_limit: MeasureLimit = measured_limit,
        four_bit_weights: FourBitWeights | None = None,
    ) -> None:
        self.dtype = _fast_dtype() if four_bits else dtype
        self._four_bits = four_bits
        self._one_layout = one_layout
        self._drafts = drafts and not four_bits and not one_layout
        self._measure_limit = measure_limit
        self._four_bit_weights = four_bit_weights or FourBitWeights()
        self._limit = RowLimit(0)
        self._by_rows: list[LinearByRows] = []

    def for_layers(self, weights: Mapping[str, torch.Tensor]) -> MakeProduct:
        """What makes the products of the layers.

        Args:
            weights: all of the model's, by name.
        """
        fits_twice = not self._one_layout and self._are_small(weights)
        if self._four_bits:
            return self._four_bits_and_whole if fits_twice else self._in_four_bits
        return self._plain_and_packed if fits_twice and self.dtype is torch.float32 else self._whole

    def for_drafts(self, weights: Mapping[str, torch.Tensor]) -> MakeProduct | None:
        """What makes the products of the layers for drafts; None where none are kept.

        Args:
            weights: as for `for_layers`.
        """
        matrices = [tensor for name, tensor in weights.items() if name.startswith(_LAYERS) and tensor.dim() == 2]
        is_fit = self._drafts and self._are_small(weights) and all(map(has_four_bits, matrices))
        return self._in_four_bits if is_fit else None

    def _are_small(self, weights: Mapping[str, torch.Tensor]) -> bool:
        layers = sum(tensor.numel() for name, tensor in weights.items() if name.startswith(_LAYERS))
        return layers * self.dtype.itemsize <= MOST_TWICE

    def for_head(self, weight: torch.Tensor, has_plain: bool) -> Product:
        """The product that gives logits, in one layout or (float32) two.

        Args:
            weight: [vocabulary, hidden size].
            has_plain: whether the plain layout is kept anyway.
        """
        if has_plain and self.dtype is torch.float32 and not self._one_layout:
            return self._plain_and_packed(weight, None)
        return self._whole(weight, None)

    def settle(self) -> None:
        """Find the limit between few and many rows, once all products are made; where one layout of the same numbers
        is always the faster one, the other goes."""
        self._four_bit_weights.keep()
        if not self._by_rows:
            return
        self._limit.rows = self._measure_limit(self._by_rows, self.dtype)
        if self._limit.rows == 0 and not self._four_bits:
            for product in self._by_rows:
                product.few = product.many

    @property
    def description(self) -> str:
        """What a run computes with, for reports."""
        name = str(self.dtype).removeprefix("torch.")
        if not self._four_bits:
            return name
        return f"int4 up to {self._limit.rows} rows, {name} beyond" if self._by_rows else "int4"

    def _whole(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
        weight = weight.to(self.dtype)
        bias = bias if bias is None else bias.to(self.dtype)
        return (PackedLinear if can_pack(self.dtype, weight.device) else PlainLinear)(weight, bias)

    def _plain_and_packed(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
        if not can_pack(torch.float32, weight.device):
            return self._whole(weight, bias)
        return self._two(weight.shape[1], PlainLinear(weight.float(), bias), self._whole(weight, bias))

    def _four_bits_and_whole(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
        return self._two(weight.shape[1], self._in_four_bits(weight, bias), self._whole(weight, bias))

    def _in_four_bits(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
        return FourBitLinear(self._four_bit_weights.of(weight), bias if bias is None else bias.to(self.dtype))

    def _two(self, width: int, few: Product, many: Product) -> LinearByRows:
        product = LinearByRows(width, few, many, self._limit)
        self._by_rows.append(product)
        return product


def _fast_dtype() -> torch.dtype:
    return torch.bfloat16 if can_pack(torch.bfloat16, torch.device("cpu")) else torch.float32
