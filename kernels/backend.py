"""The seam between models and attention: what computes it, and how, is known below it alone."""

import logging
from collections.abc import Sequence, Set
from typing import Any, Protocol, TypeVar

import torch

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.tiles import Heads as Heads
from promptlang.kernels.tree_attention import TreeAttention

_LOG = logging.getLogger(__name__)

Plan = TypeVar("Plan")


class AttentionBackend(Protocol[Plan]):
    """Keeps keys and values, and attends to them.

    A step is planned once, on the host, for all its layers; each layer then stores and attends without decisions (as
    in Ye et al., "FlashInfer", 2025, arXiv 2501.01005). What a plan is, its backend alone knows. It holds until the
    next is made: a backend may keep plans in buffers of its own on the device, filled by one copy a step.

    The keys and the values of a layer are each a tensor [KV heads, slots, head size], with whatever strides.
    """

    @property
    def device(self) -> torch.device:
        """Where plans, keys and values are."""

    def plan(self, lanes: Sequence[AttentionLane], windows: Set[int | None]) -> Plan:
        """Decide how a step is computed.

        Args:
            lanes: in packed order, sorted by context: only neighbours share.
            windows: of the layers, each once: how many positions a token sees, itself and those just before it
                (Beltagy et al., "Longformer", 2020); None: all.
        """

    def store(
        self,
        plan: Plan,
        new_keys: torch.Tensor,
        new_values: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        """Put the new tokens' keys and values into their slots.

        Args:
            plan: of this step.
            new_keys, new_values: [KV heads, T, head size], T packed rows.
            keys, values: of the layer, by slot.
        """

    def attend(
        self,
        plan: Plan,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scale: float,
        *,
        window: int | None = None,
        cap: float | None = None,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of one layer.

        Args:
            plan: of this step.
            query: [heads, T, head size], T packed rows.
            keys, values: of the layer, by slot; the new tokens' are stored already.
            scale: multiplies the scores.
            window: of the layer, one that was planned for.
            cap: scores s become cap * tanh(s / cap) (Gemma Team, "Gemma 2", 2024).
            sinks: [heads], the score of one more key in each head, whose value is zero (Xiao et al., "Efficient
                streaming language models with attention sinks", 2024).

        Returns:
            [T, heads, head size].
        """


def default_backend(device: torch.device, heads: Heads) -> AttentionBackend[Any]:
    """The fastest that there is for a device.

    Args:
        device: where keys and values are.
        heads: of the model.
    """
    if device.type != "cuda":
        return TreeAttention(device)
    try:
        from promptlang.kernels.triton_attention import TritonAttention
    except ImportError:
        _LOG.warning("there is no Triton, so attention runs in torch's own operations: pip install triton")
        return TreeAttention(device)
    return TritonAttention(device, heads)
