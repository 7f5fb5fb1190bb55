"""Makes what a program's answers need, beside the loading of the model."""

from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.shapes import Shape
from promptlang.runtime.models import embedded, gguf_files


def compile_ahead(shapes: Sequence[Shape], options: Sequence[tuple[str, ...]], model: str) -> Thread:
    """Begin to compile constraints and to encode options; both are kept, and whoever asks for one again finds it.

    Args:
        shapes: what answers must look like.
        options: the texts of each `select`.
        model: as `--model` names it. Only the embedded model's tokenizer is at hand before the model is.

    Returns:
        The thread that does it, to be joined before the program runs.
    """
    gguf = embedded.find_gguf() if model == "embedded" and (shapes or options) else None
    folder = None if gguf is None else gguf_files.kept_folder(gguf)
    thread = Thread(target=_compile, args=(shapes, options, folder), daemon=True)
    thread.start()
    return thread


def _compile(shapes: Sequence[Shape], options: Sequence[tuple[str, ...]], folder: Path | None) -> None:
    if folder is None:
        return
    from promptlang.grammar.compiler import compile_constraint
    from promptlang.runtime.select import encode_options

    vocabulary = gguf_files.load_tokenizer(folder).vocabulary
    for texts in options:
        encode_options(texts, vocabulary)
    for shape in shapes:
        try:
            compile_constraint(shape, vocabulary)
        except ConstraintError:
            continue  # the answer that needs it will fail with this error, at its place
