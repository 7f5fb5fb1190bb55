"""`promptlang` on the tiny random model, which loads in no time: `python tests/helpers/tiny_command.py run ...`."""

from tiny_engine import tiny_loaded

import promptlang.session.opening as opening
from promptlang.cli.app import main
from promptlang.runtime.models.loading import LoadedModel


def load_tiny(name: str, **_: object) -> LoadedModel:
    return tiny_loaded()


if __name__ == "__main__":
    opening.load = load_tiny
    main()
