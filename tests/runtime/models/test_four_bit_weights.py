"""Weights in four bits are rounded once, and read from then on."""

from pathlib import Path

import pytest
import torch
from tiny_models import saved_model

from promptlang.runtime.models.four_bit_weights import FourBitWeights
from promptlang.runtime.models.linear import FourBitWeight
from promptlang.runtime.models.loading import load

WEIGHTS = [torch.rand(32, 64, generator=torch.Generator().manual_seed(seed)) - 0.5 for seed in range(3)]


def asked(file: Path | None, weights: list[torch.Tensor] = WEIGHTS) -> list[FourBitWeight]:
    four_bits = FourBitWeights(file)
    found = [four_bits.of(weight) for weight in weights]
    four_bits.keep()
    return found


def same(some: list[FourBitWeight], others: list[FourBitWeight]) -> bool:
    return all(
        torch.equal(one.packed, other.packed) and torch.equal(one.scales_and_zeros, other.scales_and_zeros)
        for one, other in zip(some, others, strict=True)
    )


@pytest.fixture
def rounded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each weight that is rounded."""
    calls, of = list[int](), FourBitWeight.of

    def counted(weight: torch.Tensor) -> FourBitWeight:
        calls.append(1)
        return of(weight)

    monkeypatch.setattr(FourBitWeight, "of", counted)
    return calls


def test_what_was_kept_is_read(tmp_path: Path, rounded: list[int]) -> None:
    file = tmp_path / "kept.safetensors"
    first = asked(file)
    assert len(rounded) == 3
    assert same(asked(file), first)
    assert len(rounded) == 3


def test_without_a_file_they_are_rounded_each_time(rounded: list[int]) -> None:
    assert same(asked(None), asked(None))
    assert len(rounded) == 6


@pytest.mark.parametrize("content", [b"", b"{}", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ", None])
def test_a_file_that_is_damaged_is_written_anew(tmp_path: Path, rounded: list[int], content: bytes | None) -> None:
    file = tmp_path / "kept.safetensors"
    first = asked(file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-40] if content is None else content)
    rounded.clear()
    assert same(asked(file), first)
    assert len(rounded) == 3
    assert file.read_bytes() == whole


def test_a_file_of_other_weights_is_written_anew(tmp_path: Path, rounded: list[int]) -> None:
    file = tmp_path / "kept.safetensors"
    asked(file, [torch.rand(16, 64)] * 2)
    rounded.clear()
    assert same(asked(file), asked(None))
    assert len(rounded) == 6


def test_where_it_can_not_be_kept_it_is_rounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert same(asked(tmp_path / "no folder" / "kept.safetensors"), asked(None))
    assert "can't be kept" in caplog.text


@pytest.mark.parametrize("dtype", ["int4", "float32"])
def test_a_second_start_rounds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounded: list[int], dtype: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = str(saved_model(tmp_path / "model"))
    assert (load(folder, dtype=dtype, drafts=True).model.drafting is None) == (dtype == "int4")
    assert rounded
    rounded.clear()
    load(folder, dtype=dtype, drafts=True)
    assert not rounded


@pytest.mark.parametrize("changes", [{"hidden_size": 40, "num_attention_heads": 4}, {"intermediate_size": 100}])
def test_a_model_that_has_no_four_bits_writes_nothing_ahead(tmp_path: Path, changes: dict[str, int]) -> None:
    assert load(str(saved_model(tmp_path, **changes)), drafts=True, cache=False).model.drafting is None


def test_nothing_is_kept_besides_where_one_layout_is_asked_for(tmp_path: Path) -> None:
    folder = str(saved_model(tmp_path))
    assert load(folder, drafts=True, one_layout=True, cache=False).model.drafting is None
    assert load(folder, drafts=False, cache=False).model.drafting is None
