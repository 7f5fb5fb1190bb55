"""Keeps other libraries off the user's terminal while they load."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without transformers' warnings and progress bars: our own messages say what matters."""
    from transformers.utils import logging

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    level = logging.get_verbosity()
    had_bar = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        # Some bars (the GGUF one) have no switch.
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if had_bar:
            logging.enable_progress_bar()
