"""The checker: a loaded bundle to its diagnostics and its tables."""

from promptlang.checker.check import check
from promptlang.checker.tables import Checked, FragmentInfo, ProgramInfo, ToolInfo

__all__ = ["Checked", "FragmentInfo", "ProgramInfo", "ToolInfo", "check"]
