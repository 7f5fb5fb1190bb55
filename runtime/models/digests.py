"""Digests of whole files: computed once, and believed as long as the file system says that nothing changed."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Known:
    """A file as it was when it was read.

    Attributes:
        size: in bytes.
        modified: when it was last written, in nanoseconds.
        inode: which of its file system's it is; a file that takes its place has another.
        digest: of its whole content, in hexadecimal.
    """

    size: int
    modified: int
    inode: int
    digest: str

    @classmethod
    def read(cls, file: Path) -> "Known":
        """Read a file, all of it.

        Raises:
            OSError: it can't be read.
        """
        with file.open("rb") as stream:
            now = os.fstat(stream.fileno())
            digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        return cls(now.st_size, now.st_mtime_ns, now.st_ino, digest)

    def is_untouched(self, file: Path) -> bool:
        """Whether a file is as it was, as far as the file system says; it is not read."""
        now = file.stat()
        return (self.size, self.modified, self.inode) == (now.st_size, now.st_mtime_ns, now.st_ino)


def digest_of(file: Path, kept: Path) -> str:
    """The digest of a file.

    Args:
        file: of any size; read only where it is not known, or was touched.
        kept: a JSON file of what is known. One that can't be read is nothing, one that can't be written stays as it is.

    Raises:
        OSError: the file can't be read.
    """
    place = str(file.resolve())
    known = read_known(kept)
    if place not in known or not known[place].is_untouched(file):
        known[place] = Known.read(file)
        _keep(kept, known)
    return known[place].digest


def _keep(kept: Path, known: Mapping[str, Known]) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_known(kept, known)
    except OSError:
        return  # the next start reads the file again: slower, and as right


def seal(folder: Path, name: str) -> None:
    """Write down what a folder holds.

    Args:
        folder: its files are complete.
        name: of the JSON file that takes it, in the folder.

    Raises:
        OSError: a file can't be read, or the one that takes it can't be written.
    """
    write_known(folder / name, {file.name: Known.read(file) for file in _files(folder) if file.name != name})


def is_whole(folder: Path, name: str) -> bool:
    """Whether a folder holds what it held when it was sealed. Files that were touched since are read."""
    known = read_known(folder / name)
    return bool(known) and all(_fits(folder / file, one) for file, one in known.items())


def _fits(file: Path, known: Known) -> bool:
    try:
        return known.is_untouched(file) or (
            file.stat().st_size == known.size and Known.read(file).digest == known.digest
        )
    except OSError:
        return False


def _files(folder: Path) -> Iterable[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


def read_known(file: Path) -> dict[str, Known]:
    """What is known of files, by name; nothing where that can't be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {name: Known(**one) for name, one in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write_known(file: Path, known: Mapping[str, Known]) -> None:
    """Write what is known of files, whole or not at all.

    Raises:
        OSError: it can't be written.
    """
    partial = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps({name: asdict(one) for name, one in known.items()}, indent=1), encoding="utf-8")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
