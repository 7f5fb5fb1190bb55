"""How much memory there is to give."""

import psutil
import torch


def available_memory(device: torch.device) -> int:
    """Bytes of a device's memory free for use, with what caches of the system would give back."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free
    available: int = psutil.virtual_memory().available
    return available
