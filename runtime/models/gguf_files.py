"""GGUF files: converted once into config, safetensors and a tokenizer that loads without transformers, and kept.

Importing this does not load torch, so that whoever wants nothing but the tokenizer need not wait for it.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers

from promptlang.runtime.models.quiet import quiet_transformers
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings

if TYPE_CHECKING:
    from promptlang.runtime.models.lean_model import Weights

WEIGHTS = "model.safetensors"
SETTINGS = "tokenizer_settings.json"

_FORMAT = 1
"""Part of the cache key; to be raised when what a converted folder holds changes."""


def cache_folder() -> Path:
    """Where converted models are kept: `$XDG_CACHE_HOME/promptlang/models`, under `~/.cache` by default."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "promptlang" / "models"


def folder_of(gguf: Path) -> Path:
    """Where the converted form of a GGUF file is kept; it need not be there yet."""
    return cache_folder() / f"{gguf.stem}-{content_key(gguf)}"


def converted(gguf: Path, tell: Callable[[str], None]) -> Path:
    """The folder for a converted GGUF file, by the file's content; converts when it isn't there yet.

    `tell` is told when it does. The folder appears whole or not at all: whoever finishes first renames theirs
    into place.

    Raises:
        OSError: the cache can't be written.
    """
    folder = folder_of(gguf)
    if not folder.is_dir():
        tell("converting the model: once, about half a minute for a small one")
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder.parent)
        partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
        try:
            convert(gguf, partial)
            _rename(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


_PARTIAL = "partial-"


def _rename(partial: Path, folder: Path) -> None:
    try:
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _remove_abandoned(models: Path) -> None:
    """Left by runs that were killed while converting."""
    for partial in models.glob(f"{_PARTIAL}*"):
        if time.time() - partial.stat().st_mtime > 3600:
            shutil.rmtree(partial, ignore_errors=True)


def content_key(*files: Path) -> str:
    """Hash of each file's size and of 64 pieces spread over it: quick, and any retrained weight shows."""
    digest = hashlib.blake2b(str(_FORMAT).encode(), digest_size=12)
    for file in files:
        size = file.stat().st_size
        digest.update(f" {size}".encode())
        with file.open("rb") as stream:
            for piece in range(64):
                stream.seek(size * piece // 64)
                digest.update(stream.read(16384))
    return digest.hexdigest()


def convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF model as config, float32 safetensors and a tokenizer that loads without transformers.

    Raises:
        ModelError: the lean path would not compute what transformers computes.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with quiet_transformers():
        network = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    weights = network.state_dict()
    if network.config.tie_word_embeddings:
        del weights["lm_head.weight"]
    config = network.config.to_dict()
    config.pop("quantization_config", None)
    _check(config, weights, network)
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, folder / WEIGHTS)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_tokenizer(tokenizer, folder, network.get_output_embeddings().weight.shape[0])


def _check(config: dict[str, Any], weights: "Weights", network: Any) -> None:
    """What later starts load without transformers must compute what transformers does."""
    from promptlang.runtime.models.lean_model import LeanConfig, LeanModel
    from promptlang.runtime.models.self_test import self_test

    lean = LeanConfig.read(config)
    if lean is not None:
        self_test(LeanModel(lean, weights), network)


def save_tokenizer(tokenizer: Any, folder: Path, vocab_size: int) -> None:
    """Keep what `load_tokenizer` needs."""
    (folder / "tokenizer.json").write_text(tokenizer.backend_tokenizer.to_str(), encoding="utf-8")
    settings = asdict(TokenizerSettings.from_transformers(tokenizer, vocab_size))
    (folder / SETTINGS).write_text(json.dumps(settings, indent=1), encoding="utf-8")


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a converted model."""
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    settings["eos_ids"] = tuple(settings["eos_ids"])
    backend = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return Tokenizer(backend, TokenizerSettings(**settings))
