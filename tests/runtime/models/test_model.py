"""A model in our hands gives what it gives by itself, however its past was computed and shared."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import VOCABULARY, cold_logits, generate, greedy, run, tiny_network

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.slots import SlotRun
from promptlang.runtime.models.model import Model, ModelError
from promptlang.runtime.models.self_test import self_test
from promptlang.runtime.models.transformers_model import TransformersModel

PROMPT = [(7 * index + 3) % VOCABULARY for index in range(23)]

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 6},
    "mixtral": {"sliding_window": None},
    "qwen2": {},
    "qwen3": {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
    "gemma2": {"head_dim": 16, "sliding_window": 8, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 16},
    "gemma3_text": {"head_dim": 16, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]},
    "gpt2": {"num_key_value_heads": 4},
    "gpt_neox": {"num_key_value_heads": 4},
    "phi3": {"sliding_window": 10},
    "olmo2": {},
    "smollm3": {},
    "granite": {},
    "gpt_oss": {"head_dim": 16, "sliding_window": 8, "num_local_experts": 2, "num_experts_per_tok": 1},
}
"""Families, and what each needs beside the common settings: windows are shorter than the prompt."""


@pytest.fixture(scope="module")
def model() -> Model:
    return TransformersModel(tiny_network())


def slots(start: int, count: int) -> Any:
    return np.arange(start, start + count, dtype=np.int32)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Any:
    """A network of each family."""
    return tiny_network(request.param, **FAMILIES[request.param])


def plain_logits(network: Any, tokens: list[int]) -> torch.Tensor:
    """What transformers computes by itself, at every position."""
    ours = network.config._attn_implementation
    network.set_attn_implementation("eager")
    with torch.inference_mode():
        logits: torch.Tensor = network(torch.tensor([tokens]), use_cache=False).logits[0]
    network.set_attn_implementation(ours)
    return logits


def test_greedy_tokens_equal_transformers_own(family: Any) -> None:
    assert greedy(TransformersModel(family), PROMPT, 12) == generate(family, PROMPT, 12)


def test_every_position_has_transformers_own_logits(family: Any) -> None:
    assert torch.allclose(cold_logits(TransformersModel(family), PROMPT), plain_logits(family, PROMPT), atol=1e-4)


def test_cached_and_forked_sequences_have_transformers_own_logits(family: Any) -> None:
    model = TransformersModel(family)
    branches = [[5], [6, 5], [5, 5, 8], list(range(20))]
    pool = KvPool(model.shape, 160)
    run(model, pool, Lane(PROMPT[:11], 0, slots(0, 11), ()))
    run(model, pool, Lane(PROMPT[11:], 11, slots(11, 12), (SlotRun(0, 11),)))
    lanes = [
        Lane(tokens, 23, slots(30 + 25 * index, len(tokens)), (SlotRun(0, 11), SlotRun(11, 12)), wants="all")
        for index, tokens in enumerate(branches)
    ]
    together = run(model, pool, *lanes)
    alone = torch.cat([plain_logits(family, [*PROMPT, *tokens])[23:] for tokens in branches])
    assert torch.allclose(together, alone, atol=1e-4)


def test_chunks_give_what_the_whole_gives(model: Model) -> None:
    whole = cold_logits(model, PROMPT)
    for border in (1, 2, 11, 22):
        pool = KvPool(model.shape, 64)
        first = run(model, pool, Lane(PROMPT[:border], 0, slots(0, border), (), wants="all"))
        rest = Lane(PROMPT[border:], border, slots(40, 23 - border), (SlotRun(0, border),), wants="all")
        assert torch.allclose(torch.cat([first, run(model, pool, rest)]), whole, atol=1e-4)


def test_forks_give_what_each_gives_alone(model: Model) -> None:
    pool = KvPool(model.shape, 200)
    run(model, pool, Lane(PROMPT, 0, slots(0, 23), ()))
    branches = [[5], [6, 5], [5, 5, 8], list(range(20))]
    lanes = [
        Lane(tokens, 23, slots(30 + 25 * index, len(tokens)), (SlotRun(0, 23),), wants="last")
        for index, tokens in enumerate(branches)
    ]
    together = run(model, pool, *lanes)
    alone = torch.cat([cold_logits(model, [*PROMPT, *tokens])[-1:] for tokens in branches])
    assert torch.allclose(together, alone, atol=1e-4)


def test_logits_come_in_the_order_of_the_lanes(model: Model) -> None:
    pool = KvPool(model.shape, 100)
    run(model, pool, Lane(PROMPT, 0, slots(0, 23), ()))
    sorted_last = Lane([4], 23, slots(30, 1), (SlotRun(0, 23),), wants="last")
    sorted_first = Lane(PROMPT[:3], 0, slots(40, 3), (), wants="all")
    logits = run(model, pool, sorted_last, sorted_first)
    assert torch.allclose(logits[:1], cold_logits(model, [*PROMPT, 4])[-1:], atol=1e-4)
    assert torch.allclose(logits[1:], cold_logits(model, PROMPT[:3]), atol=1e-4)


def test_no_logits_where_none_are_wanted(model: Model) -> None:
    logits = run(model, KvPool(model.shape, 30), Lane(PROMPT, 0, slots(0, 23), (), wants="none"))
    assert logits.shape == (0, VOCABULARY)


def test_slots_in_any_order_give_the_same(model: Model) -> None:
    pool = KvPool(model.shape, 64)
    scattered = np.random.default_rng(0).permutation(64)[:23].astype(np.int32)
    lane = Lane(PROMPT, 0, scattered, (), wants="all")
    assert torch.allclose(run(model, pool, lane), cold_logits(model, PROMPT), atol=1e-4)


def test_what_a_freed_slot_holds_is_never_seen(model: Model) -> None:
    pool = KvPool(model.shape, 64)
    for tensor in (*pool.keys, *pool.values):
        tensor.fill_(float("nan"))
    run(model, pool, Lane(PROMPT, 0, slots(10, 23), ()))
    lanes = [Lane([token], 23, slots(40 + 3 * token, 1), (SlotRun(10, 23),)) for token in range(4)]
    assert run(model, pool, *lanes).isfinite().all()


def test_the_self_test_passes_for_what_is_supported(family: Any) -> None:
    self_test(TransformersModel(family), family)


def test_the_self_test_finds_a_wrong_model() -> None:
    with pytest.raises(ModelError, match="other logits"):
        self_test(TransformersModel(tiny_network(seed=1)), tiny_network(seed=2))


@pytest.mark.parametrize(
    ("model_type", "settings", "word"),
    [
        ("bloom", {"n_head": 4, "n_layer": 2}, "BloomForCausalLM"),
        ("mpt", {"d_model": 64, "n_heads": 4, "n_layers": 2}, "MptForCausalLM"),
        ("mamba", {}, "MambaForCausalLM"),
        ("lfm2", {"layer_types": ["conv", "full_attention"]}, "Lfm2ForCausalLM has conv layers"),
        ("qwen3_next", {"num_experts": 2, "num_experts_per_tok": 1}, "Qwen3Next"),
    ],
)
def test_what_is_not_plain_attention_is_refused_by_name(model_type: str, settings: dict[str, Any], word: str) -> None:
    with pytest.raises(ModelError, match=word):
        TransformersModel(tiny_network(model_type, **settings))


def test_a_layer_that_slides_otherwise_than_its_config_says_is_refused() -> None:
    network = tiny_network("qwen2", max_position_embeddings=64)
    network.model.layers[1].self_attn.sliding_window = 16
    with pytest.raises(ModelError, match="sliding window of 16"):
        self_test(TransformersModel(network), network)
