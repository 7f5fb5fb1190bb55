"""The conversation on a terminal, as it grows.

The program's own prompt is written as it comes. A branch, or a program that is called, runs beside others: it is
written in one piece when it ends, in the block of whoever started it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from promptlang.cli.report import line_of
from promptlang.runtime.backend import PromptText

Path = tuple[str, ...]

ROLE = "bold magenta"
PROGRAM = "default"
ANSWER = "bold green"
FRAME = "cyan"
PRUNED = "dim"
NARROWEST = 20

_FRAME, _CONTROL = Style.parse(FRAME), Style.parse(ROLE)


@dataclass
class _Block:
    """What one branch has said: text, and the blocks of its own branches, in order."""

    label: str
    items: "list[Text | _Block]" = field(default_factory=list)
    pruned: bool = False

    def add(self, text: str, style: str) -> None:
        if not self.items or isinstance(self.items[-1], _Block):
            self.items.append(Text())
        last = self.items[-1]
        assert isinstance(last, Text)
        last.append(text, style)


class LogView:
    """Writes what programs log, and nothing else.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def turn(self, path: Path, role: str) -> None:
        pass

    def text(self, path: Path, text: str) -> None:
        pass

    def answer(self, path: Path, text: str) -> None:
        pass

    def ended(self, path: Path) -> None:
        pass

    def pruned(self, path: Path) -> None:
        pass

    def retried(self, path: Path, why: str) -> None:
        pass

    def log(self, path: Path, text: str) -> None:
        where = f"{'.'.join(path)}: " if path else ""
        self._console.print(Text(f"log: {where}{_visible(text)}"), soft_wrap=True)


class PromptView(LogView):
    """Writes the prompts that the model is asked about, too.

    Args:
        console: where to.
        has_rows: whether to say of which row a prompt is.
    """

    def __init__(self, console: Console, has_rows: bool) -> None:
        super().__init__(console)
        self._has_rows = has_rows

    def prompt(self, row: int, path: Path, prompt: PromptText) -> None:
        where = [f"row {row}"] * self._has_rows + [".".join(path)] * bool(path)
        pieces = [
            Segment(f"[{' · '.join(['prompt', *where])}]\n", _FRAME),
            *(Segment(_visible(part.text), _CONTROL if part.kind == "control" else None) for part in prompt.parts),
            Segment(f"[{'; '.join(['end of prompt', *_remarks(prompt)])}]\n", _FRAME),
        ]
        self._console.print(Segments(pieces), soft_wrap=True, end="")


def _remarks(prompt: PromptText) -> Iterator[str]:
    """What the text of a prompt does not show."""
    if prompt.withdrawn:
        yield f"{line_of(prompt.withdrawn)} stood here: it is withdrawn, and the answer begins by writing it or more"
    lookalikes = dict.fromkeys(part.text for part in prompt.parts if part.kind == "lookalike")
    if lookalikes:
        yield f"where it is data, {', '.join(lookalikes)} is text and no control token"


def log_view(console: Console, shows_prompts: bool, has_rows: bool = False) -> LogView:
    """What is shown of a run whose conversation is not.

    Args:
        console: where to.
        shows_prompts: whether prompts are.
        has_rows: whether there are several runs, one a row.
    """
    return PromptView(console, has_rows) if shows_prompts else LogView(console)


class ConversationView:
    """Writes turns, text and answers.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._blocks: dict[Path, _Block] = {}
        self._last = "\n"

    def turn(self, path: Path, role: str) -> None:
        gap = "" if self._is_fresh(path) else "\n"
        self._say(path, f"{gap}{role}\n", ROLE)

    def text(self, path: Path, text: str) -> None:
        self._say(path, _visible(text), PROGRAM)

    def answer(self, path: Path, text: str) -> None:
        self._say(path, _visible(text), ANSWER)

    def log(self, path: Path, text: str) -> None:
        gap = "" if self._is_fresh(path) else "\n"
        self._say(path, f"{gap}log: {_visible(text)}\n", FRAME)

    def retried(self, path: Path, why: str) -> None:
        gap = "" if self._is_fresh(path) else "\n"
        self._say(path, f"{gap}withdrawn: {_visible(why)}, again\n", PRUNED)

    def ended(self, path: Path) -> None:
        self._close(path, pruned=False)

    def pruned(self, path: Path) -> None:
        self._close(path, pruned=True)

    def finish(self) -> None:
        """Show what was under way in branches when the run failed, and leave a blank line."""
        while self._blocks:
            self._close(max(self._blocks, key=len), pruned=False)
        self._end_line()
        self._say((), "\n", PROGRAM)

    def _end_line(self) -> None:
        if not self._is_fresh(()):
            self._say((), "\n", PROGRAM)

    def _is_fresh(self, path: Path) -> bool:
        """Whether a line begins here."""
        if not path:
            return self._last == "\n"
        items = self._block(path).items
        return not items or isinstance(items[-1], _Block) or items[-1].plain.endswith("\n")

    def _say(self, path: Path, text: str, style: str) -> None:
        if not text:
            return
        if path:
            self._block(path).add(text, style)
            return
        self._console.print(Text(text, style), end="", soft_wrap=True)
        self._last = text[-1]

    def _block(self, path: Path) -> _Block:
        return self._blocks.setdefault(path, _Block(path[-1]))

    def _close(self, path: Path, *, pruned: bool) -> None:
        block = self._block(path)
        del self._blocks[path]
        block.pruned = pruned
        if len(path) > 1:
            self._block(path[:-1]).items.append(block)
            return
        self._end_line()
        for line in _lines(block, self._console):
            self._console.print(line, soft_wrap=True)


def _lines(block: _Block, console: Console, depth: int = 1, dim: bool = False) -> Iterator[Text]:
    """A block with a bar at its left, wrapped to the terminal."""
    dim = dim or block.pruned
    bar = Text("│ " * depth, FRAME)
    width = max(NARROWEST, console.width - bar.cell_len)
    yield Text("│ " * (depth - 1), FRAME) + Text(f"┌ {block.label}{' (pruned)' if block.pruned else ''}", FRAME)
    for item in block.items:
        if isinstance(item, _Block):
            yield from _lines(item, console, depth + 1, dim)
        else:
            for line in item.wrap(console, width):
                line.rstrip()
                if dim:
                    line.stylize(PRUNED)
                yield bar + line


def _visible(text: str) -> str:
    """Text that can't move the cursor or change colours."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
