"""How much memory this machine has to give."""

import os
from pathlib import Path

ASSUMED_BYTES = 4 << 30
"""Where the system says nothing of its memory: little, so that what is measured by it surely fits."""


def available_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes of memory free for use.

    Linux says what is free and what caches would give back. Elsewhere half of all memory is taken for free; where the
    system doesn't tell even that (Windows), `ASSUMED_BYTES` are.

    Args:
        meminfo: Linux's file of figures.
    """
    if meminfo.exists():
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return ASSUMED_BYTES
