"""The Llama family without a framework around it: one file that reads top to bottom.

    embedding ─→ [ norm → attention → + → norm → gated MLP → + ] × layers ─→ norm → head

Fewer and larger operations than the general path: queries, keys and values are one product, gate and up are
one, and queries and keys are rotated together. Touvron et al., "Llama: open and efficient foundation language
models", 2023.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import embedding, silu

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.models.batch import Batch
from promptlang.runtime.models.layouts import Layouts
from promptlang.runtime.models.linear import MakeProduct, Product
from promptlang.runtime.models.logits import HeadLogits, Logits
from promptlang.runtime.models.model import Model
from promptlang.runtime.models.shape import ModelShape, read_windows

Weights = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class LeanConfig:
    """A model's dimensions and constants.

    Attributes:
        shape: dimensions that the engine cares for.
        hidden_size: width of the residual stream.
        epsilon: of the norms.
        rotation: rotary position embedding: its parameters as in a config's `rope_parameters`.
        tied: whether the head's weight is the embedding's.
    """

    shape: ModelShape
    hidden_size: int
    epsilon: float
    rotation: Mapping[str, Any]
    tied: bool

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "LeanConfig | None":
        """Understand a config.json; None where it asks for anything that this file doesn't do."""
        rotation = config.get("rope_parameters") or {
            "rope_theta": config.get("rope_theta", 10000.0),
            **(config.get("rope_scaling") or {}),
        }
        heads = config.get("num_attention_heads", 0)
        is_known = (
            config.get("model_type") in ("llama", "mistral", "qwen2", "qwen3")
            and config.get("hidden_act", "silu") == "silu"
            and rotation.get("rope_type", rotation.get("type", "default")) in ("default", "llama3")
            and _says_its_windows(config)
            and "quantization_config" not in config
        )
        if not is_known:
            return None
        return cls(
            shape=ModelShape(
                layers=config["num_hidden_layers"],
                heads=heads,
                kv_heads=config.get("num_key_value_heads") or heads,
                head_size=config.get("head_dim") or config["hidden_size"] // heads,
                vocab_size=config["vocab_size"],
                max_positions=config["max_position_embeddings"],
                windows=read_windows(config, config["max_position_embeddings"]),
            ),
            hidden_size=config["hidden_size"],
            epsilon=config.get("rms_norm_eps", 1e-6),
            rotation=rotation,
            tied=config.get("tie_word_embeddings", False),
        )


class LeanModel:
    """A Llama-like model; see `Model`.

    Args:
        config: its dimensions.
        weights: by the names that transformers gives them.
        layouts: how weights are kept, and what is computed in.
    """

    drafting: Model | None

    def __init__(self, config: LeanConfig, weights: Weights, layouts: Layouts | None = None) -> None:
        layouts = layouts or Layouts()
        self.shape = config.shape
        self.dtype = layouts.dtype
        self._config = config
        self._embedding = weights["model.embed_tokens.weight"].to(self.dtype)
        self.device = self._embedding.device
        makers = [make for make in (layouts.for_layers(weights), layouts.for_drafts(weights)) if make is not None]
        self._layers = [
            _Layer(config, index, _below(weights, f"model.layers.{index}."), makers)
            for index in range(config.shape.layers)
        ]
        self._norm = _Norm(weights["model.norm.weight"], config.epsilon)
        head = self._embedding if config.tied else weights["lm_head.weight"].to(self.dtype)
        self._head = layouts.for_head(head, has_plain=config.tied)
        self._frequencies = _frequencies(config).to(self.device)
        layouts.settle()
        self.weights = layouts.description
        self.drafting = _DraftingModel(self) if makers[1:] else None

    def forward(self, batch: Batch, pool: KvPool) -> Logits:
        """See `Model.forward`."""
        return self.forward_with(_WHOLE, batch, pool)

    @torch.inference_mode()
    def forward_with(self, form: int, batch: Batch, pool: KvPool) -> Logits:
        """`forward` with the layers' weights in one of the forms that are kept."""
        step = _Step(batch, pool, form, *self._rotation(batch.positions))
        x = embedding(batch.tokens, self._embedding)
        for layer in self._layers:
            x = layer.forward(x, step)
        weight = self._embedding if self._config.tied else None
        return HeadLogits(self._norm(x[batch.rows]), self._head, weight)

    def _rotation(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosine and signed sine of every position's angles.

        Rotating (a, b) gives (a cos - b sin, b cos + a sin). With the halves of a head swapped, that is one
        multiplication and one multiply-add, if the sine is negative in the first half.
        """
        angles = positions[:, None].float() * self._frequencies
        cosine, sine = angles.cos(), angles.sin()
        return torch.cat([cosine, cosine], -1).to(self.dtype), torch.cat([-sine, sine], -1).to(self.dtype)


_WHOLE, _DRAFT = 0, 1
"""The forms of the layers' weights: as they are, and in four bits."""


class _DraftingModel:
    """A model with its layers' weights in four bits, over the same keys and values; see `Model.drafting`. With its head
    in four bits too, every sixth token would be another one.

    Args:
        model: whose.
    """

    weights = "four bits for drafts"
    drafting = None

    def __init__(self, model: LeanModel) -> None:
        self._model = model
        self.shape, self.dtype, self.device = model.shape, model.dtype, model.device

    def forward(self, batch: Batch, pool: KvPool) -> Logits:
        """See `Model.forward`."""
        return self._model.forward_with(_DRAFT, batch, pool)


@dataclass(frozen=True)
class _Step:
    """What all layers of one pass need; `cosine` and `sine` are [T, head size]."""

    batch: Batch
    pool: KvPool
    form: int
    cosine: torch.Tensor
    sine: torch.Tensor


class _Norm:
    """Division by the root mean square (Zhang and Sennrich, 2019), over the last dimension.

    In four operations, where torch's own takes a dozen on a CPU: with n elements, x / sqrt(mean(x²) + epsilon) is
    sqrt(n) x / hypot(|x|, sqrt(n epsilon)).

    Args:
        weight: [..., n], multiplies what is divided.
        epsilon: added to the mean square.
    """

    def __init__(self, weight: torch.Tensor, epsilon: float) -> None:
        root = math.sqrt(weight.shape[-1])
        self._weight = weight.float() * root
        self._least = torch.tensor(root * math.sqrt(epsilon), device=weight.device)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[..., n] to the same."""
        size = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        return (x / torch.hypot(size, self._least) * self._weight).to(x.dtype)


class _Layer:
    """One layer; each product in as many forms as there are `makers`."""

    def __init__(self, config: LeanConfig, index: int, weights: Weights, makers: Sequence[MakeProduct]) -> None:
        def fused(*names: str) -> list[Product]:
            """Several products with one input as one."""
            biases = [weights[f"{name}.bias"] for name in names if f"{name}.bias" in weights]
            weight = torch.cat([weights[f"{name}.weight"] for name in names])
            return [make(weight, torch.cat(biases) if biases else None) for make in makers]

        self._shape = config.shape
        self._index = index
        self._attention_norm = _Norm(weights["input_layernorm.weight"], config.epsilon)
        self._queries_keys_values = fused("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        self._head_norm = _head_norm(config, weights)
        self._output = fused("self_attn.o_proj")
        self._mlp_norm = _Norm(weights["post_attention_layernorm.weight"], config.epsilon)
        self._gate_up = fused("mlp.gate_proj", "mlp.up_proj")
        self._down = fused("mlp.down_proj")

    def forward(self, x: torch.Tensor, step: _Step) -> torch.Tensor:
        """[T, hidden size] to the same."""
        x = x + self._attend(self._attention_norm(x), step)
        gate, up = self._gate_up[step.form](self._mlp_norm(x)).chunk(2, dim=-1)
        return x + self._down[step.form](silu(gate) * up)

    def _attend(self, x: torch.Tensor, step: _Step) -> torch.Tensor:
        shape, index = self._shape, self._index
        heads = self._queries_keys_values[step.form](x).view(x.shape[0], -1, shape.head_size).transpose(0, 1)
        straight, values = torch.split_with_sizes(heads, [shape.heads + shape.kv_heads, shape.kv_heads])
        if self._head_norm is not None:
            straight = self._head_norm(straight)
        swapped = straight.roll(shape.head_size // 2, -1)
        turned = torch.addcmul(straight * step.cosine, swapped, step.sine)
        queries, keys = torch.split_with_sizes(turned, [shape.heads, shape.kv_heads])
        attended = step.batch.attend(
            step.pool, index, queries, keys, values, shape.head_size**-0.5, window=shape.window(index)
        )
        return self._output[step.form](attended.reshape(x.shape[0], -1))


def _says_its_windows(config: Mapping[str, Any]) -> bool:
    """Whether a config says which layers slide, or leaves it to transformers to fill in."""
    if config["model_type"] == "mistral":
        return "sliding_window" in config
    return not config.get("use_sliding_window") or bool(config.get("layer_types"))


def _below(weights: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}


def _head_norm(config: LeanConfig, weights: Weights) -> _Norm | None:
    """Qwen 3's norms of queries and keys as one, [heads + KV heads, 1, head size]; None in other families."""
    if "self_attn.q_norm.weight" not in weights:
        return None
    queries = weights["self_attn.q_norm.weight"].expand(config.shape.heads, 1, -1)
    keys = weights["self_attn.k_norm.weight"].expand(config.shape.kv_heads, 1, -1)
    return _Norm(torch.cat([queries, keys]), config.epsilon)


def _frequencies(config: LeanConfig) -> torch.Tensor:
    """Angle a position for each pair of a head, float32 [head size / 2] (Su et al., "RoFormer", 2021)."""
    size, rotation = config.shape.head_size, config.rotation
    frequencies: torch.Tensor = rotation["rope_theta"] ** -(torch.arange(0, size, 2).float() / size)
    if rotation.get("rope_type", rotation.get("type", "default")) == "default":
        return frequencies
    return _stretched(frequencies, rotation)


def _stretched(frequencies: torch.Tensor, rotation: Mapping[str, Any]) -> torch.Tensor:
    """Llama 3's way to a longer context: slow angles are slowed, fast ones kept, those between blended."""
    low, high = rotation["low_freq_factor"], rotation["high_freq_factor"]
    turns = rotation["original_max_position_embeddings"] * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return torch.lerp(frequencies / rotation["factor"], frequencies, kept)
