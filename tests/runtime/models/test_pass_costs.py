"""What passes cost is measured, and kept."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_engine import tiny_loaded

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.models.batch import Batch
from promptlang.runtime.models.logits import KnownLogits
from promptlang.runtime.models.measurements import Measurements
from promptlang.runtime.models.pass_costs import CONTEXT, TRIES, PassCosts, kept_costs, measured_costs

ROWS = tuple(sorted(TRIES))


class Timed:
    """A model whose passes take as long as it is told, and whose logits change from some rows on."""

    def __init__(self, seconds: float = 0.0, changes_at: int | None = None) -> None:
        model = tiny_loaded().model
        self.shape, self.dtype, self.device = model.shape, model.dtype, model.device
        self.weights, self.drafting = "timed", None
        self.now = 0.0
        self.passes = 0
        self._seconds = seconds
        self._changes_at = changes_at

    def forward(self, batch: Batch, pool: KvPool) -> KnownLogits:
        rows = len(batch.tokens)
        self.now += 0.001 + self._seconds * rows
        self.passes += 1
        logits = torch.arange(self.shape.vocab_size).float().repeat(len(batch.rows), 1)
        return KnownLogits(logits * 1.1 if rows != CONTEXT and rows >= (self._changes_at or rows + 1) else logits)


def test_a_pass_costs_what_it_takes() -> None:
    model = Timed(0.001)
    costs = measured_costs(model, lambda: model.now)
    assert costs.rows == ROWS
    assert costs.seconds == pytest.approx([0.001 + 0.001 * rows for rows in ROWS])
    assert costs.alike_rows is None


@pytest.mark.parametrize(("changes_at", "alike"), [(2, 1), (5, 4), (7, 6), (32, 24), (33, None)])
def test_from_how_many_rows_on_a_token_is_told_of_otherwise(changes_at: int, alike: int | None) -> None:
    assert measured_costs(Timed(0.001, changes_at)).alike_rows == alike


def test_noise_never_makes_more_rows_cheaper() -> None:
    noise = np.random.default_rng(0)
    seconds = measured_costs(tiny_loaded().model, lambda: float(noise.random())).seconds
    assert list(seconds) == sorted(seconds)


def test_on_a_slow_machine_less_is_tried() -> None:
    model = Timed(1.0)
    costs = measured_costs(model, lambda: model.now)
    assert costs.rows == (1, 32)
    assert model.passes == 4


def test_in_float32_a_token_is_told_of_alike_in_any_company() -> None:
    assert measured_costs(tiny_loaded().model).alike_rows is None


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    model = Timed(0.001, 5)
    first = kept_costs(Measurements(tmp_path), model)
    model.passes = 0
    assert kept_costs(Measurements(tmp_path), model) == first
    assert model.passes == 0


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        [],
        {},
        {"rows": 1},
        {"rows": [1], "seconds": [1.0], "alike_rows": None},
        {"rows": [2, 1], "seconds": [1.0, 2.0], "alike_rows": None},
        {"rows": [1, [2]], "seconds": [1.0, 2.0], "alike_rows": None},
        {"rows": [1, 2], "seconds": [2.0, 1.0], "alike_rows": None},
        {"rows": [1, 2], "seconds": [1.0, "2"], "alike_rows": None},
        {"rows": [1, 2], "seconds": [1.0, 2.0], "alike_rows": "all"},
    ],
)
def test_a_damaged_measurement_is_taken_anew(tmp_path: Path, value: object) -> None:
    model = Timed(0.001)
    first = kept_costs(Measurements(tmp_path), model)
    file = tmp_path / "pass_costs.json"
    (key,) = json.loads(file.read_text())
    file.write_text(json.dumps({key: value}))
    assert kept_costs(Measurements(tmp_path), model).rows == first.rows
    assert json.loads(file.read_text())[key]["rows"] == list(ROWS)


def test_costs_lie_on_lines_between_what_was_measured() -> None:
    costs = PassCosts((1, 2, 4), (1.0, 3.0, 4.0))
    assert costs.of(np.array([1, 2, 3, 4, 7])).tolist() == [1.0, 3.0, 3.5, 4.0, 7.0]
