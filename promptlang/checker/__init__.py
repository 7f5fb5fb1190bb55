"""The checker: a parsed bundle to its diagnostics and its tables."""

from promptlang.checker.tables import Checked, FragmentInfo, ProgramInfo

__all__ = ["Checked", "FragmentInfo", "ProgramInfo"]
