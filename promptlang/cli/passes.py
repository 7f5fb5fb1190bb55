"""`--passes`."""

from collections.abc import Mapping

from promptlang.cli.errors import CommandError
from promptlang.compiler.graph import Graph
from promptlang.compiler.passes.optimise import Optimised, UnknownPassError, optimise, pass_names


def optimised(graphs: Mapping[str, Graph], passes: str) -> Optimised:
    """The programs after the passes that `--passes` names.

    Raises:
        CommandError: a name is no pass's.
    """
    try:
        return optimise(graphs, pass_names(passes))
    except UnknownPassError as error:
        raise CommandError(f"--passes: {error}") from error
