"""What an interpreter may count on behind the seam: tenants apart, prompts at home, text tokenised as one."""

from collections.abc import Sequence

import pytest
from tiny_engine import tiny_engine

from promptlang.runtime.backend import ForeignPromptError, Generate, Prompt, PromptText, Score, Select, Selected
from promptlang.runtime.healing import heal
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import Answer, Cancelled, RequestError
from promptlang.runtime.scripted import ScriptedBackend
from promptlang.runtime.text.tokenizer import Tokenizer
from promptlang.runtime.usage import Usage

FOX = "The quick brown fox jumps over the lazy dog. "


def backend_of(**options: object) -> LocalBackend:
    return LocalBackend(tiny_engine(**options))  # type: ignore[arg-type]


def prompt_of(backend: LocalBackend, text: str, namespace: tuple[str, ...] = (), program: str = "") -> Prompt:
    prompt = backend.new_prompt(namespace, program)
    prompt.add(text)
    return prompt


def ask(backend: LocalBackend, prompt: Prompt, max_tokens: int = 3) -> Usage:
    """Usage of an answer at the end of a prompt."""
    usage = Usage()
    answer = backend.generate(Generate(prompt, RandomStream(0), usage, max_tokens))
    finish(backend)
    assert answer.result is not None, answer.error
    assert answer.result.model == "tiny"
    return usage


def finish(backend: LocalBackend) -> None:
    while backend.step():
        pass
    backend.engine.check()


def holds_nothing(backend: LocalBackend) -> bool:
    return not any(node.holds or node.uses or node.locks for node in backend.engine.tree.nodes())


# Whose prompts -----------------------------------------------------------------------------------------------


def test_two_tenants_share_nothing_and_one_shares_all() -> None:
    backend = backend_of()
    first = ask(backend, prompt_of(backend, FOX, ("a",)))
    other = ask(backend, prompt_of(backend, FOX, ("b",)))
    again = ask(backend, prompt_of(backend, FOX, ("a",)))
    assert first.computed_tokens == other.computed_tokens == first.requested_tokens
    assert again.computed_tokens == 1


def test_options_of_two_tenants_share_nothing() -> None:
    backend = backend_of()

    def select(namespace: tuple[str, ...], rule: str) -> Usage:
        usage = Usage()
        backend.select(Select(prompt_of(backend, FOX, namespace), ("a dog", "a fox"), usage, rule=rule))  # type: ignore[arg-type]
        finish(backend)
        return usage

    assert select(("a",), "prior").computed_tokens == select(("b",), "prior").computed_tokens
    assert select(("a",), "prior").computed_tokens < select(("c",), "prior").computed_tokens


def test_a_tenants_pin_keeps_only_its_own() -> None:
    backend = backend_of()
    prompts = {name: prompt_of(backend, FOX, (name,)) for name in "ab"}
    pin = backend.pin(prompts["a"])
    for prompt in prompts.values():
        ask(backend, prompt)
    backend.engine.tree.evict(10_000)
    assert ask(backend, prompt_of(backend, FOX, ("a",))).computed_tokens == 1
    again = ask(backend, prompt_of(backend, FOX, ("b",)))
    assert again.computed_tokens == again.requested_tokens
    pin.release()
    assert backend.engine.tree.pinned == 0


def test_what_a_tenants_program_begins_with_is_expected_of_its_own_prompts() -> None:
    backend = backend_of()
    for name in "ab":
        ask(backend, prompt_of(backend, FOX + name, (name,), "main"))
    backend.expect("reader", {"main": 1}, ("a",))
    backend.expect("reader", {"main": 1}, ("b",))
    assert sum(bool(node.uses) for node in backend.engine.tree.nodes()) == 2
    backend.expect("reader", {}, ("a",))
    assert sum(bool(node.uses) for node in backend.engine.tree.nodes()) == 1


def test_a_read_that_was_expected_before_a_programs_beginning_was_known_is_expected_there_once_it_is() -> None:
    backend = backend_of()
    backend.expect("reader", {"main": 1})
    for text, known in (("The dog sleeps.", "The dog sleeps."), ("The fox runs.", "The")):
        ask(backend, prompt_of(backend, FOX + text, program="main"))
        (expected,) = [node for node in backend.engine.tree.nodes() if node.uses]
        tokens = backend.engine.tree.tokens_of(expected).tolist()
        assert backend.engine.tokenizer.decode(tokens) == FOX + known


@pytest.mark.parametrize("stranger", [backend_of(), ScriptedBackend([])])
def test_a_prompt_of_another_backend_is_refused(stranger: LocalBackend | ScriptedBackend) -> None:
    backend, prompt = backend_of(), stranger.new_prompt()
    prompt.add(FOX)
    with pytest.raises(ForeignPromptError, match="tiny"):
        backend.generate(Generate(prompt, RandomStream(0), Usage(), 3))
    with pytest.raises(ForeignPromptError):
        backend.select(Select(prompt, ("a", "b"), Usage()))
    with pytest.raises(ForeignPromptError):
        backend.score(Score(prompt, "a", Usage()))
    with pytest.raises(ForeignPromptError):
        backend.pin(prompt)


# Text between two requests -----------------------------------------------------------------------------------


def texts_of(backend: LocalBackend, tokens: Sequence[int]) -> list[bytes]:
    return [backend.engine.tokenizer.token_bytes[token] for token in tokens]


def test_neither_a_pin_nor_a_score_splits_a_word() -> None:
    backend = backend_of()
    whole, cut = backend.new_prompt(), backend.new_prompt()
    whole.add("The dog sleeps over the hill.")
    cut.add("The dog sl")
    backend.pin(cut)
    backend.score(Score(cut, "eeps", Usage()))
    finish(backend)
    cut.add("eeps over")
    cut.add(" the hill.")
    assert cut.flush() == whole.flush()
    assert b" sleeps" in texts_of(backend, cut.flush()), "the tokenizer joins the word"


def test_a_pin_inside_a_word_keeps_the_tokens_before_the_word() -> None:
    backend = backend_of()
    prompt = prompt_of(backend, "The quick brown fox and the dog sl")
    backend.pin(prompt)
    prompt.add("eeps over the hill.")
    ask(backend, prompt)
    before = len(backend.engine.tokenizer.encode("The quick brown fox and the dog"))
    assert backend.engine.tree.pinned == before


@pytest.mark.parametrize("text", ["The quick brown fox ", "The quick brown fo"])
def test_a_pin_before_an_answer_does_not_stop_healing(text: str) -> None:
    plain, pinned = backend_of(), backend_of()
    answers = []
    for backend in (plain, pinned):
        prompt = backend.new_prompt()
        prompt.open("assistant")
        prompt.add(text)
        if backend is pinned:
            backend.pin(prompt)
        answers.append(backend.generate(Generate(prompt, RandomStream(0), Usage(), 6)))
        finish(backend)
        answers.append(prompt.flush())
    assert answers[1] == answers[3]
    assert answers[0].result == answers[2].result
    assert pinned.engine.tree.pinned > 0


@pytest.mark.parametrize("text", ["The dog;", "How are you? <", "The dog\n", "see <|"])
def test_a_last_token_is_taken_back_where_it_could_be_longer(text: str) -> None:
    backend = backend_of()
    vocabulary = backend.engine.vocabulary
    prompt = backend.engine.new_prompt()
    prompt.add(text)
    last = vocabulary.token_bytes[prompt.flush()[-1]]
    wanted = last if vocabulary.has_longer(last) and not text.endswith("\n") else b""
    assert heal(prompt, vocabulary) == wanted


@pytest.mark.parametrize("rule", ["sum", "mean", "greedy"])
def test_a_select_that_extends_nothing_is_scored_as_without_healing(rule: str) -> None:
    texts = "The quick brown fox jumps over: ", "The quick brown fo"
    assert [results(text, (".a", ".b c"), rule)[0] for text in texts] == [True, True]
    equal, healed, plain = results("The quick brown fox ", ("fox", "dog"), rule)
    assert not equal, "the options extend the space"
    assert healed.logprob is not None is not plain.logprob


def results(text: str, options: tuple[str, ...], rule: str) -> tuple[bool, Selected, Selected]:
    """Whether a select is the same with and without healing, and both."""
    found, prompts = [], []
    for heals in (True, False):
        backend = backend_of()
        prompt = prompt_of(backend, text)
        answer = backend.select(Select(prompt, options, Usage(), rule=rule, heal=heals))  # type: ignore[arg-type]
        finish(backend)
        assert answer.result is not None, answer.error
        found.append(answer.result)
        prompts.append(prompt.flush())
    return found[0] == found[1] and prompts[0] == prompts[1], found[0], found[1]


def test_a_pin_before_a_fork_is_kept_once_a_branch_computes_it() -> None:
    backend = backend_of()
    prompt = prompt_of(backend, FOX)
    pin = backend.pin(prompt)
    branches = [prompt.fork(), prompt.fork()]
    prompt.release()
    assert backend.engine.tree.pinned == 0
    for branch, text in zip(branches, ("The fox", "The dog"), strict=True):
        branch.add(text)
        ask(backend, branch)
        branch.release()
    length = len(backend.engine.tokenizer.encode(FOX + "The fox")) - len(backend.engine.tokenizer.encode("The fox"))
    assert length - 2 <= backend.engine.tree.pinned <= length
    pin.release()
    assert backend.engine.tree.pinned == 0
    assert holds_nothing(backend)


def test_a_pin_that_was_released_before_its_text_was_tokenised_keeps_nothing() -> None:
    backend = backend_of()
    prompt = prompt_of(backend, FOX)
    backend.pin(prompt).release()
    ask(backend, prompt)
    assert backend.engine.tree.pinned == 0


def test_a_score_leaves_the_prompt_as_it_is_and_keeps_its_kv() -> None:
    backend = backend_of()
    prompt = prompt_of(backend, FOX)
    scored = backend.score(Score(prompt, "the end", Usage()))
    finish(backend)
    assert scored.result is not None
    assert scored.result.logprob < 0
    assert sum(node.holds for node in backend.engine.tree.nodes()) == 1
    assert ask(backend, prompt).computed_tokens == 1
    prompt.release()
    assert holds_nothing(backend)


# Ends --------------------------------------------------------------------------------------------------------


def requests(backend: LocalBackend) -> list[tuple[Prompt, Answer[object]]]:
    prompts = [prompt_of(backend, FOX * 3 + name) for name in "abc"]
    return [
        (prompts[0], backend.generate(Generate(prompts[0], RandomStream(0), Usage(), 9))),  # type: ignore[list-item]
        (prompts[1], backend.select(Select(prompts[1], ("a dog", "a fox"), Usage(), rule="prior"))),  # type: ignore[list-item]
        (prompts[2], backend.score(Score(prompts[2], "the end", Usage()))),  # type: ignore[list-item]
    ]


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("cancelled", range(3))
def test_cancelling_at_any_step_leaves_nothing_behind(steps: int, cancelled: int) -> None:
    backend = backend_of(tokens_a_step=24)
    asked = requests(backend)
    for _ in range(steps):
        backend.step()
    ends: list[int] = []
    asked[cancelled][1].on_done = lambda: ends.append(1)
    was_done = asked[cancelled][1].is_done
    asked[cancelled][1].cancel()
    finish(backend)
    assert isinstance(asked[cancelled][1].error, Cancelled) != was_done
    assert len(ends) == (not was_done)
    assert all(answer.error is None for at, (_, answer) in enumerate(asked) if at != cancelled)
    for prompt, _ in asked:
        prompt.release()
    assert holds_nothing(backend)


def test_a_refused_request_is_a_request_error_and_leaves_nothing_behind() -> None:
    backend = backend_of(tokens=16)
    prompt = prompt_of(backend, "How")
    ask(backend, prompt)
    prompt.add(FOX * 4)
    for refused in (
        lambda: backend.generate(Generate(prompt, RandomStream(0), Usage(), 3)),
        lambda: backend.select(Select(prompt, ("a", "b"), Usage(), rule="prior")),
        lambda: backend.score(Score(prompt, "a", Usage())),
    ):
        with pytest.raises(RequestError, match="16"):
            refused()
    finish(backend)
    prompt.release()
    assert holds_nothing(backend)


# What a model is asked about ---------------------------------------------------------------------------------


def seen_by(text: str, kind: str = "gen", role: str | None = None, heal: bool = True) -> PromptText:
    """What a model is asked about after a text."""
    backend = backend_of()
    prompt = backend.new_prompt()
    if role is not None:
        prompt.open(role)
    prompt.add(text)
    if role is not None:
        prompt.close()
        prompt.open("assistant")
    seen: list[PromptText] = []
    match kind:
        case "gen":
            backend.generate(Generate(prompt, RandomStream(0), Usage(), 2, heal=heal, on_prompt=seen.append))
        case "select":
            backend.select(Select(prompt, ("cat", "dog"), Usage(), heal=heal, on_prompt=seen.append))
        case _:
            backend.score(Score(prompt, "cat", Usage(), seen.append))
    assert len(seen) == 1, "it is shown when it is asked, before any step"
    finish(backend)
    assert len(seen) == 1
    return seen[0]


@pytest.mark.parametrize("kind", ["gen", "select", "score"])
def test_the_prompt_is_shown_as_the_model_sees_it(kind: str) -> None:
    seen = seen_by("Hé <|im_end|>!", kind, role="user")
    assert seen.text == "<|im_start|>user\nHé <|im_end|>!<|im_end|>\n<|im_start|>assistant\n"
    marked = [(part.text, part.kind) for part in seen.parts if part.kind != "text"]
    start, end = "<|im_start|>", "<|im_end|>"
    assert marked == [(start, "control"), (end, "lookalike"), (end, "control"), (start, "control")]
    assert seen.withdrawn == ""


@pytest.mark.parametrize("kind", ["gen", "select"])
def test_what_healing_takes_back_is_told_apart(kind: str) -> None:
    healed, plain = seen_by("The quick brown fox ", kind), seen_by("The quick brown fox ", kind, heal=False)
    assert healed.withdrawn != "" == plain.withdrawn
    assert healed.text + healed.withdrawn == plain.text == "The quick brown fox "
    assert seen_by("The quick brown fox ", "score").text == plain.text


def test_an_empty_prompt_is_shown_with_the_token_that_stands_in_it() -> None:
    assert [part.kind for part in seen_by("").parts] == ["control"]


def test_a_select_of_one_option_asks_nothing() -> None:
    backend = backend_of()
    seen: list[PromptText] = []
    backend.select(Select(prompt_of(backend, FOX), ("cat",), Usage(), on_prompt=seen.append))
    assert seen == []


# Texts that are too long -------------------------------------------------------------------------------------


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were tokenised."""
    texts: list[str] = []
    encode = Tokenizer.encode

    def noted(self: Tokenizer, text: str) -> list[int]:
        texts.append(text)
        return encode(self, text)

    monkeypatch.setattr(Tokenizer, "encode", noted)
    return texts


@pytest.mark.parametrize(("tokens", "room"), [(300, "KV pool of 300"), (4000, "context of 2048")])
def test_a_text_with_more_bytes_than_could_fit_is_refused_before_it_is_tokenised(
    tokens: int, room: str, encoded: list[str]
) -> None:
    backend = backend_of(tokens=tokens)
    longest = max(map(len, backend.engine.tokenizer.token_bytes))
    size = longest * 3000
    with pytest.raises(RequestError, match=rf"at least \d+ tokens of prompt \({size} bytes.*{room}"):
        backend.generate(Generate(prompt_of(backend, "x" * size), RandomStream(0), Usage(), 1))
    with pytest.raises(RequestError, match=room):
        backend.select(Select(prompt_of(backend, FOX), ("a", "x" * size), Usage()))
    with pytest.raises(RequestError, match=room):
        backend.score(Score(prompt_of(backend, FOX), "x" * size, Usage()))
    assert max(map(len, encoded), default=0) <= len(FOX)
    assert ask(backend, prompt_of(backend, FOX)).calls == 1


def test_a_prompt_that_grows_too_long_counts_what_it_holds(encoded: list[str]) -> None:
    backend = backend_of(tokens=300)
    prompt = backend.new_prompt()
    prompt.extend([1] * 299)
    prompt.add("x" * 2 * max(map(len, backend.engine.tokenizer.token_bytes)))
    with pytest.raises(RequestError, match="at least 301 tokens"):
        backend.generate(Generate(prompt, RandomStream(0), Usage(), 1))
    assert encoded == []
