"""What came of a branch."""

from typing import Any, Generic

from typing_extensions import TypeVar

from promptlang.api.errors import UsageError
from promptlang.api.speech import Pending, Speech
from promptlang.interpreter.branches import BranchValue, PathValue

V = TypeVar("V", default=Any)


UNSET: Any = object()
"""Stands for an argument that was not given."""


class KeptBranch(Speech, Generic[V]):
    """The part of a branch's prompt that is there when the branch is over, and `keep` while it is not."""

    def _keep(self, count: int | None, by: float | None, where: object, first: int | None) -> Pending[None]:
        statements = self._ready()
        match count is not None, where is not UNSET, first is not None:
            case True, False, False if by is not None:
                return Pending(statements.keep("best", count, by), _nothing)
            case False, True, False:
                return Pending(statements.keep("where", None, bool(where)), _nothing)
            case False, False, True:
                return Pending(statements.keep("first", first, None), _nothing)
        raise UsageError("say one of `keep(1, by=score)`, `keep(where=condition)` and `keep(first=1)`")

    @property
    def kept(self) -> BranchValue:
        """The branch, as the interpreter knows it.

        Raises:
            UsageError: it is not over, or was not kept.
        """
        if self._kept is None:
            raise UsageError("a branch has its value when its fork is over")
        return self._kept

    @property
    def value(self) -> V:
        """What the branch's function returned."""
        value: V = self.kept.fields["value"]
        return value

    @property
    def previous(self) -> V | None:
        """In a search, what the path's function returned in the round before; None in the first."""
        return self._previous  # type: ignore[no-any-return]

    @property
    def index(self) -> int:
        """Its number at the fork; of a search's path, its rank."""
        return self._index if self._kept is None else self._kept.index

    @property
    def said(self) -> str:
        """What was added to the prompt in it."""
        return str(self.kept.part("text"))

    @property
    def logprob(self) -> float:
        """Natural log-probability of all that the model wrote in it."""
        return float(self.kept.part("logprob"))  # type: ignore[arg-type]

    @property
    def ranked_by(self) -> float:
        """What a search's path was ranked by."""
        assert isinstance(self.kept, PathValue)
        return self.kept.score


def _nothing(_: object) -> None:
    """What a `keep` gives."""
