"""Products are right, and a row's result does not depend on its neighbours."""

import pytest
import torch

from promptlang.runtime.linear import FEW_ROWS, FourBitLinear, HalfLinear, Linear

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
@pytest.mark.parametrize("keeps_plain", [False, True])
@pytest.mark.parametrize("rows", [1, FEW_ROWS, FEW_ROWS + 1, 40])
def test_a_product_equals_torchs_own(bias: torch.Tensor | None, keeps_plain: bool, rows: int) -> None:
    product = Linear(WEIGHT, bias, keeps_plain=keeps_plain)(INPUT[:rows])
    expected = INPUT[:rows].double() @ WEIGHT.double().T + (0 if bias is None else bias)
    assert torch.allclose(product, expected.float(), atol=1e-5)


@pytest.mark.parametrize("kind", [Linear, FourBitLinear])
def test_a_row_has_the_same_bits_whatever_stands_beside_it(kind: type) -> None:
    product = kind(WEIGHT)
    together = product(INPUT)
    for count in range(1, 40):
        assert torch.equal(product(INPUT[:count]), together[:count])


@pytest.mark.parametrize("rows", [1, 9, 40])
def test_four_bit_weights_keep_their_values(rows: int) -> None:
    weight = four_bit_weight()
    exact = INPUT[:rows] @ weight.T + BIAS
    error = FourBitLinear(weight, BIAS)(INPUT[:rows]) - exact
    assert error.norm() / exact.norm() < 0.005


def test_half_precision_is_near() -> None:
    exact = INPUT @ WEIGHT.T
    error = HalfLinear(WEIGHT)(INPUT) - exact
    assert error.norm() / exact.norm() < 0.005


def test_a_constant_group_stays_constant() -> None:
    weight = torch.full((16, 32), 0.5)
    assert torch.allclose(FourBitLinear(weight)(torch.ones(1, 32)), torch.full((1, 16), 16.0))
