"""A branch of a fork, as Python gets it in a program's result."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class BranchResult:
    """A branch that survived a fork.

    Its attributes are `index`, `text` (what it added to the prompt), `logprob` (of all that the model wrote in it; None
    where the back end doesn't tell), `score` of a path of a beam, and the variables it bound, which go before these.
    """

    _told: Mapping[str, Any]
    _variables: Mapping[str, Any]
    _data: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling ask an object for what it does not have yet.
        for parts in (self.__dict__.get("_variables", {}), self.__dict__.get("_told", {})):
            if name in parts:
                return parts[name]
        raise AttributeError(f"this branch has no {name!r}; it has {', '.join(dir(self))}")

    def __dir__(self) -> list[str]:
        return [*self.__dict__.get("_told", {}), *self.__dict__.get("_variables", {}), "to_dict"]

    def __repr__(self) -> str:
        parts = {**self._told, **self._variables}
        return f"Branch({', '.join(f'{name}={value!r}' for name, value in parts.items())})"

    def to_dict(self) -> dict[str, Any]:
        """The variables it bound, as JSON data."""
        return copy.deepcopy(dict(self._data))
