"""Weights in four bits, laid out once on a machine and kept in a file: rounding them takes longer than reading them."""

import logging
import os
from pathlib import Path

import torch

from promptlang.runtime.models.linear import FourBitWeight

_LOG = logging.getLogger(__name__)


class FourBitWeights:
    """The weights of one model, in the order in which they are asked for.

    Args:
        file: where they are kept; None keeps none. Its name stands for the model and for the processor. One that is
            damaged, or holds other weights, is written anew.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._kept = {} if file is None else _read(file)
        self._weights: dict[str, torch.Tensor] = {}
        self._is_new = False

    def of(self, weight: torch.Tensor) -> FourBitWeight:
        """See `FourBitWeight.of`."""
        name = f"{len(self._weights) // 2} {tuple(weight.shape)}"
        names = f"{name} packed", f"{name} scales"
        if all(name in self._kept for name in names):
            found = FourBitWeight(*(self._kept[name] for name in names))
        else:
            found = FourBitWeight.of(weight)
            self._is_new = True
        self._weights.update(zip(names, found, strict=True))
        return found

    def keep(self) -> None:
        """Write down what wasn't there, once all were asked for."""
        if self._file is None or not self._is_new:
            return
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        partial = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            save_file(self._weights, partial)
            partial.replace(self._file)
        except (OSError, SafetensorError) as error:
            _LOG.warning("weights in four bits can't be kept: %s", error)
            partial.unlink(missing_ok=True)


def _read(file: Path) -> dict[str, torch.Tensor]:
    """What a file holds; nothing where that can't be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(file)
    except (OSError, SafetensorError):
        return {}
