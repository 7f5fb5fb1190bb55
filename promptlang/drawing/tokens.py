"""Counts tokens as the embedded model does, without loading it."""

from promptlang.drawing.picture import Count


def counted(tokens: int) -> str:
    """A number of tokens, in words."""
    return "1 token" if tokens == 1 else f"{tokens} tokens"


def token_counter() -> Count | None:
    """Counts the tokens of a text; None where the embedded model is not installed, or was never run."""
    from promptlang.runtime.models import embedded, gguf_files

    gguf = embedded.find_gguf()
    folder = None if gguf is None else gguf_files.kept_folder(gguf)
    if folder is None:
        return None
    tokenizer = gguf_files.load_tokenizer(folder)
    return lambda text: len(tokenizer.encode(text))
