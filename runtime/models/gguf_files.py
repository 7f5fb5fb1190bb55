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

from promptlang.runtime.models.digests import digest_of, is_whole, seal
from promptlang.runtime.models.quiet import quiet_transformers
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings

if TYPE_CHECKING:
    from promptlang.runtime.models.lean_model import Weights

WEIGHTS = "model.safetensors"
SETTINGS = "tokenizer_settings.json"

_SEAL = "contents.json"
"""What a converted folder holds, and how to know it again."""

_FORMAT = 2
"""Part of the cache key; to be raised when what a converted folder holds changes."""


def cache_folder() -> Path:
    """Where converted models are kept: `$XDG_CACHE_HOME/promptlang/models`, under `~/.cache` by default."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "promptlang" / "models"


def kept_folder(gguf: Path) -> Path | None:
    """The converted form of a GGUF file; None where it is not there, or is not as it was when it was written."""
    folder = _folder_of(gguf)
    return folder if is_whole(folder, _SEAL) else None


def _folder_of(gguf: Path) -> Path:
    return cache_folder() / f"{gguf.stem}-{content_key(gguf)}"


def converted(gguf: Path, tell: Callable[[str], None]) -> Path:
    """The folder for a converted GGUF file, by the file's content; converts when it isn't there yet, or is damaged.

    `tell` is told when it does. The folder appears whole or not at all: whoever finishes first renames theirs
    into place.

    Raises:
        OSError: the cache can't be written.
    """
    folder = _folder_of(gguf)
    if not is_whole(folder, _SEAL):
        tell("converting the model: once, about half a minute for a small one")
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = _partial(folder.parent)
        try:
            convert(gguf, partial)
            seal(partial, _SEAL)
            _put(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    _remove_abandoned(folder.parent)
    return folder


_PARTIAL = "partial-"


def _partial(models: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=models))


def _put(partial: Path, folder: Path) -> None:
    """Rename a folder into place, unless another whole one is there by now; a damaged one goes."""
    if is_whole(folder, _SEAL):
        return
    if folder.exists():
        damaged = _partial(folder.parent)
        folder.rename(damaged / folder.name)
        shutil.rmtree(damaged, ignore_errors=True)
    try:
        partial.rename(folder)
    except OSError:
        if not is_whole(folder, _SEAL):
            raise


def _remove_abandoned(models: Path) -> None:
    """Remove what runs left that were killed while converting: nothing in it was written to for an hour."""
    for partial in models.glob(f"{_PARTIAL}*"):
        if time.time() - _last_written(partial) > 3600:
            shutil.rmtree(partial, ignore_errors=True)


def _last_written(partial: Path) -> float:
    """When a folder or a file in it was last written to, in seconds; now, where it is just being renamed or removed."""
    try:
        return max(place.stat().st_mtime for place in (partial, *partial.iterdir()))
    except OSError:
        return time.time()


def content_key(*files: Path) -> str:
    """Names files by all they hold; they are read only where they were not yet, or were touched since.

    Raises:
        OSError: one can't be read.
    """
    kept = cache_folder().parent / "digests.json"
    digests = " ".join(digest_of(file, kept) for file in files)
    return hashlib.blake2b(f"{_FORMAT} {digests}".encode(), digest_size=12).hexdigest()


def convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF model as config, float32 safetensors and a tokenizer that loads without transformers.

    Raises:
        ModelError: the lean path would not compute what transformers computes.
        OSError: the folder can't be written.
    """
    import torch
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
    _save(weights, folder / WEIGHTS)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_tokenizer(tokenizer, folder, network.get_output_embeddings().weight.shape[0])


def _save(weights: "Weights", file: Path) -> None:
    """Write weights; a full disk is an `OSError`, as it is for every other file."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, file)
    except SafetensorError as error:
        raise OSError(str(error)) from error


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
