"""Models: one interface, and what is said where one can't be used."""

from typing import Any, Protocol

import torch

from promptlang.kernels.backend import AttentionBackend, Heads, default_backend
from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.models.batch import Batch
from promptlang.runtime.models.logits import Logits
from promptlang.runtime.models.shape import ModelShape


class ModelError(Exception):
    """A model that can't be used: `str()` says what is wrong and what helps."""


class Model(Protocol):
    """Computes logits for a packed batch, with keys and values in a pool.

    Attributes:
        shape: its dimensions.
        dtype: of its activations; the pool's keys and values too.
        device: where it lives.
        weights: what its weights are kept in, for reports.
        drafting: says about the same of the same keys and values in less time; None where there is no such model.
    """

    @property
    def weights(self) -> str: ...

    @property
    def drafting(self) -> "Model | None": ...

    @property
    def shape(self) -> ModelShape: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...

    def forward(self, batch: Batch, pool: KvPool) -> Logits:
        """Compute a batch: write its keys and values to the pool and give the logits of the wanted rows."""


def attention_of(model: Model) -> AttentionBackend[Any]:
    """What computes a model's attention, where nothing else is asked for."""
    shape = model.shape
    return default_backend(model.device, Heads(shape.heads // shape.kv_heads, shape.head_size, model.dtype))
