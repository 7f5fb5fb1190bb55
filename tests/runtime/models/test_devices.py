"""A model, its keys and values and its batches live on one device.

torch's `meta` stands for a second device: it computes nothing, but whatever comes from elsewhere shows.
"""

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from tiny_engine import kv_bytes, prompt_of, tiny_tokenizer
from tiny_models import saved_model, tiny_network
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.models import loading
from promptlang.runtime.models.batch import Batch
from promptlang.runtime.models.devices import device_names, find_device
from promptlang.runtime.models.layouts import Layouts
from promptlang.runtime.models.lean_model import LeanConfig, LeanModel
from promptlang.runtime.models.loading import LoadedModel, load
from promptlang.runtime.models.logits import KnownLogits, Logits
from promptlang.runtime.models.model import Model, ModelError
from promptlang.runtime.models.transformers_model import TransformersModel
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GenerateTokens, ScoreOptions
from promptlang.runtime.usage import Usage

META = torch.device("meta")


@pytest.fixture
def two_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)


@pytest.fixture
def meta_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "find_device", torch.device)


def test_the_cpu_is_always_there() -> None:
    assert device_names()[0] == "cpu"
    assert find_device("cpu") == torch.device("cpu")


@pytest.mark.usefixtures("two_accelerators")
def test_accelerators_have_numbers() -> None:
    assert device_names() == ["cpu", "cuda:0", "cuda:1"]
    assert find_device("cuda") == torch.device("cuda:0")
    assert find_device("cuda:1") == torch.device("cuda:1")


@pytest.mark.usefixtures("two_accelerators")
def test_cuda_is_preferred_where_it_is() -> None:
    assert find_device("auto") == torch.device("cuda:0")


@pytest.mark.parametrize(
    ("version", "reason"), [(None, "built without CUDA"), ("13.0", "for CUDA 13.0, and found no driver or no device")]
)
def test_where_it_is_not_the_reason_is_given(monkeypatch: pytest.MonkeyPatch, version: str | None, reason: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 0)
    with pytest.raises(ModelError, match=reason):
        find_device("cuda")
    assert find_device("auto") == torch.device("cpu")


@pytest.mark.usefixtures("meta_is_there")
def test_elsewhere_than_on_a_cpu_half_precision_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors.torch, "load_file", load_file)
    monkeypatch.setattr(loading, "self_test", lambda *_: None)
    folder = str(saved_model(tmp_path))
    assert load(folder, device="meta", cache=False).model.dtype is torch.bfloat16
    assert load(folder, device="cpu", cache=False).model.dtype is torch.float32


@pytest.mark.usefixtures("two_accelerators")
@pytest.mark.parametrize("name", ["gpu", "cuda:2", "cuda:x", "mps", "meta", ""])
def test_what_is_not_there_is_refused_and_what_is_there_named(name: str) -> None:
    with pytest.raises(ModelError, match=f"no device {name} here; use one of auto, cpu, cuda:0, cuda:1"):
        load("embedded", device=name)


@pytest.mark.usefixtures("meta_is_there")
def test_four_bits_are_refused_elsewhere() -> None:
    with pytest.raises(ModelError, match="four bits are laid out for the CPU; use bfloat16 on meta"):
        load("embedded", device="meta", dtype="int4")


def load_file(file: Path, device: str, read: Any = safetensors.torch.load_file) -> dict[str, torch.Tensor]:
    """What safetensors does for the devices that it knows."""
    return {name: tensor.to(device) for name, tensor in read(file).items()}


@pytest.mark.usefixtures("meta_is_there")
@pytest.mark.parametrize("model_type", ["llama", "olmo2"])
def test_weights_go_where_they_are_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_type: str) -> None:
    tested = []
    monkeypatch.setattr(safetensors.torch, "load_file", load_file)
    monkeypatch.setattr(loading, "self_test", lambda model, network: tested.append((model.device, network.device)))
    assert load(str(saved_model(tmp_path, model_type)), device="meta", cache=False).model.device == META
    assert tested == [(META, META)]


class OneDevice(TorchDispatchMode):
    """Refuses every operation that touches a tensor of another device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        devices = {leaf.device for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)}
        assert devices <= {META}, f"{func} on {devices}"
        return result


class MetaModel:
    """A model on the device that computes nothing; what it says is zero, on the host."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.weights, self.shape, self.dtype, self.device = model.weights, model.shape, model.dtype, model.device
        self.drafting = None
        self.passes = 0

    def forward(self, batch: Batch, pool: KvPool) -> Logits:
        self.passes += 1
        with OneDevice():
            logits = self._model.forward(batch, pool).whole()
        assert logits.shape == (len(batch.rows), self.shape.vocab_size)
        return KnownLogits(torch.zeros(logits.shape))


FAMILIES: list[tuple[bool, str, dict[str, Any]]] = [
    (True, "llama", {"tie_word_embeddings": True}),
    (True, "mistral", {"sliding_window": 6}),
    (True, "qwen3", {"attention_bias": True}),
    (False, "llama", {}),
    (False, "gemma2", {"head_dim": 16, "sliding_window": 8, "attn_logit_softcapping": 2.0}),
    (False, "mistral", {"sliding_window": 6}),
]


@pytest.mark.parametrize(("is_lean", "model_type", "changes"), FAMILIES)
def test_an_engine_works_on_one_device(is_lean: bool, model_type: str, changes: dict[str, Any]) -> None:
    network = tiny_network(model_type, vocab_size=tiny_tokenizer().vocab_size, **changes).to(META)
    config = LeanConfig.read(network.config.to_dict()) if is_lean else None
    inner: Model = TransformersModel(network) if config is None else LeanModel(config, network.state_dict(), Layouts())
    model = MetaModel(inner)
    engine = Engine(LoadedModel(model, tiny_tokenizer(), model_type), EngineOptions(kv_bytes=kv_bytes(2000)))
    assert {tensor.device for tensor in (*engine.pool.keys, *engine.pool.values)} == {META}
    texts = ["The sea is blue", "The sea is blue because it is deep", "Another"]
    for text in texts:
        engine.submit(GenerateTokens(prompt_of(engine, text), RandomStream(0), Usage(), max_tokens=4))
    engine.submit(ScoreOptions(prompt_of(engine, texts[0]), ((5, 6), (5, 7), (8,)), Usage()))
    while engine.step():
        pass
    assert model.passes > 4
