"""Programs in cells of notebooks, on the tiny model."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from places import HELPERS
from tiny_command import load_tiny

import promptlang as pl
import promptlang.session.opening as opening
from promptlang.api.events import Answer, Opened, Pruned, Text, Turn
from promptlang.api.html import conversation_html

PROGRAM = """
program main(word: str, unused: int = 3) -> str:
    user: "Say ${word}."
    assistant: x = gen(max_tokens=4)
    return x
"""


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[pl.Engine]:
    monkeypatch.setattr(opening, "load", lambda name, **_: load_tiny(name))
    with pl.Engine() as engine:
        pl.set_default_engine(engine)
        yield engine
    pl.set_default_engine(None)


@pytest.fixture
def shell() -> Any:
    shell = InteractiveShell.instance()
    shell.reset(new_session=False)
    shell.run_cell("%reload_ext promptlang")
    return shell


def test_a_cell_takes_variables_and_gives_them(shell: Any) -> None:
    shell.user_ns.update(word="fox", other=object())
    shell.run_cell(f"%%promptlang -o said{PROGRAM}")
    assert shell.user_ns["said"] == shell.user_ns["x"] == pl.compile(PROGRAM)(word="fox")
    shell.run_cell(
        '%%promptlang --seed 2\nuser: "Say ${word} of ${said}."\nassistant: y = gen(max_tokens=4, temperature=1)'
    )
    assert isinstance(shell.user_ns["y"], str)
    shell.run_cell("later = y + x")
    assert shell.user_ns["later"] == shell.user_ns["y"] + shell.user_ns["x"]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('%%promptlang\nuser: "${nothing}"', "PL101"),
        ("%%promptlang --sed 3\npass", "--sed"),
        ("%%promptlang\nx = 1 // 0", "division by zero"),
    ],
)
def test_what_is_wrong_with_a_cell_is_shown_and_the_next_one_works(
    shell: Any, cell: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(cell)
    assert said in capsys.readouterr().err
    shell.run_cell('word = "fox"')
    shell.run_cell(f"%%promptlang{PROGRAM}")
    assert isinstance(shell.user_ns["x"], str)


def test_an_interrupt_stops_the_answer_and_keeps_the_cache(engine: pl.Engine) -> None:
    def stop(html: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pl.notebook.run('user: "Go on."\nassistant: x = gen(max_tokens=1000)', show=stop)
    assert pl.notebook.run(PROGRAM, word="fox").result == pl.compile(PROGRAM)(word="fox")
    assert "Go on." in str(engine.cache)


def test_a_conversation_is_static_html_and_data_is_no_markup() -> None:
    first, second = ("drafts[0]",), ("drafts[1]",)
    events = [
        Turn((), "user"),
        Text((), "user", "Say <b>&</b>"),
        Opened(first),
        Opened(second),
        Answer(second, None, "two"),
        Answer(first, None, "one"),
        Pruned(first),
        Text((), None, "end"),
    ]
    html = conversation_html(events)
    assert "Say &lt;b&gt;&amp;&lt;/b&gt;" in html
    assert not re.search(r"<script|https?://|<b>", html)
    one, two = html.index("one"), html.index("two")
    assert one < two < html.index(">end<"), "branches stand in their order, before what follows"
    assert html.count('class="branches"') == 1
    assert html.count('class="branch pruned"') == 1
    assert "drafts[0] (pruned)" in unescape(html)


def test_an_outcome_shows_itself() -> None:
    outcome = pl.compile(PROGRAM).run(word="fox")
    assert "Say fox." in outcome._repr_html_()


@pytest.mark.slow
def test_a_notebook_runs_from_top_to_bottom() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        f"import sys; sys.path.insert(0, {str(HELPERS)!r})\nimport promptlang.session.opening as opening\n"
        "from tiny_command import load_tiny\nopening.load = load_tiny",
        "%load_ext promptlang",
        'word = "fox"',
        f"%%promptlang -o said{PROGRAM}",
        "print(said == x)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    outputs = notebook.cells[3].outputs
    assert any("Say fox." in output.get("data", {}).get("text/html", "") for output in outputs)
    assert notebook.cells[4].outputs[0].text == "True\n"
