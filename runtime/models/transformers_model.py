"""What runs any plain-attention model of the transformers library."""

from collections.abc import Mapping
from typing import Any

import torch

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.models.batch import Batch
from promptlang.runtime.models.logits import KnownLogits, Logits
from promptlang.runtime.models.model import ModelError
from promptlang.runtime.models.shape import ModelShape, read_windows

ATTENTION = "promptlang_tree"
"""The name under which transformers finds our attention."""


class TransformersModel:
    """Any causal language model of the transformers library whose layers all attend plainly.

    Args:
        network: loaded with `attn_implementation=ATTENTION`.

    Raises:
        ModelError: the architecture has something that tree attention doesn't do.
    """

    def __init__(self, network: Any) -> None:
        config = network.config.get_text_config()
        _refuse_unsupported(network, config)
        heads = config.num_attention_heads
        self.shape = ModelShape(
            layers=config.num_hidden_layers,
            heads=heads,
            kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            head_size=getattr(config, "head_dim", None) or config.hidden_size // heads,
            vocab_size=network.get_output_embeddings().weight.shape[0],
            max_positions=config.max_position_embeddings,
            windows=read_windows(config.to_dict(), config.max_position_embeddings),
        )
        self.dtype: torch.dtype = network.dtype
        self.device: torch.device = network.device
        self.drafting = None
        self.weights = str(network.dtype).removeprefix("torch.")
        self.network = network.eval()

    @torch.inference_mode()
    def forward(self, batch: Batch, pool: KvPool) -> Logits:
        """See `Model.forward`."""
        answer = self.network(
            input_ids=batch.tokens[None],
            position_ids=batch.positions[None],
            use_cache=False,
            logits_to_keep=batch.rows,
            tree_batch=batch,
            kv_pool=pool,
            model_shape=self.shape,
        )
        return KnownLogits(answer.logits[0].float())


def attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: None,
    *,
    scaling: float,
    tree_batch: Batch,
    kv_pool: KvPool,
    model_shape: ModelShape,
    **asked: Any,
) -> tuple[torch.Tensor, None]:
    """What transformers calls in place of its own attention.

    Args:
        module: the attention layer.
        query: [1, heads, T, head size]; `key`, `value`: [1, KV heads, T, head size]; positions are already
            applied.
        mask: unused: the plan says who sees whom.
        scaling: of the scores.
        tree_batch, kv_pool, model_shape: passed through the model by `TransformersModel.forward`.
        asked: what else the layer wants of an attention.

    Returns:
        [1, T, heads, head size], and no weights.
    """
    layer = module.layer_idx
    _refuse_unsupported_arguments(module, model_shape, asked)
    output = tree_batch.attend(
        kv_pool,
        layer,
        query[0],
        key[0],
        value[0],
        scaling,
        window=model_shape.window(layer),
        cap=asked.get("softcap"),
        sinks=asked.get("s_aux"),
    )
    return output[None], None


def _refuse_unsupported_arguments(module: Any, shape: ModelShape, asked: Mapping[str, Any]) -> None:
    name = type(module).__name__
    if asked.get("position_bias") is not None:
        raise ModelError(f"{name} needs a position bias, which promptlang does not support; use another model")
    window = asked.get("sliding_window")
    if window is not None and window < shape.max_positions and window != shape.window(module.layer_idx):
        raise ModelError(
            f"{name} attends through a sliding window of {window} tokens, but its config says otherwise; "
            "use another model"
        )


def _refuse_unsupported(network: Any, config: Any) -> None:
    name = type(network).__name__
    if not getattr(network, "_supports_attention_backend", False):
        raise ModelError(f"{name} does not let its attention be replaced; use a model with plain attention")
    for kind in set(getattr(config, "layer_types", None) or ["full_attention"]):
        if kind not in ("full_attention", "sliding_attention"):
            raise ModelError(f"{name} has {kind} layers, which promptlang does not support; use one without")


def register_attention() -> None:
    """Tell transformers about our attention. It makes no mask for a name that it has no mask for."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, attention)
