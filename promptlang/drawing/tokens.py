"""Counts tokens as the embedded model does, without loading it."""

from promptlang.drawing.picture import Count


def counted(tokens: int) -> str:
    """A number of tokens, in words."""
    return "1 token" if tokens == 1 else f"{tokens} tokens"


def token_counter() -> Count | None:
    """Counts the tokens of a text; None where the embedded model is not installed, or was never run."""
    from promptlang.runtime.models import embedded, gguf_files

    gguf = embedded.find_gguf()
    if gguf is None or not gguf_files.folder_of(gguf).is_dir():
        return None
    tokenizer = gguf_files.load_tokenizer(gguf_files.folder_of(gguf))
    return lambda text: len(tokenizer.encode(text))
