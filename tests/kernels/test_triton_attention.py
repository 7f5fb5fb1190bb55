"""The Triton kernels give what attention of each sequence alone gives, as their interpreter runs them."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_engine import kv_bytes, prompt_of, tiny_engine, tiny_loaded

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.reference import ReferenceAttention
from promptlang.kernels.tiles import Heads, tiles
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GenerateTokens
from promptlang.runtime.usage import Usage

pytest.importorskip("triton", reason="there is no Triton for this system")

from promptlang.kernels.flat_plan import CHUNK, flat_plan
from promptlang.kernels.triton_attention import TritonAttention

CPU = torch.device("cpu")
PAIRS = Heads(2, 16, torch.float32)
REFERENCE = ReferenceAttention(CPU)


def lane(new: int, at: int, *context: tuple[int, int]) -> AttentionLane:
    return AttentionLane(np.arange(at, at + new, dtype=np.int32), context)


def error(
    lanes: list[AttentionLane],
    slots: int,
    heads: Heads = PAIRS,
    window: int | None = None,
    **scoring: Any,
) -> float:
    """The largest difference to attention in float64, relative to the largest value. What a kernel does not write stays
    as it was poisoned."""
    generator = torch.Generator().manual_seed(slots)
    rows = sum(len(lane.slots) for lane in lanes)
    query = torch.randn(2 * heads.groups, rows, heads.size, generator=generator).to(heads.dtype)
    keys, values = torch.randn(2, 2, slots, heads.size, generator=generator).to(heads.dtype)
    unused = np.setdiff1d(np.arange(slots), np.concatenate([slots_of(lane) for lane in lanes]))
    keys[:, unused] = values[:, unused] = float("nan")
    ours = TritonAttention(CPU, heads)
    result = ours.attend(ours.plan(lanes, {window}), query, keys, values, 0.25, window=window, **scoring)
    expected = REFERENCE.attend(
        REFERENCE.plan(lanes, {window}), query.double(), keys.double(), values.double(), 0.25, window=window, **scoring
    )
    return float((result.double() - expected).abs().max() / expected.abs().max())


def slots_of(lane: AttentionLane) -> np.ndarray:
    return np.concatenate([*(np.arange(start, start + length) for start, length in lane.context), lane.slots])


@pytest.fixture(autouse=True)
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    new_empty = torch.Tensor.new_empty

    def poisonous(self: torch.Tensor, *size: int, **how: Any) -> torch.Tensor:
        made = new_empty(self, *size, **how)
        return made.fill_(float("nan")) if made.is_floating_point() else made

    monkeypatch.setattr(torch.Tensor, "new_empty", poisonous)


TREES = {
    "one token": [lane(1, 0)],
    "one sequence": [lane(1, 500, (0, 500))],
    "siblings": [lane(1, 500 + index, (0, 300), (400, 7)) for index in range(5)],
    "siblings with tails": [lane(1, 600 + 20 * index + index, (0, 300), (600 + 20 * index, index)) for index in (1, 9)],
    "nested": [lane(1, 700 + index, (0, 100), (100 + 100 * (index // 2), 90)) for index in range(4)],
    "scattered": [lane(1, 500, *((2 * index, 1) for index in range(70)))],
    "a prompt": [lane(70, 0)],
    "a prompt behind a prefix": [lane(37, 300, (0, 100))],
    "prompts and answers": sorted(
        [lane(20, 500, (0, 80)), lane(1, 520, (0, 80)), lane(3, 530, (0, 80), (100, 5)), lane(9, 540)],
        key=lambda lane: lane.context,
    ),
    **{f"{length} keys": [lane(1, 600, (0, length - 1))] for length in (CHUNK - 1, CHUNK, CHUNK + 1)},
}


@pytest.mark.parametrize("tree", TREES)
def test_equals_each_sequence_alone(tree: str) -> None:
    assert error(TREES[tree], 800) < 1e-5


@pytest.mark.parametrize("groups", [1, 3, 4, 8, 16])
def test_any_number_of_heads_may_share_keys(groups: int) -> None:
    assert error(TREES["siblings"], 800, Heads(groups, 16, torch.float32)) < 1e-5


@pytest.mark.parametrize("size", [64, 80, 96, 128, 256])
def test_heads_of_any_size(size: int) -> None:
    assert error(TREES["prompts and answers"], 800, Heads(2, size, torch.float32)) < 1e-5


def test_half_precision_is_near() -> None:
    """In float16: Triton's interpreter multiplies no bfloat16."""
    assert error(TREES["prompts and answers"], 800, Heads(3, 64, torch.float16)) < 1e-2


@pytest.mark.parametrize("window", [1, 5, 90, 300, 10_000])
@pytest.mark.parametrize("tree", ["siblings", "a prompt", "prompts and answers", "257 keys"])
def test_a_window_hides_what_is_too_far_back(tree: str, window: int) -> None:
    assert error(TREES[tree], 800, window=window) < 1e-5


@pytest.mark.parametrize("scoring", [{"cap": 3.0}, {"sinks": torch.tensor([0.5, -3.0, 8.0, 0.0])}])
@pytest.mark.parametrize("window", [None, 30])
def test_caps_and_sinks(scoring: dict[str, Any], window: int | None) -> None:
    assert error(TREES["prompts and answers"], 800, window=window, **scoring) < 1e-5


@st.composite
def forests(draw: st.DrawFn) -> list[AttentionLane]:
    """Lanes that are paths in a random tree of runs, sorted by context."""
    used = 0

    def taken(length: int) -> tuple[int, int]:
        nonlocal used
        start = used + draw(st.integers(0, 2))
        used = start + length
        return start, length

    lengths = st.sampled_from([1, 2, 15, 17, 63, 64, 65, 100, 255, 256, 257])
    paths: list[tuple[tuple[int, int], ...]] = [()]
    for _ in range(draw(st.integers(0, 4))):
        paths.append((*draw(st.sampled_from(paths)), taken(draw(lengths))))
    lanes = []
    for path in draw(st.lists(st.sampled_from(paths), min_size=1, max_size=5)):
        start, count = taken(draw(st.sampled_from([1, 1, 1, 2, 9])))
        lanes.append(lane(count, start, *path))
    return sorted(lanes, key=lambda lane: lane.context)


@settings(deadline=None, max_examples=15)
@given(lanes=forests(), groups=st.sampled_from([1, 3]), window=st.sampled_from([None, None, 70]))
def test_any_tree_equals_each_sequence_alone(lanes: list[AttentionLane], groups: int, window: int | None) -> None:
    assert error(lanes, 2000, Heads(groups, 16, torch.float32), window) < 1e-5


@pytest.mark.parametrize("window", [None, 40, 5000])
def test_a_plan_reads_each_shared_key_once(window: int | None) -> None:
    """For three hundred siblings behind ten thousand tokens, and no more of them than the window shows."""
    lanes = [lane(1, 10_000 + index, (0, 10_000)) for index in range(300)]
    plan = flat_plan(lanes, {window}, 4, tiles(Heads(4, 128, torch.bfloat16), 9), CPU).windows[window]
    (wide,) = [launch for launch in plan.launches if launch.tile.rows == 64]
    queries_a_tile = 64 // 4
    shared = min(10_000, (window or 10_000) + CHUNK - 1)
    assert wide.table[:, 3].sum() <= -(-300 // queries_a_tile) * shared
    assert len(plan.slots) == 10_000 + 300


def test_every_query_has_its_parts_in_the_order_of_their_keys() -> None:
    lanes = TREES["prompts and answers"]
    plan = flat_plan(lanes, {None}, 2, tiles(Heads(2, 16, torch.float32), 9), CPU).windows[None]
    table = torch.cat([launch.table for launch in plan.launches])
    owner = {
        part: (first_query + at, position)
        for first_query, queries, _, _, position, first_part in table.tolist()
        for at, part in enumerate(range(first_part, first_part + queries))
    }
    for query in range(len(plan.first_parts) - 1):
        parts = plan.parts[plan.first_parts[query] : plan.first_parts[query + 1]].tolist()
        assert parts
        assert [owner[part][0] for part in parts] == [query] * len(parts)
        assert [owner[part][1] for part in parts] == sorted(owner[part][1] for part in parts)
    assert sorted(owner) == list(range(len(plan.parts)))


@pytest.mark.slow
def test_an_engine_gives_the_same_tokens_as_with_torchs_own_operations() -> None:
    def texts(engine: Engine) -> list[list[int]]:
        prompts = [prompt_of(engine, "The quick brown fox " + end) for end in ("jumps", "jumps over", "sleeps")]
        waiting = [engine.submit(GenerateTokens(prompt, RandomStream(0), Usage(), max_tokens=6)) for prompt in prompts]
        while engine.step():
            pass
        engine.check()
        return [answer.result.tokens for answer in waiting if answer.result is not None]

    loaded = tiny_loaded()
    shape = loaded.model.shape
    heads = Heads(shape.heads // shape.kv_heads, shape.head_size, loaded.model.dtype)
    ours = Engine(loaded, EngineOptions(kv_bytes=kv_bytes(500), tokens_a_step=16), TritonAttention(CPU, heads))
    assert texts(ours) == texts(tiny_engine(500, tokens_a_step=16))
