"""The boxes of a drawing: colours, rows of text in DOT's tables, and what the colours mean."""

from collections.abc import Sequence
from html import escape
from textwrap import wrap

from promptlang.compiler.graph import AdoptNode, CallNode, KeepNode, Node, PinNode, ToolNode
from promptlang.compiler.passes.findings import Finding
from promptlang.diagnostics.rendering import visible
from promptlang.drawing.picture import Picture, Step, all_steps, near_flows
from promptlang.drawing.tokens import counted
from promptlang.drawing.tree import short

SHARED = "#cfe3f7"
PLAIN = "#f4f4f2"
ANSWER = "#ffd9a0"
PRUNES = "#f6c4c0"
ASKS = "#e6dcf2"
FORK = "#1f5f9e"
RESULT = "#cde8cf"
INK = "#222222"
FAINT = "#8a8a8a"
DATA = "#b07a2a"
FONT = "Helvetica"

COLUMNS = 46
LINES = 5

ANSWERS = ("gen", "select", "score")
ROWS = ("text", "let", "log", "pin", *ANSWERS)
"""What stands as a row in the box of its turn."""


def shown(text: str) -> str:
    """A text as it may stand in DOT's HTML, and in the XML that is made of it: without control characters."""
    return escape(visible(text))


def row(content: str, fill: str | None = None, port: int | None = None) -> str:
    """A row of a box, `content` in DOT's HTML; edges may end at its `port`."""
    colour = f' bgcolor="{fill}"' if fill else ""
    place = f' port="n{port}"' if port is not None else ""
    return f'<tr><td align="left" balign="left"{colour}{place}>{content}</td></tr>'


def small(text: str) -> str:
    """A text that says something beside the program."""
    return f'<font point-size="9" color="{FAINT}">{shown(text)}</font>' if text else ""


def lines(text: str) -> str:
    """A text wrapped, and cut where it is long."""
    wrapped = [part for line in text.strip("\n").split("\n") for part in wrap(line, COLUMNS) or [""]]
    if len(wrapped) > LINES:
        wrapped = [*wrapped[: LINES - 1], f"… {len(wrapped) - LINES + 1} more lines"]
    return "<br/>".join(shown(line) or " " for line in wrapped)


def fill(step: Step) -> str:
    """The colour of a step's box."""
    if step.kind == "keep":
        return PRUNES
    if step.kind == "require":
        return ASKS
    if step.kind == "return":
        return RESULT
    if step.kind not in ("turn", "text", *ANSWERS):
        return "white"
    return SHARED if step.is_shared else PLAIN


def head(step: Step, inner: Sequence[Step]) -> str:
    """The line above a box's rows: who speaks, and how long the text is."""
    tokens = sum(one.tokens or 0 for one in inner)
    said = counted(tokens) if tokens else ""
    role = f'<font point-size="9"><b>{shown(step.label)}</b>  </font>' if step.kind == "turn" else ""
    return row(role + small(said))


def content(step: Step) -> list[str]:
    """The rows that say what a step does."""
    said = lines(step.label)
    if step.kind in (*ANSWERS, "keep", "adopt", "return"):
        said = f"<b>{said}</b>"
    rows = [row(said, ANSWER if step.kind in ANSWERS else None, step.node.id)]
    return rows + ([row(small(note))] if (note := _note(step.node)) else [])


def _note(node: Node) -> str:
    """What a newcomer may not know of a step."""
    match node:
        case KeepNode(kind="where"):
            return "else this branch is pruned"
        case KeepNode(kind="first"):
            return "the slower branches are pruned"
        case KeepNode():
            return "the other branches are pruned"
        case AdoptNode():
            return "the conversation goes on from this branch"
        case CallNode():
            return "on a prompt of its own, beside what follows"
        case ToolNode():
            return "outside the model: what follows here waits for it"
        case PinNode():
            return "stays in the cache"
    return ""


def gone(finding: Finding) -> list[str]:
    """The rows of what a pass took out, and why."""
    label = short(finding.node.span.text.split("\n", 1)[0])
    why = small(f"{finding.what} ({finding.name})")
    return [row(f'<font color="{FAINT}"><s>{shown(label)}</s></font>'), row(why)]


def legend(pictures: Sequence[Picture]) -> list[str]:
    """What the colours mean; only those that are there."""
    kinds = {step.kind for picture in pictures for step in all_steps(picture.steps)}
    shared = any(step.is_shared for picture in pictures for step in all_steps(picture.steps))
    meanings = [
        (SHARED, "shared: computed once for all branches behind it", shared),
        (ANSWER, "written by the model", bool(kinds & set(ANSWERS))),
        (PRUNES, "prunes branches", bool(kinds & {"keep", "beam"})),
        (ASKS, "asked: where it is not met, its frame is done again", "require" in kinds),
        (PLAIN, "text of this branch alone", True),
        ("white", "crossed out: taken out by a pass, never runs", any(picture.pruned for picture in pictures)),
    ]
    rows = "".join(
        f'<tr><td bgcolor="{colour}" border="1" color="{FAINT}" width="16"></td>'
        f'<td align="left"><font point-size="9">{meaning}</font></td></tr>'
        for colour, meaning, is_there in meanings
        if is_there
    )
    are_far = any(len(near_flows(picture)) < len(picture.flows) for picture in pictures)
    data = "data; arrows that lead far are left out" if are_far else "data"
    dotted = f'<tr><td><font color="{DATA}">┈▸</font></td><td align="left"><font point-size="9">{data}</font></td></tr>'
    table = f'<table border="0" cellborder="0" cellspacing="4">{rows}{dotted}</table>'
    return [f"  legend [label=<{table}>];"]
