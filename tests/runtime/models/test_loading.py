"""Models load from wherever they lie, or say in one sentence why not."""

import errno
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import cold_logits, generate, greedy, saved_model, tiny_network
from tiny_tokenizers import byte_level
from tokenizers import AddedToken, normalizers
from transformers import PreTrainedTokenizerFast

from promptlang.runtime.models import digests, embedded, gguf_files, loading
from promptlang.runtime.models.loading import LoadedModel, load
from promptlang.runtime.models.model import ModelError
from promptlang.runtime.models.self_test import self_test
from promptlang.runtime.models.transformers_model import ATTENTION, TransformersModel, register_attention


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Tests of the embedded model use the user's cache, the others one of their own."""
    if "slow" not in request.keywords:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_folder_loads(tmp_path: Path) -> None:
    loaded = load(str(saved_model(tmp_path)))
    network = tiny_network(vocab_size=loaded.tokenizer.vocab_size)
    prompt = loaded.tokenizer.encode("The quick brown")
    assert greedy(loaded.model, prompt, 8) == generate(network, prompt, 8)
    assert loaded.tokenizer.decode(prompt) == "The quick brown"


def test_end_tokens_come_from_tokenizer_and_generation_config(tmp_path: Path) -> None:
    saved_model(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    tokenizer = load(str(tmp_path)).tokenizer
    assert tokenizer.eos_ids == (tokenizer.special_tokens["</s>"], 7, 8)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_near(tmp_path: Path, dtype: str) -> None:
    folder = str(saved_model(tmp_path))
    half, whole = load(folder, dtype=dtype), load(folder)
    tokens = whole.tokenizer.encode("The quick brown fox")
    expected = cold_logits(whole.model, tokens)
    assert (cold_logits(half.model, tokens) - expected).abs().max() < 0.1 * expected.abs().max()


def measure(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Let four bits be the faster ones up to so many rows, whatever the processor."""
    monkeypatch.setattr(loading, "kept_limit", lambda measurements, products, dtype: limit)


@pytest.mark.parametrize("cache", [True, False])
def test_what_is_measured_decides_from_how_many_rows_on_four_bits_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: bool
) -> None:
    folder = str(saved_model(tmp_path))
    for limit in (0, 8):
        measure(monkeypatch, limit)
        assert f"int4 up to {limit} rows" in load(folder, dtype="int4", cache=cache).model.weights


def test_four_bit_weights_are_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(monkeypatch, limit=1000)
    folder = str(saved_model(tmp_path))
    four, whole = load(folder, dtype="int4"), load(folder)
    tokens = whole.tokenizer.encode("The quick brown fox")
    expected = cold_logits(whole.model, tokens)
    error = cold_logits(four.model, tokens) - expected
    assert 0 < error.norm() < 0.5 * expected.norm()


def test_one_layout_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    folder = str(saved_model(tmp_path))
    assert load(folder, dtype="int4", one_layout=True).model.weights == "int4"


def test_four_bits_are_refused_for_other_architectures(tmp_path: Path) -> None:
    refused(str(saved_model(tmp_path, "olmo2")), "Llama-like", dtype="int4")


def refused(name: str, *words: str, dtype: str = "float32") -> None:
    with pytest.raises(ModelError) as error:
        load(name, dtype=dtype)
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    refused(str(tmp_path / "none.gguf"), "there is no file", "none.gguf")
    refused(str(tmp_path / "none"), "there is no folder", "none")


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("hello")
    refused(str(tmp_path / "text.gguf"), "not a GGUF file")


def test_a_cut_gguf_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    refused(str(tmp_path / "cut.gguf"), "can't be loaded")


def test_a_folder_that_holds_no_model_is_named(tmp_path: Path) -> None:
    refused(str(tmp_path), "config.json")
    (tmp_path / "config.json").write_text("{}")
    refused(str(tmp_path), "safetensors")


@pytest.mark.parametrize("model_type", ["llama", "olmo2"])
def test_a_pickle_is_never_read(tmp_path: Path, model_type: str) -> None:
    folder = saved_model(tmp_path, model_type)
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    refused(str(folder), "pickled weights", "pytorch_model.bin")
    (folder / "other.safetensors").rename(folder / "model.safetensors")
    assert load(str(folder)).model.shape.layers == 2
    assert not (tmp_path / "sprung").exists()


class Trap:
    """Makes a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def test_broken_weights_are_an_error(tmp_path: Path) -> None:
    saved_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{broken}")
    refused(str(tmp_path), "can't be loaded")


def test_an_unknown_architecture_is_an_error(tmp_path: Path) -> None:
    saved_model(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "no_such_model"}))
    refused(str(tmp_path), "no_such_model")


def test_an_architecture_with_other_attention_is_refused(tmp_path: Path) -> None:
    refused(str(saved_model(tmp_path, "bloom", n_head=4)), "Bloom", "plain attention")


def test_an_unknown_dtype_lists_the_known() -> None:
    refused("embedded", "int3", "bfloat16", dtype="int3")


def test_a_folder_is_compared_with_transformers_once(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "model")
    told: list[str] = []
    for _ in range(2):
        load(str(folder), progress=told.append)
    assert told == ["comparing the model with transformers: once"]
    saved_model(folder, rms_norm_eps=1e-3)
    load(str(folder), progress=told.append)
    assert len(told) == 2


def test_a_folder_that_computes_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(saved_model(tmp_path / "model"))
    monkeypatch.setattr(
        loading, "_network", lambda folder, options: tiny_network(vocab_size=byte_level().get_vocab_size() + 5, seed=5)
    )
    for _ in range(2):
        refused(folder, "other logits")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.mark.usefixtures("offline")
def test_a_hub_model_that_can_not_be_reached_says_so() -> None:
    refused("someone/some-model", "someone/some-model", "hub can't be reached", "embedded")


@pytest.mark.usefixtures("offline")
def test_a_name_that_is_nothing_says_what_names_can_be() -> None:
    refused("what is this?", "neither a folder")


@pytest.mark.usefixtures("offline")
def test_without_the_embedded_package_both_ways_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "find_gguf", lambda: None)
    refused("embedded", embedded.PACKAGE, embedded.HUB_ID)


# The cache of converted models ---------------------------------------------------------------------------


@pytest.fixture
def fake_gguf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that stands for a GGUF, and a conversion that only writes a word."""
    monkeypatch.setattr(gguf_files, "convert", lambda gguf, folder: (folder / "done").write_text("done"))
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" + bytes(3_000_000))
    return file


def ignore(message: str) -> None:
    """Progress nobody reads."""


def test_a_model_is_converted_once(fake_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = gguf_files.converted(fake_gguf, ignore)
    monkeypatch.setattr(gguf_files, "convert", None)
    assert gguf_files.converted(fake_gguf, ignore) == folder
    assert (folder / "done").read_text() == "done"


def test_other_content_is_converted_again(fake_gguf: Path) -> None:
    before = gguf_files.converted(fake_gguf, ignore)
    fake_gguf.write_bytes(b"GGUF" + b"x" * 3_000_000)
    assert gguf_files.converted(fake_gguf, ignore) != before


def test_a_change_of_one_byte_is_other_content(fake_gguf: Path) -> None:
    before = gguf_files.converted(fake_gguf, ignore)
    for place in range(100_001, 3_000_000, 300_000):
        data = bytearray(fake_gguf.read_bytes())
        data[place] ^= 1
        fake_gguf.write_bytes(data)
        assert gguf_files.converted(fake_gguf, ignore) != before


def test_what_was_read_once_is_only_looked_at_again(fake_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = gguf_files.converted(fake_gguf, ignore)
    monkeypatch.setattr(digests.Known, "read", None)
    assert gguf_files.converted(fake_gguf, ignore) == folder


@pytest.mark.parametrize("damage", ["rot", "cut", "gone", "seal"])
def test_a_damaged_copy_is_converted_anew(fake_gguf: Path, damage: str) -> None:
    folder = gguf_files.converted(fake_gguf, ignore)
    if damage == "gone":
        (folder / "done").unlink()
    elif damage == "seal":
        (folder / "contents.json").write_text("[1")
    else:
        (folder / "done").write_text("dont" if damage == "rot" else "do")
    assert gguf_files.kept_folder(fake_gguf) is None
    assert gguf_files.converted(fake_gguf, ignore) == folder
    assert (folder / "done").read_text() == "done"
    assert [place.name for place in gguf_files.cache_folder().iterdir()] == [folder.name]


def test_a_copy_that_was_moved_is_not_converted_anew(fake_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = gguf_files.converted(fake_gguf, ignore)
    (folder / "done").touch()
    monkeypatch.setattr(gguf_files, "convert", None)
    assert gguf_files.converted(fake_gguf, ignore) == folder


def test_what_is_known_of_files_may_be_lost(fake_gguf: Path) -> None:
    folder = gguf_files.converted(fake_gguf, ignore)
    known = gguf_files.cache_folder().parent / "digests.json"
    for text in ("{broken", "[]", '{"x": 1}', '{"x": {}}'):
        known.write_text(text)
        assert gguf_files.converted(fake_gguf, ignore) == folder


def test_a_failed_conversion_leaves_nothing(fake_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(gguf: Path, folder: Path) -> None:
        (folder / "half").write_text("half")
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(gguf_files, "convert", fail)
        with pytest.raises(MemoryError):
            gguf_files.converted(fake_gguf, ignore)
    assert not list(gguf_files.cache_folder().iterdir())
    assert (gguf_files.converted(fake_gguf, ignore) / "done").exists()


def test_a_killed_conversion_is_cleared_away_later(fake_gguf: Path) -> None:
    killed = gguf_files.cache_folder() / "partial-killed"
    running = gguf_files.cache_folder() / "partial-running"
    killed.mkdir(parents=True)
    running.mkdir()
    (running / "model.safetensors").touch()
    for old in (killed, running):
        os.utime(old, (time.time() - 7200,) * 2)
    gguf_files.converted(fake_gguf, ignore)
    assert not killed.exists()
    assert running.exists()


def test_two_conversions_at_once_agree(fake_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(gguf: Path, folder: Path) -> None:
        (folder / "done").write_text("slow")
        with monkeypatch.context() as patched:
            patched.setattr(gguf_files, "convert", lambda gguf, folder: (folder / "done").write_text("fast"))
            gguf_files.converted(gguf, ignore)

    monkeypatch.setattr(gguf_files, "convert", overtaken)
    assert (gguf_files.converted(fake_gguf, ignore) / "done").read_text() == "fast"
    assert len(list(gguf_files.cache_folder().iterdir())) == 1


def test_a_damaged_cache_says_what_to_delete(fake_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "find_gguf", lambda: fake_gguf)
    folder = gguf_files.converted(fake_gguf, ignore)  # the copy is as it was written, and that is no model
    refused("embedded", str(folder), "delete")


@pytest.mark.parametrize("model_type", ["llama", "olmo2"])
def test_a_users_gguf_file_is_converted_once(fake_gguf: Path, monkeypatch: pytest.MonkeyPatch, model_type: str) -> None:
    def convert(gguf: Path, folder: Path) -> None:
        saved_model(folder, model_type)
        gguf_files.save_tokenizer(
            PreTrainedTokenizerFast.from_pretrained(folder), folder, byte_level().get_vocab_size() + 5
        )

    monkeypatch.setattr(gguf_files, "convert", convert)
    first = load(str(fake_gguf))
    monkeypatch.setattr(gguf_files, "convert", None)
    again = load(str(fake_gguf))
    tokens = first.tokenizer.encode("The quick brown")
    assert torch.equal(cold_logits(first.model, tokens), cold_logits(again.model, tokens))
    assert again.tokenizer.decode(tokens) == "The quick brown"


@pytest.mark.parametrize("is_full", [False, True])
def test_a_users_gguf_file_loads_where_no_cache_can_be_written(
    fake_gguf: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    is_full: bool,
) -> None:
    def full(gguf: Path, folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "no-folder").write_text("")
    if is_full:
        monkeypatch.setattr(gguf_files, "convert", full)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-folder"))
    folder = saved_model(tmp_path / "model")
    network = loading._network
    monkeypatch.setattr(loading, "_network", lambda _, options, gguf_file: network(folder, options))
    tokenizer = loading._tokenizer
    monkeypatch.setattr(loading, "_tokenizer", lambda name, _, size, gguf_file: tokenizer(name, folder, size))
    assert load(str(fake_gguf)).model.shape.layers == 2
    assert "model.gguf runs unconverted" in caplog.text


def test_weights_that_can_not_be_written_are_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"model\.safetensors|No such file"):
        gguf_files._save({"a": torch.ones(1)}, tmp_path / "no-folder" / "model.safetensors")


# The embedded model --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    if embedded.find_gguf() is None:
        pytest.skip(f"needs {embedded.PACKAGE}")
    return load()


def embedded_network() -> Any:
    """The embedded model in transformers' hands."""
    from transformers import AutoModelForCausalLM

    register_attention()
    gguf = embedded.find_gguf()
    assert gguf is not None
    folder = gguf_files.converted(gguf, ignore)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=ATTENTION)


@pytest.mark.slow
def test_the_embedded_model_answers_as_transformers_does(loaded: LoadedModel) -> None:
    network = embedded_network()
    for text in ("The capital of France is", "def fibonacci(n):\n", "Es war einmal"):
        prompt = loaded.tokenizer.encode(text)
        assert greedy(loaded.model, prompt, 24) == generate(network, prompt, 24)


@pytest.mark.slow
def test_the_embedded_model_forked_gives_what_the_general_path_gives_cold(loaded: LoadedModel) -> None:
    general = TransformersModel(embedded_network())
    self_test(loaded.model, general.network)
    tokens = loaded.tokenizer.encode("The sea is blue because " * 30)
    assert (cold_logits(loaded.model, tokens) - cold_logits(general, tokens)).abs().max() < 1e-3


@pytest.mark.slow
def test_a_gguf_file_loads(loaded: LoadedModel) -> None:
    gguf = embedded.find_gguf()
    assert gguf is not None
    again = load(str(gguf))
    tokens = loaded.tokenizer.encode("The sea is")
    assert again.tokenizer.encode("The sea is") == tokens
    assert torch.allclose(cold_logits(again.model, tokens), cold_logits(loaded.model, tokens), atol=1e-4)


@pytest.mark.slow
def test_the_embedded_tokenizer_encodes_as_transformers_does(loaded: LoadedModel) -> None:
    from transformers import AutoTokenizer

    gguf = embedded.find_gguf()
    assert gguf is not None
    theirs = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    ours = loaded.tokenizer
    for text in (
        "Hello, world!",
        "  naïve café\n\n\t🙂 世界 12345",
        "don't",
        "\r\n",
        "def f(x):\n    return x",
    ):
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False)
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    assert ours.render(messages) == theirs.apply_chat_template(messages, tokenize=False)
    assert ours.render(messages[:1], add_generation_prompt=True) == theirs.apply_chat_template(
        messages[:1], tokenize=False, add_generation_prompt=True
    )
    assert ours.eos_ids == (theirs.eos_token_id,)


@pytest.mark.slow
@pytest.mark.usefixtures("loaded")
def test_loading_is_quiet() -> None:
    script = "from promptlang.runtime.models.loading import load; load()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_tokenizer_that_can_not_be_followed_is_refused_with_its_token(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "model")
    backend = byte_level()
    backend.normalizer = normalizers.Lowercase()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")
    tokenizer.add_tokens([AddedToken("<call>", normalized=True)])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match=r"model can't be loaded.*'<call>'.*normalized.*Lowercase"):
        load(str(folder))
