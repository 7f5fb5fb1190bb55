"""The lean path gives the logits of the general one."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import VOCABULARY, cold_logits, generate, greedy, run, tiny_network

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.slots import SlotRun
from promptlang.runtime.models.layouts import Layouts
from promptlang.runtime.models.lean_model import LeanConfig, LeanModel
from promptlang.runtime.models.self_test import self_test
from promptlang.runtime.models.transformers_model import TransformersModel

PROMPT = [(5 * index + 1) % VOCABULARY for index in range(300)]

FAMILIES: list[tuple[str, dict[str, Any]]] = [
    ("llama", {}),
    ("llama", {"num_key_value_heads": 4}),
    ("llama", {"head_dim": 32, "tie_word_embeddings": True}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}),
    (
        "llama",
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            }
        },
    ),
    ("mistral", {"sliding_window": None}),
    ("mistral", {"sliding_window": 40}),
    ("qwen2", {}),
    (
        "qwen2",
        {
            "use_sliding_window": True,
            "sliding_window": 40,
            "layer_types": ["full_attention", "sliding_attention"],
        },
    ),
    ("qwen3", {"head_dim": 32}),
    ("qwen3", {"attention_bias": True, "tie_word_embeddings": True}),
]


def randomise_norms(network: Any) -> None:
    """Norms start as ones, which would hide a norm that is forgotten."""
    generator = torch.Generator().manual_seed(4)
    for name, parameter in network.named_parameters():
        if "norm" in name:
            parameter.data = torch.rand(parameter.shape, generator=generator) + 0.5


def lean(network: Any, dtype: torch.dtype = torch.float32) -> LeanModel:
    config = LeanConfig.read(network.config.to_dict())
    assert config is not None
    return LeanModel(config, network.state_dict(), Layouts(dtype))


@pytest.mark.parametrize(("model_type", "changes"), FAMILIES)
def test_logits_equal_the_general_path(model_type: str, changes: dict[str, Any]) -> None:
    network = tiny_network(model_type, **changes)
    randomise_norms(network)
    expected = cold_logits(TransformersModel(network), PROMPT)
    assert torch.allclose(cold_logits(lean(network), PROMPT), expected, atol=1e-4)


@pytest.mark.parametrize(("model_type", "changes"), FAMILIES)
def test_the_self_test_passes(model_type: str, changes: dict[str, Any]) -> None:
    network = tiny_network(model_type, **changes)
    self_test(lean(network), network)


def test_greedy_tokens_equal_transformers_own() -> None:
    network = tiny_network()
    assert greedy(lean(network), PROMPT[:20], 30) == generate(network, PROMPT[:20], 30)


def test_both_shapes_agree() -> None:
    network = tiny_network(head_dim=32)
    assert lean(network).shape == TransformersModel(network).shape


def test_half_precision_is_near() -> None:
    network = tiny_network()
    expected = cold_logits(lean(network), PROMPT[:20])
    half = cold_logits(lean(network, torch.bfloat16), PROMPT[:20])
    assert (half - expected).abs().max() < 0.1 * expected.abs().max()


def test_a_copy_in_four_bits_says_about_the_same_of_the_same_keys_and_values() -> None:
    network = tiny_network(initializer_range=0.05)
    config = LeanConfig.read(network.config.to_dict())
    assert config is not None
    model = LeanModel(config, network.state_dict(), Layouts(drafts=True))
    assert model.drafting is not None
    pool = KvPool(model.shape, 32, model.dtype)
    start = Lane(PROMPT[:20], 0, np.arange(20, dtype=np.int32), (), "none")
    run(model, pool, start)
    rest = Lane(PROMPT[20:30], 20, np.arange(20, 30, dtype=np.int32), (SlotRun(0, 20),), "all")
    ahead, exact = run(model.drafting, pool, rest), run(model, pool, rest)
    assert torch.equal(exact, run(model, pool, rest))
    assert 0 < (ahead - exact).abs().max() < 0.3 * exact.abs().max()
    assert torch.allclose(exact, cold_logits(model, PROMPT[:30])[20:], atol=1e-4)


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("gemma", {}),
        ("llama", {"hidden_act": "gelu"}),
        ("llama", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0}}),
        ("olmo2", {}),
    ],
)
def test_what_it_does_not_know_is_left_to_the_general_path(model_type: str, changes: dict[str, Any]) -> None:
    assert LeanConfig.read(tiny_network(model_type, **changes).config.to_dict()) is None


def test_windows_left_to_defaults_are_left_to_the_general_path() -> None:
    mistral = tiny_network("mistral").config.to_dict()
    qwen = tiny_network("qwen2", use_sliding_window=True, sliding_window=64).config.to_dict()
    del mistral["sliding_window"], qwen["layer_types"]
    assert LeanConfig.read(mistral) is None
    assert LeanConfig.read(qwen) is None


def test_configs_of_older_releases_are_read() -> None:
    config = tiny_network().config.to_dict()
    old = {name: value for name, value in config.items() if name != "rope_parameters"}
    old |= {"rope_theta": 10000.0, "rope_scaling": None}
    read, expected = LeanConfig.read(old), LeanConfig.read(config)
    assert read is not None
    assert expected is not None
    assert read.rotation["rope_theta"] == expected.rotation["rope_theta"]
