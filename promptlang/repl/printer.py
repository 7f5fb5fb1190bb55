"""What a run writes, as it comes."""

from typing import TextIO


class Printer:
    """Shows what a conversation's own prompt gets, as it comes; what branches and called programs get, when they end;
    and what is logged.

    Args:
        out: where to.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_line_open = False
        self._aside: dict[tuple[str, ...], str] = {}

    def turn(self, path: tuple[str, ...], role: str) -> None:
        pass

    def text(self, path: tuple[str, ...], text: str) -> None:
        pass

    def answer(self, path: tuple[str, ...], text: str) -> None:
        if path:
            self._aside[path] = self._aside.get(path, "") + text
        elif text:
            self._out.write(_visible(text))
            self._out.flush()
            self._is_line_open = True

    def ended(self, path: tuple[str, ...]) -> None:
        for text in self._aside.pop(path, "").splitlines():
            self.line(f"{_label(path)}{text}")

    def pruned(self, path: tuple[str, ...]) -> None:
        self._aside.pop(path, None)

    def retried(self, path: tuple[str, ...], why: str) -> None:
        self._aside.pop(path, None)
        self.line(f"{_label(path)}retry: {why}")

    def log(self, path: tuple[str, ...], text: str) -> None:
        self.line(f"{_label(path)}log: {text}")

    def line(self, text: str) -> None:
        """A line of its own."""
        self.end_line()
        self._out.write(_visible(text) + "\n")

    def dim(self, text: str) -> None:
        """A line that stands back, where the terminal can do that."""
        self.end_line()
        self._out.write(f"\033[2m{_visible(text)}\033[0m\n" if self._out.isatty() else f"{_visible(text)}\n")

    def end_statement(self) -> None:
        """A statement is over, whatever became of it."""
        self._aside.clear()
        self.end_line()

    def end_line(self) -> None:
        """End the line that an answer stands on."""
        if self._is_line_open:
            self._out.write("\n")
            self._is_line_open = False


def _label(path: tuple[str, ...]) -> str:
    """Says which branch or call speaks."""
    return f"{'.'.join(path)}: " if path else ""


def _visible(text: str) -> str:
    """Text that can't steer a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)
