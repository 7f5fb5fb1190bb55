"""A guard at load: our packed, cached computation must give what the model gives by itself."""

from typing import Any

import numpy as np
import torch

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.slots import SlotRun
from promptlang.runtime.models.batch import build_batch
from promptlang.runtime.models.model import Model, ModelError, attention_of

TOLERANCE = {torch.float32: 1e-3, torch.float16: 3e-2, torch.bfloat16: 2e-1}
"""Largest difference between logits, as a fraction of the largest logit."""

_PREFIX, _LEFT, _RIGHT = 4, 3, 2


def self_test(model: Model, network: Any) -> None:
    """Compare a shared prefix and its two forks with the network's own eager forward over each whole
    sequence.

    An architecture that keeps something in its cache that ours lacks would be wrong in silence; this makes it
    loud.

    Args:
        model: to be tested.
        network: the transformers network it must agree with.

    Raises:
        ModelError: they differ.
    """
    tokens = (torch.arange(_PREFIX + _LEFT + _RIGHT) * 7919 + 11) % model.shape.vocab_size
    prefix, left, right = torch.split_with_sizes(tokens, [_PREFIX, _LEFT, _RIGHT])
    ours = _forked(model, prefix, left, right)
    theirs = torch.cat([_plain(network, prefix, left), _plain(network, prefix, right)])
    error = float((ours - theirs).abs().max() / theirs.abs().max())
    if not error <= TOLERANCE[model.dtype]:
        raise ModelError(
            f"{type(network).__name__} gives other logits here than by itself (off by {error:.1%}): "
            "its attention is not plain; use another model"
        )


def _forked(model: Model, prefix: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Logits of both forks, the prefix computed in a pass before them."""
    pool = KvPool(model.shape, _PREFIX + _LEFT + _RIGHT, model.dtype, model.device)
    shared = (SlotRun(0, _PREFIX),)
    passes = [
        [_lane(prefix, 0, 0, ())],
        [_lane(left, _PREFIX, _PREFIX, shared), _lane(right, _PREFIX, _PREFIX + _LEFT, shared)],
    ]
    backend = attention_of(model)
    logits = [model.forward(build_batch(lanes, backend, model.shape.windows), pool).whole() for lanes in passes]
    return logits[-1]


def _lane(tokens: torch.Tensor, start: int, slot: int, context: tuple[SlotRun, ...]) -> Lane:
    slots = np.arange(slot, slot + len(tokens), dtype=np.int32)
    return Lane(tokens.tolist(), start, slots, context, wants="all")


@torch.inference_mode()
def _plain(network: Any, prefix: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
    ours = network.config._attn_implementation
    network.set_attn_implementation("eager")
    tokens = torch.cat([prefix, rest])[None].to(network.device)
    logits: torch.Tensor = network(tokens, use_cache=False).logits
    network.set_attn_implementation(ours)
    return logits[0, len(prefix) :].float()
