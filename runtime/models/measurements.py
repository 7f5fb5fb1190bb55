"""What was measured about this machine: once, and kept in a folder."""

import json
import logging
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

_LOG = logging.getLogger(__name__)

Measured = TypeVar("Measured")


class Measurements:
    """Files of measurements, each a JSON object of values by what they depend on.

    Args:
        folder: where they are; None keeps nothing, so that each start measures.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def kept(self, name: str, what: str, measure: Callable[[], Measured], is_valid: Callable[[Any], bool]) -> Measured:
        """What `measure` gives, from a file where it is there already. A file that is damaged is written anew; where it
        can't be written, the next start measures again.

        Args:
            name: of the file.
            what: all that the value depends on beside the machine.
            measure: gives a value that JSON can hold.
            is_valid: whether a value from the file can be used.
        """
        if self._folder is None:
            return measure()
        file = self._folder / f"{name}.json"
        key = f"{_machine()}, {what}"
        values = _read(file)
        if not is_valid(values.get(key)):
            values[key] = measure()
            _write(file, values)
        value: Measured = values[key]
        return value


def _machine() -> str:
    capability = torch.backends.cpu.get_cpu_capability()
    return (
        f"{platform.node()} {platform.machine()} {capability}, {torch.get_num_threads()} threads, "
        f"torch {torch.__version__}"
    )


def _read(file: Path) -> dict[str, Any]:
    """What was measured before; nothing where that can't be read."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _write(file: Path, values: dict[str, Any]) -> None:
    """Whole or not at all."""
    partial = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(values, indent=1), encoding="utf-8")
        partial.replace(file)
    except OSError as error:
        _LOG.warning("what is measured can't be kept: %s", error)
        partial.unlink(missing_ok=True)
