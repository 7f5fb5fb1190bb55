"""`--template-option`: what reaches the chat template, what is refused, and what a run's results say of it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from command_programs import ASK
from rows_files import rows_file
from tiny_engine import TEMPLATE, tiny_loaded
from tiny_tokenizers import byte_level

import promptlang.session.opening as opening
from promptlang.runtime.models.loading import LoadedModel
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings
from promptlang.session.session import Session
from promptlang.session.settings import OpeningError, Settings

Program = Callable[[str], str]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def thinking_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model with a template that reads an option."""

    def load(*_: object, **__: object) -> LoadedModel:
        backend = byte_level()
        template = TEMPLATE + "{% if enable_thinking is defined %}{{ 'think=' ~ enable_thinking }}{% endif %}"
        end = backend.token_to_id("<|im_end|>")
        settings = TokenizerSettings(backend.get_vocab_size(), (end,), {"eos_token": "<|im_end|>"}, template)
        return replace(tiny_loaded(), tokenizer=Tokenizer(backend, settings))

    monkeypatch.setattr(opening, "load", load)


def rendered(**options: object) -> str:
    """What the template writes of one message, in a session with these options."""
    with Session(Settings(kv_bytes=1 << 20, template_options=options)) as session:
        prompt = session.open().new_prompt()
        prompt.open("user")
        prompt.add("Hi")
        prompt.close()
        prompt.open("assistant")
        return session.open().tokenizer.decode(prompt.flush())


def test_options_reach_the_template() -> None:
    assert "think" not in rendered()
    assert "think=False" in rendered(enable_thinking=False)
    assert "think=low" in rendered(enable_thinking="low")


@pytest.mark.parametrize("name", ["messages", "add_generation_prompt", "tools", "bos_token", "raise_exception"])
def test_a_name_of_our_own_is_refused_before_anything_is_loaded(name: str, program: Program, command: Command) -> None:
    code, out, err = command("run", program(ASK), "--arg", "question=a", "--template-option", f"{name}=1")
    assert (code, out) == (2, "")
    assert f"`{name}`" in err
    assert len(err.splitlines()) == 1
    with pytest.raises(OpeningError, match=name):
        Settings(template_options={name: 1})


@pytest.mark.parametrize("given", [["a"], ["a=1", "--template-option", "a=2"]])
def test_an_option_needs_one_value(given: list[str], program: Program, command: Command) -> None:
    code, _, err = command("run", program(ASK), "--arg", "question=a", "--template-option", *given)
    assert code == 2
    assert "--template-option a" in err


@pytest.mark.parametrize(
    ("text", "value"), [("false", False), ("low", "low"), ("[1, 2]", [1, 2]), ('"true"', "true"), ("", "")]
)
def test_a_value_is_json_or_text(text: str, value: object, program: Program, command: Command) -> None:
    option = f"enable_thinking={text}"
    code, out, err = command("run", program(ASK), "--arg", "question=a", "--json", "--template-option", option)
    assert code == 0
    assert "warning" not in err
    assert json.loads(out)["template_options"] == {"enable_thinking": value}


def test_an_option_that_the_template_never_reads_is_a_warning_with_near_names(
    program: Program, command: Command
) -> None:
    code, _, err = command("run", program(ASK), "--arg", "question=a", "--template-option", "enable_thinkin=false")
    assert code == 0
    assert "`enable_thinkin`" in err
    assert "did you mean `enable_thinking`?" in err


def test_results_of_other_options_are_another_run(program: Program, command: Command, tmp_path: Path) -> None:
    rows = rows_file(tmp_path, '{"question": "q0"}', '{"question": "q1"}')
    out = tmp_path / "out.jsonl"

    def run(*options: str) -> tuple[int, str, str]:
        given = [word for option in options for word in ("--template-option", option)]
        return command("run", program(ASK), "--data", rows, "--out", str(out), "--resume", *given)

    assert run("enable_thinking=true", "other=1")[0] == 0
    written = out.read_text()
    assert run("other=1", "enable_thinking=true")[0] == 0
    for others in ([], ["enable_thinking=true"], ["enable_thinking=1", "other=1"], ["enable_thinking=true", "other=2"]):
        code, _, err = run(*others)
        assert code == 2
        assert all(f"--template-option {option}" in err for option in others)
    assert out.read_text() == written
