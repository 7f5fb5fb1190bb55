"""Drawings: what they show of a program, and that they show it in forms that others can read."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import which
from xml.etree import ElementTree

import jsonschema
import pytest
from places import ROOT

import promptlang.drawing.dot as drawing
from promptlang.checker.check import check
from promptlang.cli.app import execute
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import PASSES, optimise
from promptlang.drawing.data import document
from promptlang.drawing.dot import dot
from promptlang.drawing.picture import MOST_LENGTH, Picture, all_steps, near_flows, picture, shared_tokens
from promptlang.drawing.tree import tree
from promptlang.syntax.loader import load

GOOD = ROOT / "tests" / "programs" / "good"
PROGRAMS = sorted([*GOOD.glob("*.pl"), *(ROOT / "examples").glob("*.pl")], key=lambda file: file.name)
REFRESH = "PROMPTLANG_REFRESH"

each_program = pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)


def pictures(file: Path, passes: tuple[str, ...] = tuple(PASSES)) -> list[Picture]:
    """Drawn with a word for a token, so that no model is needed."""
    checked = check(load(file))
    assert checked.ok, checked.diagnostics
    result = optimise(lower(checked), passes)
    return [
        picture(graph, result.findings[name], lambda text: len(text.split())) for name, graph in result.graphs.items()
    ]


@pytest.mark.parametrize("file", sorted(GOOD.glob("*.pl")), ids=lambda file: file.stem)
def test_the_tree_is_as_it_was(file: Path) -> None:
    """Set PROMPTLANG_REFRESH=1 to write the trees anew."""
    golden = GOOD / f"{file.stem}.graph"
    drawn = "\n".join(map(tree, pictures(file)))
    if os.environ.get(REFRESH):
        golden.write_text(drawn, encoding="utf-8")
    assert drawn == golden.read_text(encoding="utf-8")


@each_program
def test_json_follows_the_documented_schema(file: Path) -> None:
    found = re.search(r"```json\n(.*?)```", (ROOT / "docs" / "graph.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    data = document(pictures(file))
    jsonschema.validate(data, json.loads(found[1]))
    for program in data["programs"]:
        known = {node["id"] for node in program["nodes"]}
        assert len(known) == len(program["nodes"])
        assert {edge["to"] for edge in program["edges"]} <= known


@each_program
@pytest.mark.skipif(which("dot") is None, reason="graphviz is not installed")
def test_graphviz_draws_every_step(file: Path) -> None:
    drawn = pictures(file)
    image = subprocess.run(["dot", "-Tsvg"], input=dot(drawn), capture_output=True, text=True, check=True)
    assert not image.stderr
    text = " ".join("".join(ElementTree.fromstring(image.stdout).itertext()).split())
    for step in (step for one in drawn for step in all_steps(one.steps)):
        if step.kind in ("gen", "select", "adopt", "return"):
            assert step.label.split()[0] in text


def test_what_stands_before_a_fork_is_shared_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "program.pl"
    file.write_text(
        'program main():\n    "a"\n    fork 2 as b:\n        "b"\n        x = gen()\n        fork 2 as c:\n'
        '            y = gen()\n    "d"\n    return [len(b)]\n'
    )
    [one] = pictures(file, ())
    shared = {step.label: step.is_shared for step in all_steps(one.steps) if step.kind in ("text", "gen")}
    assert shared == {"a": True, "b": True, "x = gen()": True, "y = gen()": False, "d": False}


def test_a_fork_says_how_much_its_branches_share(tmp_path: Path) -> None:
    file = tmp_path / "program.pl"
    file.write_text(
        'program main():\n    user: "one two"\n    fork 2 as b:\n        user: "three"\n        "four"\n'
        '        x = gen()\n        fork 2 as c:\n            user: "five"\n            y = gen()\n    user: "six"\n'
        "    fork 2 as d:\n        z = gen()\n    return [len(b), len(d)]\n"
    )
    drawn = dot(pictures(file))
    assert re.findall(r"what is blue: (\d+) tokens", drawn) == ["4", "5", "3"]


def test_data_flows_from_who_wrote_last(tmp_path: Path) -> None:
    file = tmp_path / "program.pl"
    file.write_text(
        "program main(n: int):\n    x = n\n    fork 2 as b:\n        x = x + 1\n    adopt b[0]\n    return x\n"
    )
    [one] = pictures(file, ())
    assert [(flow.source, flow.target, flow.name) for flow in one.flows] == [
        (None, 0, "n"),
        (0, 2, "x"),
        (1, 3, "b"),
        (2, 4, "x"),
    ]


def test_what_a_pass_took_out_is_shown_with_its_reason() -> None:
    lines = tree(pictures(GOOD / "pruned.pl")[0]).splitlines()
    assert [line.split("(")[-1] for line in lines if line.startswith("x")] == [
        "fold: never runs: its condition never holds)",
        "dead: never runs: nothing reads it)",
        "dead: arm unused never runs: nothing reads it)",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".dot", ".json"])
def test_the_command_writes_the_form_that_the_name_ends_in(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"drawn{suffix}"
    assert execute(["graph", str(GOOD / "pruned.pl"), "-o", str(out), "--program", "summary"]) == 0
    assert "summary" in out.read_text()
    assert "help" not in out.read_text().replace("helped", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "drawn.png"], ".svg, .dot or .json"),
        (["--passes", "folding"], "no pass is called 'folding'"),
        (["--program", "other"], "there are help, summary"),
    ],
)
def test_a_wrong_command_is_told_what_would_be_right(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["graph", str(GOOD / "pruned.pl"), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_without_graphviz_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(drawing, "which", lambda name: None)
    assert execute(["graph", str(GOOD / "pruned.pl"), "-o", str(tmp_path / "drawn.svg")]) == 2
    assert "apt-get install graphviz" in capsys.readouterr().err


@pytest.mark.slow
def test_drawing_loads_no_model_library() -> None:
    code = (
        "import sys; from promptlang.cli.app import execute; execute(sys.argv[1:]); "
        "print(*({'torch', 'transformers'} & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "graph", str(GOOD / "pruned.pl")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr.split() == []


CONTROLS = 'program main():\n    "red \\x1b[31m bell \\x07 \x1b[0m"\n    x = gen()\n    return "\x02" + x\n'


def test_what_a_terminal_would_obey_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "program.pl"
    file.write_text(CONTROLS)
    [one] = pictures(file)
    for drawn in (tree(one), dot([one])):
        assert all(char.isprintable() or char == "\n" for char in drawn)
        assert "red \N{REPLACEMENT CHARACTER}[31m" in drawn
    [program] = document([one])["programs"]
    assert any("\x1b[31m" in node["label"] for node in program["nodes"])


@pytest.mark.skipif(which("dot") is None, reason="graphviz is not installed")
def test_an_image_of_control_characters_is_xml(tmp_path: Path) -> None:
    file = tmp_path / "program.pl"
    file.write_text(CONTROLS)
    assert "red" in "".join(ElementTree.fromstring(drawing.svg(pictures(file))).itertext())


def large(folder: Path, turns: int) -> Picture:
    """A program of many turns that ends in reading them all."""
    file = folder / "program.pl"
    lines = [f'    user: "{at}"\n    assistant: x{at} = gen(int in 0..9)\n' for at in range(turns)]
    file.write_text(f"program main():\n{''.join(lines)}    return [{', '.join(f'x{at}' for at in range(turns))}]\n")
    [one] = pictures(file, ())
    return one


def test_the_arrows_of_a_large_picture_are_as_long_as_graphviz_has_time_for(tmp_path: Path) -> None:
    one = large(tmp_path, 250)
    steps = [step.node.id for step in all_steps(one.steps)]
    near = near_flows(one)
    assert 50 < len(near) < len(one.flows) == 250
    assert sum(steps.index(flow.target) - steps.index(flow.source or 0) for flow in near) <= MOST_LENGTH
    assert "arrows that lead far are left out" in dot([one])
    assert len(document([one])["programs"][0]["edges"]) == 1000 + 250


def test_all_arrows_of_a_small_picture_are_drawn(tmp_path: Path) -> None:
    one = large(tmp_path, 20)
    assert near_flows(one) == list(one.flows)
    assert "left out" not in dot([one])


def test_forks_are_counted_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What branches share is found on one way through the program, not on one for each fork."""
    file = tmp_path / "program.pl"
    file.write_text("program main():\n" + '    fork 2 as b:\n        "a"\n        x = gen()\n' * 100 + "    return 1\n")
    drawn = pictures(file, ())
    ways = 0

    def counted(*arguments: object) -> dict[int, int]:
        nonlocal ways
        ways += 1
        return shared_tokens(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(drawing, "shared_tokens", counted)
    assert dot(drawn).count("fork 2 as b") == 100
    assert ways == 1
