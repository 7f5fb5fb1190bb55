"""The device that a model, its keys and values and its batches live on, by name."""

import torch

from promptlang.runtime.models.model import ModelError


def device_names() -> list[str]:
    """What this machine has, and this torch can use: `cpu` first, then each accelerator, such as `cuda:0`."""
    accelerator = torch.accelerator.current_accelerator()
    count = torch.accelerator.device_count()
    return ["cpu", *(f"{accelerator.type}:{index}" for index in range(count) if accelerator is not None)]


def find_device(name: str) -> torch.device:
    """A device by its name; without a number, the first of its kind. `auto` is the first that CUDA has, else the CPU.

    Raises:
        ModelError: there is none of that name.
    """
    there = device_names()
    if name == "auto":
        return torch.device(next((known for known in there if known.startswith("cuda")), "cpu"))
    for known in (name, f"{name}:0"):
        if known in there:
            return torch.device(known)
    raise ModelError(f"there is no device {name} here; use one of auto, {', '.join(there)}{_why_no_cuda(name)}")


def _why_no_cuda(name: str) -> str:
    """What keeps this torch from CUDA, where that is asked for."""
    if not name.startswith("cuda") or torch.cuda.is_available():
        return ""
    if torch.version.cuda is None:
        return ". This torch was built without CUDA: install another build (https://pytorch.org)"
    return f". This torch is for CUDA {torch.version.cuda}, and found no driver or no device"
