"""How a session's model is kept and run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Which model, and how its engine runs.

    Attributes:
        model: `embedded`, a Hugging Face hub id, a folder with safetensors, or a `.gguf` file.
        device: where it runs: `cpu`, `cuda`, `cuda:1` ...
        dtype: how weights are kept: `float32`, `bfloat16`, `float16` or `int4`.
        deterministic: never choose the layout of weights by how many sequences run.
        kv_bytes: memory for the KV cache, in bytes; None measures the machine.
        shares: False computes every prompt from its start.
    """

    model: str = "embedded"
    device: str = "cpu"
    dtype: str = "float32"
    deterministic: bool = False
    kv_bytes: int | None = None
    shares: bool = True


class OpeningError(Exception):
    """A model that is not there, or can't be run as its settings ask for; `str()` says why."""
