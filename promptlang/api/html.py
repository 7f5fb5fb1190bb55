"""A conversation as static HTML: branches side by side, pruned ones greyed. No script, no resource from elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

from promptlang.api.events import Answer, Event, Log, Opened, Path, Pruned, Retried, Text, Turn

_STYLE = """
<style>
.promptlang { font: 13px/1.5 system-ui, sans-serif; max-width: 100%; }
.promptlang .role { font-size: 11px; letter-spacing: .04em; opacity: .65; margin-top: .5em; }
.promptlang .said { white-space: pre-wrap; overflow-wrap: anywhere; }
.promptlang .answer { background: rgba(46, 160, 67, .18); border-radius: 3px; }
.promptlang .note { opacity: .65; font-style: italic; }
.promptlang .branches { display: flex; flex-wrap: wrap; gap: .6em; margin: .5em 0; }
.promptlang .branch { flex: 1 1 14em; border: 1px solid rgba(128, 128, 128, .5); border-radius: 5px; }
.promptlang .branch { padding: .3em .6em; }
.promptlang .pruned { opacity: .45; }
.promptlang .label { font: 11px ui-monospace, monospace; opacity: .75; }
</style>
"""


@dataclass
class _Block:
    """What one branch said, in order: pieces of HTML, and the branches that began in it."""

    label: str = ""
    is_pruned: bool = False
    items: "list[str | _Block]" = field(default_factory=list)

    def add(self, html: str) -> None:
        self.items.append(html)


def conversation_html(events: Iterable[Event]) -> str:
    """What was said in a run, up to now.

    Args:
        events: of the run, in order.
    """
    root = _Block()
    blocks: dict[Path, _Block] = {(): root}
    for event in events:
        block = _block(blocks, event.path)
        match event:
            case Opened():
                pass  # its block is there now
            case Turn(role=role):
                block.add(f'<div class="role">{escape(role)}</div>')
            case Text(text=text):
                block.add(f'<span class="said">{escape(text)}</span>')
            case Answer(text=text):
                block.add(f'<span class="said answer">{escape(text)}</span>')
            case Pruned():
                block.is_pruned = True
            case Retried(why=why):
                block.add(f'<div class="note">again: {escape(why)}</div>')
            case Log(text=text):
                block.add(f'<div class="note">log: {escape(text)}</div>')
    return f'{_STYLE}<div class="promptlang">{_inside(root)}</div>'


def _block(blocks: dict[Path, _Block], path: Path) -> _Block:
    """The block of a branch; it stands where its branch began."""
    if path not in blocks:
        block = _Block(path[-1])
        _block(blocks, path[:-1]).items.append(block)
        blocks[path] = block
    return blocks[path]


def _inside(block: _Block) -> str:
    """A block's items; branches that follow one another stand side by side."""
    pieces: list[str] = []
    beside: list[str] = []
    for item in [*block.items, ""]:
        if isinstance(item, _Block):
            beside.append(_branch(item))
            continue
        if beside:
            pieces.append(f'<div class="branches">{"".join(beside)}</div>')
            beside = []
        pieces.append(item)
    return "".join(pieces)


def _branch(block: _Block) -> str:
    kind = "branch pruned" if block.is_pruned else "branch"
    label = f"{block.label} (pruned)" if block.is_pruned else block.label
    return f'<div class="{kind}"><div class="label">{escape(label)}</div>{_inside(block)}</div>'
