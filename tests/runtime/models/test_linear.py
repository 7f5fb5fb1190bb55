"""Products are right, and a row's result does not depend on its neighbours."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from promptlang.runtime.models.crossover import ROWS, kept_limit, measured_limit
from promptlang.runtime.models.layouts import MOST_TWICE, Layouts
from promptlang.runtime.models.linear import (
    FourBitLinear,
    FourBitWeight,
    LinearByRows,
    PackedLinear,
    PlainLinear,
    RowLimit,
)
from promptlang.runtime.models.measurements import Measurements

WEIGHT = torch.randn(48, 64, generator=torch.Generator().manual_seed(0))
BIAS = torch.randn(48, generator=torch.Generator().manual_seed(1))
INPUT = torch.randn(40, 64, generator=torch.Generator().manual_seed(2))


def four_bit_weight() -> torch.Tensor:
    """A weight that has but sixteen evenly spaced values in a group, as from a GGUF file."""
    generator = torch.Generator().manual_seed(3)
    levels = torch.randint(0, 16, (48, 2, 32), generator=generator)
    levels[..., 0], levels[..., 1] = 0, 15
    scales, least = torch.rand(2, 48, 2, 1, generator=generator).half().float()
    return (levels * scales - least).view(48, 64)


@pytest.mark.parametrize("bias", [None, BIAS])
@pytest.mark.parametrize("one_layout", [False, True])
@pytest.mark.parametrize("limit", [0, 3, 32])
@pytest.mark.parametrize("rows", [1, 3, 4, 40])
def test_a_product_equals_torchs_own(bias: torch.Tensor | None, one_layout: bool, limit: int, rows: int) -> None:
    layouts = Layouts(one_layout=one_layout, measure_limit=lambda products, dtype: limit)
    make = layouts.for_layers({})(WEIGHT, bias)
    layouts.settle()
    product = make(INPUT[:rows])
    expected = INPUT[:rows].double() @ WEIGHT.double().T + (0 if bias is None else bias)
    assert torch.allclose(product, expected.float(), atol=1e-5)


def test_a_layout_that_is_never_the_faster_one_is_not_kept() -> None:
    for limit, kinds in ((0, {PackedLinear}), (3, {PlainLinear, PackedLinear})):
        layouts = Layouts(measure_limit=lambda products, dtype, limit=limit: limit)  # type: ignore[misc]
        product = layouts.for_layers({})(WEIGHT, None)
        layouts.settle()
        assert isinstance(product, LinearByRows)
        assert {type(product.few), type(product.many)} == kinds


@pytest.mark.parametrize("kind", [PackedLinear, FourBitLinear])
def test_a_row_has_the_same_bits_whatever_stands_beside_it(kind: type) -> None:
    product = FourBitLinear(FourBitWeight.of(WEIGHT)) if kind is FourBitLinear else kind(WEIGHT)
    together = product(INPUT)
    for count in range(1, 40):
        assert torch.equal(product(INPUT[:count]), together[:count])


@pytest.mark.parametrize("rows", [1, 9, 40])
def test_four_bit_weights_keep_their_values(rows: int) -> None:
    weight = four_bit_weight()
    exact = INPUT[:rows] @ weight.T + BIAS
    error = FourBitLinear(FourBitWeight.of(weight), BIAS)(INPUT[:rows]) - exact
    assert error.norm() / exact.norm() < 0.005


@pytest.mark.parametrize("bias", [None, BIAS])
@pytest.mark.parametrize("rows", [1, 8, 9, 40])
def test_four_bits_for_few_rows_and_bfloat16_for_many_are_near(bias: torch.Tensor | None, rows: int) -> None:
    layouts = Layouts(four_bits=True, measure_limit=lambda products, dtype: 8)
    weight = four_bit_weight()
    product = layouts.for_layers({})(weight, bias)
    layouts.settle()
    exact = INPUT[:rows] @ weight.T + (0 if bias is None else bias)
    error = product(INPUT[:rows].to(layouts.dtype)).float() - exact
    assert error.norm() / exact.norm() < 0.01
    assert "int4 up to 8 rows" in layouts.description


def spy(calls: list[str], name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    def product(x: torch.Tensor) -> torch.Tensor:
        calls.append(name)
        return x

    return product


def test_the_rows_choose_the_layout() -> None:
    calls: list[str] = []
    product = LinearByRows(4, spy(calls, "few"), spy(calls, "many"), RowLimit(2))
    for rows in (1, 2, 3):
        product(torch.ones(rows, 4))
    assert calls == ["few", "few", "many"]


def test_one_layout_never_chooses() -> None:
    for four_bits in (False, True):
        product = Layouts(four_bits=four_bits, one_layout=True).for_layers({})(WEIGHT, None)
        assert not isinstance(product, LinearByRows)


def test_large_layers_are_kept_once() -> None:
    large = {"model.layers.0.weight": torch.empty(MOST_TWICE // 2, dtype=torch.int8, device="meta")}
    assert not isinstance(Layouts(four_bits=False).for_layers(large)(WEIGHT, None), LinearByRows)


class Costs:
    """Products that take so much of a clock's time, and the clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def product(self, seconds: float, seconds_a_row: float = 0.0) -> Callable[[torch.Tensor], torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            self.now += seconds + len(x) * seconds_a_row
            return x

        return run


@pytest.mark.parametrize(("seconds", "limit"), [(0.5, 0), (4.5, 4), (5.5, 4), (6.5, 6), (1000, ROWS[-1])])
def test_the_limit_is_where_many_rows_begin_to_win(seconds: float, limit: int) -> None:
    costs = Costs()
    product = LinearByRows(4, costs.product(0, 1), costs.product(seconds), RowLimit(0))
    assert measured_limit([product], torch.float32, lambda: costs.now) == limit


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    calls: list[str] = []
    product = LinearByRows(4, spy(calls, "few"), spy(calls, "many"), RowLimit(0))
    first = kept_limit(Measurements(tmp_path), [product], torch.float32)
    calls.clear()
    assert kept_limit(Measurements(tmp_path), [product], torch.float32) == first
    assert not calls


@pytest.mark.parametrize("text", ["", "{", "[]", "[[]]", "7", '"x"', "\x00\xff", "{KEY: -1}", "{KEY: []}", "{KEY: 5}"])
def test_a_damaged_measurement_is_taken_anew(tmp_path: Path, text: str) -> None:
    calls: list[str] = []
    product = LinearByRows(4, spy(calls, "few"), spy(calls, "many"), RowLimit(0))
    kept_limit(Measurements(tmp_path), [product], torch.float32)
    file = tmp_path / "row_limits.json"
    (key,) = json.loads(file.read_text())
    file.write_text(text.replace("KEY", json.dumps(key)), encoding="latin-1")
    calls.clear()
    assert kept_limit(Measurements(tmp_path), [product], torch.float32) in (0, *ROWS)
    assert calls
    assert list(json.loads(file.read_text())) == [key]


def test_a_measurement_that_can_not_be_kept_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    product = LinearByRows(4, spy([], "few"), spy([], "many"), RowLimit(0))
    assert kept_limit(Measurements(tmp_path / "no-folder"), [product], torch.float32) in (0, *ROWS)
    assert "can't be kept" in caplog.text


def test_a_constant_group_stays_constant() -> None:
    weight = torch.full((16, 32), 0.5)
    assert torch.allclose(FourBitLinear(FourBitWeight.of(weight))(torch.ones(1, 32)), torch.full((1, 16), 16.0))
