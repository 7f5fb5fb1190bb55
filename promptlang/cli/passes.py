"""`--passes`."""

from promptlang.cli.errors import CommandError
from promptlang.compiler.passes.optimise import UnknownPassError, pass_names


def passes_named(passes: str) -> tuple[str, ...]:
    """The passes that `--passes` names.

    Raises:
        CommandError: a name is no pass's.
    """
    try:
        return pass_names(passes)
    except UnknownPassError as error:
        raise CommandError(f"--passes: {error}") from error
