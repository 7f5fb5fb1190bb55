"""Files and what they import."""

import os
from pathlib import Path

import pytest

from promptlang.checker.check import check
from promptlang.diagnostics.source import Source
from promptlang.syntax.loader import LoadError, load, load_source


def write(folder: Path, **files: str) -> Path:
    """Write `name.pl` files; gives the one called `main`."""
    for name, text in files.items():
        place = folder / f"{name.replace('__', '/')}.pl"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder / "main.pl"


def problems(path: Path) -> list[str]:
    return [diagnostic.message for diagnostic in check(load(path)).diagnostics]


@pytest.mark.parametrize("text", ["\ufeffconst A = 1\n", "const A = 1\r\n\r\n", "const A = 1", "\tconst A = 1\n"])
def test_marks_and_line_ends_of_a_file_do_not_matter(tmp_path: Path, text: str) -> None:
    path = tmp_path / "main.pl"
    path.write_bytes(text.encode())
    checked = check(load(path))
    assert checked.diagnostics == []


def test_prompt_text_is_the_same_whatever_the_file_breaks_lines_with(tmp_path: Path) -> None:
    text = 'program p():\n    """\n    a\n    b\n    """\n    x = gen()\n'
    bodies = []
    for newline in ("\n", "\r\n"):
        path = tmp_path / "main.pl"
        path.write_bytes(text.replace("\n", newline).encode())
        bodies.append(check(load(path)).programs["p"].declaration.body)
    assert bodies[0] == bodies[1]


def test_imports_are_found_beside_the_file_that_names_them(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        main='import "lib/a.pl" as a\nprogram p():\n    x = a.run()\n    log a.A\n',
        lib__a='import "b.pl" as b\nconst A = b.B + 1\nprogram run() -> int:\n    y = b.run()\n    return y\n',
        lib__b="const B = 1\nprogram run() -> int:\n    return B\n",
    )
    checked = check(load(main))
    assert checked.diagnostics == []
    assert set(checked.programs) == {"p", "a.run", "a.b.run"}
    assert checked.main == ("p",)


def test_a_file_imported_twice_is_one_file(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        main='import "a.pl" as a\nimport "b.pl" as b\nprogram p(r: a.R) -> b.S:\n    return r\n',
        a="record R:\n    x: int\n",
        b='import "a.pl" as a\ntype S = a.R\n',
    )
    bundle = load(main)
    assert len(bundle.units) == 3
    assert check(bundle).diagnostics == []


def test_a_circle_of_imports_is_said_where_it_closes(tmp_path: Path) -> None:
    main = write(tmp_path, main='import "a.pl" as a\n', a='import "main.pl" as m\n')
    [diagnostic] = check(load(main)).diagnostics
    assert diagnostic.code == "PL018"
    assert diagnostic.span.source.name.endswith("a.pl")


@pytest.mark.parametrize("path", ["../secret.pl", "/etc/passwd", "lib/../../secret.pl", "link.pl"])
def test_nothing_outside_the_folder_is_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.pl").write_text("const A = 1\n", encoding="utf-8")
    main = write(tmp_path / "inside", main=f'import "{path}" as a\nprogram p():\n    x = gen(schema "{path}")\n')
    (tmp_path / "inside" / "link.pl").symlink_to(tmp_path / "secret.pl")
    assert [message.endswith("outside the folder of the program") for message in problems(main)] == [True, True]


def test_errors_of_an_imported_file_are_shown_in_it(tmp_path: Path) -> None:
    main = write(tmp_path, main='import "a.pl" as a\nprogram p():\n    pass\n', a="program q():\n    log nobody\n")
    [diagnostic] = check(load(main)).diagnostics
    assert (diagnostic.code, Path(diagnostic.span.source.name).name) == ("PL101", "a.pl")


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no file"):
        load(tmp_path / "nothing.pl")
    (tmp_path / "bytes.pl").write_bytes(b"\xff\xfe")
    with pytest.raises(LoadError, match="UTF-8"):
        load(tmp_path / "bytes.pl")
    with pytest.raises(LoadError):
        load(tmp_path)


def test_schemas_and_grammars_are_read_from_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "integer"}', encoding="utf-8")
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    (tmp_path / "g.lark").write_text('start: "a"', encoding="utf-8")
    main = write(
        tmp_path,
        main='type S = schema "s.json"\nprogram p():\n    b = gen(grammar "g.lark")\n    c = gen(schema "bad.json")\n',
    )
    [diagnostic] = check(load(main)).diagnostics
    assert (diagnostic.code, diagnostic.span.position.line) == ("PL408", 4)


def test_text_from_no_file_imports_nothing() -> None:
    [diagnostic] = check(load_source(Source('import "a.pl" as a\n'))).diagnostics
    assert diagnostic.code == "PL018"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("text", ['import "pipe" as a\n', 'program p():\n    x = gen(schema "pipe")\n'])
def test_a_pipe_is_named_and_never_waited_for(tmp_path: Path, text: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert any("`pipe` is a pipe or a device" in problem for problem in problems(write(tmp_path, main=text)))


def test_a_device_is_named_and_never_read() -> None:
    with pytest.raises(LoadError, match="device"):
        load("/dev/zero" if os.path.exists("/dev/zero") else os.devnull)
