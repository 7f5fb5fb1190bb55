"""The device that a model, its keys and values and its batches live on, by name."""

import torch

from promptlang.runtime.models.model import ModelError


def device_names() -> list[str]:
    """What this machine has, and this torch can use: `cpu` first, then each accelerator, such as `cuda:0`."""
    accelerator = torch.accelerator.current_accelerator()
    count = torch.accelerator.device_count()
    return ["cpu", *(f"{accelerator.type}:{index}" for index in range(count) if accelerator is not None)]


def find_device(name: str) -> torch.device:
    """A device by its name; without a number, the first of its kind.

    Raises:
        ModelError: there is none of that name.
    """
    there = device_names()
    for known in (name, f"{name}:0"):
        if known in there:
            return torch.device(known)
    raise ModelError(f"there is no device {name} here; use one of {', '.join(there)}")
