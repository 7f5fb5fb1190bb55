# Types of PL601_stub.pl, for type checkers alone: `promptlang stubs PL601_stub.pl` writes them.
# Digest: 5a8cdb521b990441

import typing as _typing
from typing import Any

import promptlang as _promptlang

_P = _typing.ParamSpec("_P")
_R = _typing.TypeVar("_R")

def _program(function: _typing.Callable[_P, _R]) -> _promptlang.Program[_P, _R]: ...
@_program
def p(ticket: str) -> Any: ...
