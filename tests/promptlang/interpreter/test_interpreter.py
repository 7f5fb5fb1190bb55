"""What programs mean when they run, on a tiny random model: its answers are nonsense, their shapes are not."""

import re
from pathlib import Path
from typing import Any

import pytest
from program_runner import Runner, fault
from tiny_engine import tiny_engine

from promptlang.interpreter.observer import SilentObserver
from promptlang.interpreter.run import RunError
from promptlang.runtime.engine import Engine
from promptlang.runtime.usage import Usage
from promptlang.values.conversion import ArgumentsError, bind_arguments, to_json


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


# Values and shapes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "holds"),
    [
        ("int in 1..5", lambda value: value in range(1, 6)),
        ("int in -3..12", lambda value: -3 <= value <= 12),
        ("bool", lambda value: isinstance(value, bool)),
        ('"yes" | "no"', lambda value: value in ("yes", "no")),
        ("/[A-Z]{3}-[0-9]{2}/", lambda value: len(value) == 6),
        ("str(max=5)", lambda value: len(value) <= 5),
        ("list[int in 0..9, 2..3]", lambda value: len(value) in (2, 3) and all(0 <= item <= 9 for item in value)),
        ("float in 0..1", lambda value: 0 <= value <= 1),
    ],
)
@pytest.mark.parametrize("temperature", [0, 1.5])
def test_a_typed_answer_has_the_types_value(run: Runner, shape: str, holds: Any, temperature: float) -> None:
    value = run(f"""
        program main():
            "The quick brown fox: "
            x = gen({shape}, temperature={temperature}, max_tokens=24)
            return x
        """)
    assert holds(value)


def test_a_record_answer_is_a_record(run: Runner) -> None:
    value = run("""
        record Dog:
            name: str(max=8)
            age: int in 0..20
            good: bool

        program main() -> Dog:
            "The dog as JSON: "
            dog = gen(Dog, temperature=1, max_tokens=60)
            log dog.name
            return dog
        """)
    assert list(value) == ["name", "age", "good"]


def test_without_a_return_the_result_is_the_variables(run: Runner) -> None:
    value = run(
        """
        program main(x: int):
            "Number ${x}: "
            y = x + 1
            z = gen(int in 0..9)
            log y + z
        """,
        x=4,
    )
    assert value["y"] == 5
    assert set(value) == {"y", "z"}


def test_a_value_cut_by_max_tokens_takes_its_shortest_legal_end(run: Runner) -> None:
    value = run("""
        record Note:
            title: str
            tags: list[str]

        program main() -> Note:
            "A note: "
            note = gen(Note, max_tokens=12)
            return note
        """)
    assert list(value) == ["title", "tags"]


def test_a_value_without_an_end_in_reach_is_an_error_that_shows_what_there_was(run: Runner) -> None:
    error = fault(
        run,
        """
        program main():
            "Code: "
            x = gen(/[a-z]{90}/, max_tokens=3)
        """,
    )
    assert "max_tokens" in error.message
    assert re.search(r"'[a-z]{3,}'", error.message)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_an_answer_holds_all_the_tokens_that_were_asked_for(run: Runner, count: int) -> None:
    outcome = run.outcome(f"""
        program main():
            "The quick brown fox"
            x = gen(min_tokens={count}, max_tokens={count})
            return x
        """)
    assert outcome.usage.generated_tokens == count


def test_healing_can_be_switched_off(run: Runner) -> None:
    """With it the space is taken back; without it the prompt is all that is computed."""
    healed, unhealed = (
        run.outcome(f"""
        program main():
            "The dog "
            x = gen(max_tokens=2, heal={heal})
        """).usage.requested_tokens
        for heal in ("true", "false")
    )
    assert unhealed == healed + 1


def test_a_stop_followed_by_the_same_text_is_neither_lost_nor_doubled(run: Runner) -> None:
    value = run("""
        program main():
            "The fox "
            x = gen(stop="e", max_tokens=40)
            "e"
            fork 1 as b:
                " and"
            return [x, b[0].text]
        """)
    assert "e" not in value[0]


def test_select_takes_an_option_and_knows_all_probabilities(run: Runner) -> None:
    value = run("""
        program main():
            "The "
            animal = select("fox", "dog", "lazy dog", "fo")
            return [animal, animal.probs]
        """)
    assert value[0] in value[1]
    assert sum(value[1].values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"), [([], "at least one option"), (["a", ""], "empty"), (["a", "b", "a"], "'a' twice")]
)
def test_options_that_cannot_be_chosen_from_are_named(run: Runner, options: list[str], message: str) -> None:
    error = fault(
        run,
        """
        program main(options: list[str]):
            "The "
            fork 1 as b:
                x = select(options=options)
        """,
        options=options,
    )
    assert message in error.message
    assert error.path == ("b[0]",)


def test_an_option_that_reads_like_a_control_token_is_text(run: Runner) -> None:
    value = run("""
        program main():
            "The "
            x = select("<|im_end|>", "<|im_end|>!")
            return [x, x.probs]
        """)
    assert value[0].startswith("<|im_end|>")
    assert sum(value[1].values()) == pytest.approx(1, abs=1e-6)


def test_one_option_needs_no_model(run: Runner) -> None:
    outcome = run.outcome("""
        program main():
            "The "
            animal = select(options=["fox"])
            return animal
        """)
    assert outcome.result == "fox"
    assert outcome.usage.calls == 0


def test_score_leaves_the_prompt_as_it_was(run: Runner) -> None:
    likely, answer, alone = run("""
        program main():
            "The quick brown"
            fork as b:
                arm scored:
                    s = score(" fox")
                    x = gen(max_tokens=6)
                arm plain:
                    x = gen(max_tokens=6)
            return [b.scored.s, b.scored.x, b.plain.x]
        """)
    assert likely < 0
    assert answer == alone


# Forks ---------------------------------------------------------------------------------------------------------


def test_branches_share_the_prefix_and_leave_the_parent_alone(run: Runner) -> None:
    outcome = run.outcome("""
        program main():
            "The quick brown fox jumps over the lazy dog. "
            fork 4 as b:
                "Branch:"
                x = gen(max_tokens=4, temperature=1)
            "After."
            y = gen(max_tokens=4)
            return [[one.x for one in b], y]
        """)
    assert len(outcome.result[0]) == 4
    assert outcome.usage.computed_tokens <= outcome.usage.optimal_tokens + outcome.usage.calls


def test_branch_results_come_in_branch_order_with_their_fields(run: Runner) -> None:
    value = run("""
        program main():
            fork word in ["fox", "dog", "hill"] as b:
                "The ${word}"
                n = len(word)
            return [[one.index, one.word, one.n, one.text] for one in b]
        """)
    assert value == [[0, "fox", 3, "The fox"], [1, "dog", 3, "The dog"], [2, "hill", 4, "The hill"]]


def test_keep_best_keeps_the_best_in_branch_order(run: Runner) -> None:
    value = run("""
        program main():
            fork score in [2, 5, 5, 1, 4] as b:
                "The dog"
                keep 3 by score
            return [one.index for one in b]
        """)
    assert value == [1, 2, 4]


def test_keep_where_prunes_at_once(run: Runner) -> None:
    value = run("""
        program main():
            fork n in range(6) as b:
                keep where n % 2 == 0
                "The dog"
                x = gen(max_tokens=2)
            return [one.n for one in b]
        """)
    assert value == [0, 2, 4]


def test_keep_first_ends_the_slower_ones(run: Runner) -> None:
    outcome = run.outcome("""
        program main():
            "The fox: "
            fork n in [30, 2, 30] as b:
                x = gen(max_tokens=n, min_tokens=n)
                keep first 1
            return [one.n for one in b]
        """)
    assert outcome.result == [2]
    assert outcome.usage.generated_tokens < 62


def test_keeping_none_is_an_error_unless_allowed(run: Runner) -> None:
    program = """
        program main():
            fork n in [1, 2] as b{}:
                keep where n > 2
            return len(b)
        """
    assert run(program.format(" or none")) == 0
    assert "no branch of b" in fault(run, program.format("")).message


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_fork_of_any_size_before_any_text(run: Runner, count: int) -> None:
    value = run(
        """
        program main(n: int):
            fork n as b:
                x = gen(max_tokens=2)
            return len(b)
        """,
        n=count,
    )
    assert value == count


def test_forks_nest_and_keeps_belong_to_the_inner_one(run: Runner) -> None:
    value = run("""
        program main():
            fork i in range(3) as outer:
                fork j in range(3) as inner:
                    keep 1 by j * (1 if i != 1 else -1)
                best = inner[0].j
                keep 2 by i
            return [[one.i, one.best] for one in outer]
        """)
    assert value == [[1, 0], [2, 2]]


def test_keep_in_a_loop_prunes_round_by_round(run: Runner) -> None:
    value = run("""
        program main():
            fork n in range(8) as b:
                for width in [4, 2, 1]:
                    keep width by n
            return [one.n for one in b]
        """)
    assert value == [7]


def test_adopt_takes_prompt_and_variables(run: Runner) -> None:
    value = run("""
        program main():
            "The fox"
            fork tail in [" runs", " sleeps"] as b:
                "${tail} over"
                length = len(tail)
            adopt b[1]
            x = gen(max_tokens=5)
            return [length, tail, x]
        """)
    straight = run("""
        program main():
            "The fox sleeps over"
            x = gen(max_tokens=5)
            return x
        """)
    assert value == [7, " sleeps", straight]


def test_a_branch_gives_what_it_gives_alone(run: Runner) -> None:
    program = """
        program main(words: list[str], only: int):
            "The quick brown fox. "
            fork i in range(len(words)) as b or none:
                keep where only < 0 or i == only
                "The ${words[i]}"
                x = gen(max_tokens=8, temperature=1)
            return [one.x for one in b]
        """
    words = ["fox", "dog", "hill", "lazy dog"]
    together = run(program, words=words, only=-1)
    assert [run(program, words=words, only=index)[0] for index in range(4)] == together


WIDE = """
    program main(words: list[str]):
        "The quick brown fox jumps over the lazy dog. "
        fork word in words as b:
            "The ${word}"
            x = gen(max_tokens=20, temperature=1)
        return [one.x for one in b]
    """


@pytest.mark.slow
def test_a_fork_wider_than_the_pool_gives_what_it_gives_with_room(run: Runner) -> None:
    words = [f"fox {number}" for number in range(20)]
    roomy = run(WIDE, words=words)
    assert run(WIDE, tiny_engine(tokens=70), words=words) == roomy


def test_a_branch_that_does_not_fit_fails_the_fork_and_leaves_nothing_behind(run: Runner) -> None:
    interpreter = run.interpreter(WIDE, tiny_engine(tokens=70))
    with pytest.raises(RunError, match="KV pool of 70 tokens"):
        interpreter.wait(interpreter.start("main", {"words": ["fox", "dog", "lazy " * 60]}))
    run.engine.check()
    assert not any(node.holds or node.uses or node.locks for node in run.engine.tree.nodes())
    assert interpreter.wait(interpreter.start("main", {"words": ["fox"]})).result


def test_a_failing_branch_is_named_and_fails_the_fork(run: Runner) -> None:
    error = fault(
        run,
        """
        program main():
            fork n in [1, 0, 2] as parts:
                "The dog"
                x = gen(max_tokens=3)
                y = 6 / n
            return [one.y for one in parts]
        """,
    )
    assert error.path == ("parts[1]",)
    assert error.span.position.line == 5


def test_a_reused_fork_name_loses_nothing(run: Runner) -> None:
    value = run("""
        program main():
            seen = []
            for base in [10, 20]:
                fork n in [1, 2] as b:
                    v = base + n
                seen = seen + [one.v for one in b]
            return seen
        """)
    assert value == [11, 12, 21, 22]


# Calls, fragments, control flow ------------------------------------------------------------------------------


def test_calls_run_side_by_side_on_prompts_of_their_own(run: Runner) -> None:
    outcome = run.outcome("""
        program main():
            a = ask("fox")
            b = ask("dog")
            return [a, b]

        program ask(word: str):
            "The ${word}"
            x = gen(max_tokens=10, min_tokens=10)
            return x
        """)
    assert outcome.usage.forwards <= 12


def test_a_failed_call_is_reported_where_it_failed_though_nobody_reads_it(run: Runner) -> None:
    error = fault(
        run,
        """
        program main():
            a = ask(0)
            "The fox"
            x = gen(max_tokens=2)
            return x

        program ask(n: int):
            return 1 / n
        """,
    )
    assert error.span.position.line == 8
    assert error.path == ("ask()",)


def test_endless_recursion_is_an_error(run: Runner) -> None:
    assert (
        "deeper"
        in fault(
            run,
            """
        program main():
            x = main()
            return x
        """,
        ).message
    )


def test_a_fragment_writes_here_with_variables_of_its_own(run: Runner) -> None:
    value = run("""
        fragment greet(word: str, times: int = 2):
            x = word * times
            "Hello ${x}!"

        program main():
            x = 1
            fork 1 as b:
                use greet("fox")
                use greet("dog", times=1)
            return [x, b[0].text]
        """)
    assert value == [1, "Hello foxfox!Hello dog!"]


def test_loops_break_continue_and_end(run: Runner) -> None:
    value = run("""
        program main():
            seen = []
            for n in range(10):
                if n == 2:
                    continue
                elif n == 5:
                    break
                else:
                    seen = seen + [n]
            n = 0
            while n < 100 limit 7:
                n = n + 1
            return [seen, n]
        """)
    assert value == [[0, 1, 3, 4], 7]


def test_a_loop_without_end_is_stopped(run: Runner) -> None:
    assert (
        "64 rounds"
        in fault(
            run,
            """
        program main():
            n = 0
            while n < 1000:
                n = n + 1
            return n
        """,
        ).message
    )


def test_turns_are_rendered_by_the_template(run: Runner) -> None:
    outcome = run.outcome("""
        program main():
            system: "Be brief."
            user: "How are you?"
            assistant: x = gen(max_tokens=4)
            user: "And the dog?"
            assistant: y = gen(max_tokens=4)
            return [x, y]
        """)
    engine = run.engine
    x, _ = outcome.result
    whole = engine.tokenizer.render(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How are you?"},
            {"role": "assistant", "content": x},
            {"role": "user", "content": "And the dog?"},
        ],
        add_generation_prompt=True,
    )
    cached = max(("".join(_spelled(engine, node)) for node in engine.tree.nodes()), key=len)
    assert cached.startswith(whole)


def _spelled(engine: Engine, node: Any) -> list[str]:
    names = {token: name for name, token in engine.tokenizer.special_tokens.items()}
    tokens = engine.tree.tokens_of(node).tolist()
    text, plain = [], []
    for token in tokens:
        if token in names:
            text += [engine.tokenizer.decode(plain), names[token]]
            plain = []
        else:
            plain.append(token)
    return [*text, engine.tokenizer.decode(plain)]


# Reproducible, and without a cache the same -------------------------------------------------------------------

MIXED = """
    program main(topic: str):
        system: "Be brief about ${topic}."
        user: "Which animal?"
        assistant: animal = select("fox", "dog", "lazy dog")
        fork 3 as drafts:
            user: "Say something."
            assistant: body = gen(max_tokens=8, temperature=1, stop="\\n")
            user: "Rate it."
            assistant: rating = gen(int in 1..5, temperature=1)
            keep 2 by rating
        adopt drafts[0]
        assistant: last = gen(max_tokens=4)
        return [animal, [one.body for one in drafts], rating, last]
    """


@pytest.mark.parametrize("options", [{"shares": False}, {"tokens_a_step": 16}, {"answers_at_once": 2}, {"tokens": 220}])
def test_results_do_not_depend_on_how_the_engine_runs(run: Runner, options: dict[str, Any]) -> None:
    expected = run(MIXED, topic="foxes", seed=7)
    assert run(MIXED, tiny_engine(**options), topic="foxes", seed=7) == expected


def test_another_seed_gives_another_run(run: Runner) -> None:
    assert run(MIXED, topic="foxes", seed=7) != run(MIXED, topic="foxes", seed=8)


def test_the_runs_of_two_tenants_share_nothing_and_those_of_one_share_all(run: Runner) -> None:
    interpreter = run.interpreter("""
        program main():
            user: "The quick brown fox jumps over the lazy dog."
            assistant: x = select(" the dog", " the fox", by="prior")
            y = tell("The lazy dog sleeps.")
            return [x, y]

        program tell(text: str):
            "${text}"
            fork 2 as b:
                " And "
                z = gen(int in 1..9)
            return b[0].z
        """)

    def cost(tenant: str) -> Usage:
        usage = Usage()
        interpreter.wait(interpreter.start("main", {}, usage=usage, more_follow=True, namespace=(tenant,)))
        return usage

    first, other, again = cost("a"), cost("b"), cost("a")
    assert first.computed_tokens == other.computed_tokens
    assert again.computed_tokens < other.computed_tokens / 3
    assert first.requested_tokens == again.requested_tokens


@pytest.mark.slow
def test_rows_beside_each_other_give_what_each_gives_alone(run: Runner) -> None:
    interpreter = run.interpreter(MIXED, seed=3)
    graph = run.graphs["main"]
    topics = ["foxes", "dogs", "hills", "the lazy"]
    tasks = [interpreter.start("main", {"topic": topic}, row=row) for row, topic in enumerate(topics)]
    together = [to_json(interpreter.wait(task).result) for task in tasks]
    for row, topic in enumerate(topics):
        alone = run.interpreter(MIXED, seed=3)
        assert to_json(alone.wait(alone.start(graph.name, {"topic": topic}, row=row)).result) == together[row]


class PinWatcher(SilentObserver):
    """Takes down, at each `log`, how many tokens are pinned."""

    def __init__(self, **options: Any) -> None:
        self.engine = tiny_engine(**options)
        self.pinned: list[int] = []

    def log(self, path: tuple[str, ...], text: str) -> None:
        self.pinned.append(self.engine.tree.pinned)


@pytest.mark.parametrize("text", ["The quick brown fox jumps over the lazy dog.", "The quick brown fox "])
@pytest.mark.parametrize("answer", ["gen(max_tokens=1)", "gen(max_tokens=4)", 'select("cat", "dog")'])
def test_a_pin_is_locked_until_the_run_ends(run: Runner, text: str, answer: str) -> None:
    watcher = PinWatcher()
    run.outcome(
        f"""
        program main():
            "{text}"
            pin
            x = {answer}
            y = gen(max_tokens=3)
            log "now"
            return y
        """,
        watcher.engine,
        observer=watcher,
    )
    assert watcher.pinned[0] >= len(run.engine.tokenizer.encode(text)) - 1
    assert run.engine.tree.locked == 0


@pytest.mark.parametrize(
    "pinning", ["pin", "fork 2 as b:\n            pin\n            x = gen(max_tokens=1, temperature=1)"]
)
def test_a_pin_of_a_withdrawn_attempt_is_let_go(run: Runner, pinning: str) -> None:
    watcher = PinWatcher()
    with pytest.raises(RunError):
        run.outcome(
            f"""
program main():
    user: "The quick brown fox."
    pin
    assistant: z = gen(max_tokens=1)
    user: "Go on."
    assistant:
        log "begin"
        "The lazy dog sleeps."
        {pinning}
        y = gen(max_tokens=2)
        log "end"
    require len(y) > 1000 else retry 2
""",
            watcher.engine,
            observer=watcher,
        )
    begin, end, *more = watcher.pinned
    assert 0 < begin < end
    assert more == [begin, end] * 2
    watcher.engine.check()
    assert watcher.engine.tree.pinned == 0


def test_a_pin_of_a_branch_stays_when_another_is_adopted(run: Runner) -> None:
    watcher = PinWatcher()
    run.outcome(
        """
        program main():
            "The quick brown fox."
            fork text in ["The lazy dog sleeps.", "The dog runs over the hill."] as b:
                "${text}"
                pin
                x = gen(max_tokens=1)
            log "before"
            adopt b[0]
            log "adopted"
            y = gen(max_tokens=2)
            log "after"
            return y
        """,
        watcher.engine,
        observer=watcher,
    )
    before, *later = watcher.pinned
    assert before > 0
    assert later == [before, before]
    assert watcher.engine.tree.pinned == 0


# Arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [({}, "'n'"), ({"n": "three"}, "n"), ({"n": 3, "m": 1}, "'m'"), ({"n": 9}, "n")],
)
def test_arguments_that_do_not_fit_are_named(run: Runner, given: dict[str, Any], message: str) -> None:
    run.interpreter("program main(n: int in 1..5):\n    return n")
    with pytest.raises(ArgumentsError, match=message):
        bind_arguments(run.graphs["main"], given)


# Log-probabilities -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["", "int in 1..99, ", "float in 0..1, ", '"yes" | "no", '])
def test_an_answer_tells_the_log_probabilities_of_its_tokens(run: Runner, shape: str) -> None:
    told, plain, total = run(
        f"""
        program main():
            "The quick brown "
            fork 1 as b:
                x = gen({shape}logprobs=true, max_tokens=9, temperature=1)
                told = x.logprobs
            fork 1 as c:
                x = gen({shape}max_tokens=9, temperature=1)
            return [told_of(b), b[0].x, b[0].logprob] if false else [b[0].told, b[0].x, b[0].logprob]
        """.replace("[told_of(b), b[0].x, b[0].logprob] if false else ", "")
    )
    assert told
    assert all(value <= 0 for value in told)
    assert sum(told) == pytest.approx(total)
    assert type(plain) in (str, int, float)


def test_an_answer_with_log_probabilities_is_the_value_it_was(run: Runner) -> None:
    values = run("""
        program main():
            "The quick brown "
            x = gen(int in 1..99, logprobs=true)
            y = gen(max_tokens=4, logprobs=true)
            return [x + 1 > x, [1, 2, 3][x % 3], "${x}" == str(x), x, y.upper(), len(y), {"x": x}]
        """)
    assert values[0] is values[2] is True
    assert values[6] == {"x": values[3]}


def test_a_stop_string_has_no_log_probabilities(run: Runner) -> None:
    text, count = run(
        """
        program main():
            "The quick brown "
            x = gen(max_tokens=20, stop="e", temperature=2, logprobs=true)
            return [x, len(x.logprobs)]
        """,
        seed=3,
    )
    assert "e" not in text
    assert count <= len(run.engine.tokenizer.encode(text)) + 1


def test_an_answer_without_room_beside_what_is_pinned_is_a_fault_of_its_statement(run: Runner) -> None:
    caught = fault(
        run,
        f"""
        program main():
            "{"the dog " * 13}."
            pin
            word = gen(max_tokens=1)
            x = large(word)
            log x

        program large(word: str):
            "A {"the dog " * 13} ${{word}}."
            y = gen(max_tokens=24)
            return y
        """,
        engine=tiny_engine(tokens=64),
    )
    assert caught.span.text == "y = gen(max_tokens=24)"
    assert "64 tokens" in caught.message
