"""How a session's model is kept and run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from promptlang.session.template_options import is_own


@dataclass(frozen=True)
class Settings:
    """Which model, and how its engine runs.

    Attributes:
        model: `embedded`, a Hugging Face hub id, a folder with safetensors, or a `.gguf` file.
        device: where it runs: `auto`, `cpu`, `cuda`, `cuda:1` ...
        dtype: how weights are kept: `float32`, `bfloat16`, `float16` or `int4`; None is `float32` on a CPU and
            `bfloat16` elsewhere.
        deterministic: never choose the layout of weights by how many sequences run.
        kv_bytes: memory for the KV cache, in bytes; None measures the machine.
        shares: False computes every prompt from its start.
        speculates: False computes no token before it is written; nor does a deterministic session.
        template_options: more that the model's chat template may name, such as `enable_thinking`.

    Raises:
        OpeningError: an option has a name that the template gets from us.
    """

    model: str = "embedded"
    device: str = "auto"
    dtype: str | None = None
    deterministic: bool = False
    kv_bytes: int | None = None
    shares: bool = True
    speculates: bool = True
    template_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = next(filter(is_own, self.template_options), None)
        if own is not None:
            raise OpeningError(
                f"the template option `{own}` can't be set: the chat template has that name from promptlang, as it has "
                "the messages and the special tokens"
            )


class OpeningError(Exception):
    """A model that is not there, or can't be run as its settings ask for; `str()` says why."""
