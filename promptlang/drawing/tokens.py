"""Counts tokens as the embedded model does, without loading it."""

from promptlang.drawing.picture import Count


def token_counter() -> Count | None:
    """Counts the tokens of a text; None where the embedded model is not installed, or was never run."""
    from promptlang.runtime import embedded

    gguf = embedded.find_gguf()
    if gguf is None or not embedded.folder_of(gguf).is_dir():
        return None
    tokenizer = embedded.load_tokenizer(embedded.folder_of(gguf))
    return lambda text: len(tokenizer.encode(text))
