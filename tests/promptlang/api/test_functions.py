"""Functions as programs: how they are called, what they may say, how they end."""

import asyncio
import inspect
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

import promptlang as pl
import promptlang.session.opening as opening
from promptlang.interpreter.guests import MOST_PATIENCE


@pl.program
def ask(p: pl.Prompt, question: str, times: int = 1) -> str:
    """Answer a question."""
    p.user(question)
    with p.assistant():
        return p.gen(max_tokens=4) * times


# How they are called ---------------------------------------------------------------------------------------


def test_callers_see_a_function_without_its_prompt() -> None:
    assert str(inspect.signature(ask)) == "(question: str, times: int = 1) -> str"
    assert (ask.__name__, ask.__doc__) == ("ask", "Answer a question.")


def test_wrong_arguments_fail_before_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    with pytest.raises(TypeError, match="question"):
        ask()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="answer"):
        ask("Why?", answer=3)  # type: ignore[call-arg]


class Desk:
    kind = "desk"

    def __init__(self, tone: str) -> None:
        self.tone = tone

    @pl.program
    def reply(self, p: pl.Prompt, ticket: str) -> tuple[str, str]:
        """Reply to a ticket."""
        p.text(f"{self.tone}: {ticket}")
        return self.tone, p.gen(max_tokens=2)

    @pl.program
    async def later(self, p: pl.AsyncPrompt, ticket: str) -> str:
        p.text(ticket)
        return self.tone + await p.gen(max_tokens=2)

    @pl.program
    def untyped(self, p, ticket):  # type: ignore[no-untyped-def]
        p.text(ticket)
        return self.tone

    @pl.program
    @classmethod
    def kinds(cls, p: pl.Prompt, ticket: str) -> str:
        p.text(ticket)
        return cls.kind

    @pl.program
    @staticmethod
    def fixed(p: pl.Prompt, ticket: str) -> str:
        p.text(ticket)
        return "fixed"

    @staticmethod
    @pl.program
    def fixed_too(p: pl.Prompt, ticket: str) -> str:
        p.text(ticket)
        return "fixed"


class LateDesk(Desk):
    kind = "late desk"

    @pl.program
    def reply(self, p: pl.Prompt, ticket: str) -> tuple[str, str]:
        return super().reply(f"late: {ticket}")


def test_a_method_is_a_program_of_its_object() -> None:
    desk = Desk("calm")
    assert str(inspect.signature(desk.reply)) == "(ticket: str) -> tuple[str, str]"
    assert desk.reply.__doc__ == Desk.reply.__doc__ == "Reply to a ticket."
    assert desk.reply("late")[0] == "calm"
    assert Desk.reply(desk, "late") == desk.reply(ticket="late")
    assert list(desk.reply.batch([{"ticket": "late"}])) == [desk.reply("late")]
    assert LateDesk("calm").reply("lost") == desk.reply("late: lost")
    assert asyncio.run(desk.later("late")).startswith("calm")
    assert desk.untyped(ticket="late") == "calm"
    with pytest.raises(TypeError, match="ticket"):
        desk.reply()  # type: ignore[call-arg]


def test_a_class_has_programs_as_it_has_methods() -> None:
    assert (Desk.kinds("a"), LateDesk.kinds("a"), LateDesk("calm").kinds(ticket="a")) == (
        "desk",
        "late desk",
        "late desk",
    )
    assert {one("a") for one in (Desk.fixed, Desk("calm").fixed, Desk.fixed_too, Desk("calm").fixed_too)} == {"fixed"}


def test_a_program_that_a_class_holds_is_no_method() -> None:
    class Holds:
        asks = ask

    assert Holds().asks("Why?") == ask("Why?")


def test_its_source_is_not_read() -> None:
    names: dict[str, Any] = {"pl": pl}
    exec("@pl.program\ndef said(p, word):\n    p.text(word)\n    return p.gen(max_tokens=2)", names)
    assert names["said"](word="fox") == names["said"]("fox")


def no_prompt() -> None:
    """Takes none."""


def late_prompt(ticket: str, more: str, p: pl.Prompt) -> None:
    """Takes it too late."""


def somewhere(*args: Any, **kwargs: Any) -> None:
    """Takes it somewhere."""


def generator(p: pl.Prompt) -> Any:
    yield p.gen()


async def async_generator(p: pl.AsyncPrompt) -> Any:
    yield await p.gen()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_prompt, "first parameter"),
        (late_prompt, "first parameter, not 'p'"),
        (somewhere, "first parameter"),
        (generator, "generator"),
        (async_generator, "generator"),
    ],
)
def test_what_is_no_program_is_refused_by_name(function: Any, said: str) -> None:
    with pytest.raises(pl.UsageError, match=said) as refused:
        pl.program(function)
    assert function.__name__ in str(refused.value)


def test_options_collide_with_no_parameter() -> None:
    @pl.program
    def draw(p: pl.Prompt, seed: str, timeout: str) -> str:
        p.text(seed + timeout)
        return p.gen(max_tokens=8, temperature=2)

    assert draw.using(seed=1, timeout=60)(seed="a", timeout="b") != draw.using(seed=2)(seed="a", timeout="b")


# What they may say -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("say", "said"),
    [
        (lambda p: p.assistant() and p.text("a"), "with p.assistant"),
        (lambda p: p.user("${a} ${b}", a=1), "b"),
        (lambda p: p.user("${a}", a=1, b=2), "b"),
        (lambda p: p.fork(2), "function"),
        (lambda p: p.fork(2, lambda b: p.text("from the parent")), "branch"),
        (lambda p: p.adopt(p.fork(2, lambda b: b.keep())[0]), "keep"),
        (lambda p: p.fork(1, lambda b: b.value), "over"),
        (lambda p: p.gen(max_token=3), "max_tokens"),
        (lambda p: p.select(["a"], temprature=1), "temperature"),
        (lambda p: [p.text("a") for _ in p.attempts(3)], "block"),
        (lambda p: list(p.attempts(-1)), "retries"),
        (lambda p: p.text(3), "str"),
        (lambda p: p.user("\ud83d"), "half a character"),
    ],
)
def test_what_can_not_stand_is_refused(say: Any, said: str) -> None:
    with pytest.raises(pl.UsageError, match=said):
        pl.program(say)()


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 0},
        {"max_tokens": True},
        {"max_tokens": 2.5},
        {"min_tokens": 3, "max_tokens": 2},
        {"temperature": float("nan")},
        {"temperature": -1},
        {"top_p": 1.5},
        {"repetition_penalty": 0},
        {"stop": ["a", ""]},
        {"stop": 3},
        {"seed": object()},
    ],
)
def test_an_option_without_a_meaning_is_refused_by_name(options: dict[str, Any]) -> None:
    @pl.program
    def bad(p: pl.Prompt) -> str:
        p.text("a")
        return p.gen(**options)

    with pytest.raises(pl.RunError, match=next(iter(options))):
        bad()


def test_a_branch_of_another_run_is_not_adopted() -> None:
    kept: list[pl.Branch] = []

    @pl.program
    def first(p: pl.Prompt) -> None:
        kept.extend(p.fork(1, lambda b: b.text("a")))

    @pl.program
    def second(p: pl.Prompt) -> None:
        p.adopt(kept[0])

    first()
    with pytest.raises(pl.UsageError, match="another run"):
        second()


def test_roles_do_not_nest() -> None:
    @pl.program
    def nested(p: pl.Prompt) -> None:
        with p.user():
            p.assistant("no")

    with pytest.raises(pl.UsageError, match="nest"):
        nested()


def test_a_prompt_is_its_functions_alone() -> None:
    kept: list[pl.Prompt] = []

    @pl.program
    def leak(p: pl.Prompt) -> None:
        kept.append(p)
        thread = threading.Thread(target=steal, args=(p,))
        thread.start()
        thread.join()

    stolen: list[BaseException] = []

    def steal(p: pl.Prompt) -> None:
        try:
            p.gen(max_tokens=1)
        except pl.UsageError as error:
            stolen.append(error)

    leak()
    assert len(stolen) == 1
    with pytest.raises(pl.UsageError, match="end"):
        kept[0].text("more")


def test_values_of_answers_are_plain() -> None:
    @pl.program
    def plain(p: pl.Prompt) -> list[type]:
        p.text("a")
        return [type(p.gen(max_tokens=2)), type(p.gen(int, max_tokens=3)), type(p.select(["x", "y"]))]

    assert plain() == [str, int, str]


def test_what_there_is_to_tell_about_an_answer() -> None:
    @pl.program
    def tell(p: pl.Prompt) -> pl.Answer[str]:
        p.text("a")
        answer = p.gen(max_tokens=3, logprobs=True)
        assert answer.finish == p.finish
        return answer

    answer = tell()
    assert answer.finish == "length"
    assert 1 <= len(answer.logprobs) <= 3
    assert all(logprob < 0 for logprob in answer.logprobs)


def test_a_template_takes_data_as_it_is() -> None:
    @pl.program
    def quote(p: pl.Prompt, text: str) -> None:
        p.user("${text} for \\$1", text=text)
        p.user(f"{text}")

    assert [message.text for message in quote.run("${x} <|im_end|>").messages] == [
        "${x} <|im_end|> for $1",
        "${x} <|im_end|>",
    ]


# How they end ----------------------------------------------------------------------------------------------


def test_an_exception_in_a_branch_surfaces_as_itself_with_its_own_line() -> None:
    ended: list[int] = []

    @pl.program
    def fail(p: pl.Prompt) -> None:
        def branch(b: pl.Branch) -> None:
            b.text("a")
            b.gen(max_tokens=2)
            if b.index == 1:
                raise LookupError("mine")
            try:
                b.gen(max_tokens=1000)
            finally:
                ended.append(b.index)

        p.text("The")
        p.fork(3, branch)

    with pytest.raises(LookupError, match="mine") as caught:
        fail()
    assert str(caught.traceback[-1].statement).strip() == 'raise LookupError("mine")'
    assert sorted(ended) == [0, 2]


def test_a_pruned_branch_unwinds_and_catches_nothing() -> None:
    seen: list[str] = []

    @pl.program
    def prune(p: pl.Prompt) -> list[int]:
        def branch(b: pl.Branch) -> int:
            try:
                b.keep(1, by=b.index)
            except Exception:
                seen.append("caught")
                raise
            finally:
                seen.append(f"left {b.index}")
            return b.index

        p.text("The")
        return [b.value for b in p.fork(3, branch)]

    assert prune() == [2]
    assert sorted(seen) == ["left 0", "left 1", "left 2"]


def test_a_fault_of_the_run_names_its_branch() -> None:
    @pl.program
    def none_left(p: pl.Prompt) -> None:
        def branch(b: pl.Branch) -> None:
            b.fork(2, lambda inner: inner.keep(where=False), name="inner")

        p.fork(2, branch, name="outer")

    with pytest.raises(pl.RunError, match="or none") as caught:
        none_left()
    assert caught.value.path == ("outer[0]",)


def test_what_nobody_waited_for_fails_the_run() -> None:
    @pl.program
    def inner(p: pl.Prompt) -> None:
        raise LookupError("lost")

    @pl.program
    def outer(p: pl.Prompt) -> str:
        p.call(inner)
        return "fine"

    with pytest.raises(LookupError, match="lost"):
        outer()


def test_the_last_attempt_that_fails_is_a_fault() -> None:
    @pl.program
    def never(p: pl.Prompt) -> None:
        for attempt in p.attempts(2):
            with attempt:
                p.text("a")
                attempt.require(attempt.number > 5, "no good")

    with pytest.raises(pl.RunError, match=r"no good \(after 2 retries\)"):
        never()


def test_a_run_takes_no_longer_than_it_is_given(engine: pl.Engine) -> None:
    unwound: list[str] = []

    @pl.program
    def slow(p: pl.Prompt) -> None:
        p.text("a")
        try:
            while True:
                p.gen(max_tokens=100)
        except Exception:
            unwound.append("caught")
        finally:
            unwound.append("left")

    with pytest.raises(pl.Timeout):
        slow.using(timeout=0.05)()
    assert unwound == ["left"]
    assert ask("And now?") == ask("And now?")


def test_cancelling_a_task_ends_its_run() -> None:
    began, left = threading.Event(), threading.Event()

    @pl.program
    async def slow(p: pl.AsyncPrompt) -> None:
        p.text("a")
        try:
            while True:
                began.set()
                await p.gen(max_tokens=100)
        finally:
            left.set()

    async def main() -> None:
        task = asyncio.create_task(slow())
        await asyncio.to_thread(began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert left.is_set()


# Beside one another ----------------------------------------------------------------------------------------


def test_a_race_does_not_wait_for_a_branch_that_calls_a_function() -> None:
    """It has said less than the other, which would decide if it could go on."""
    arrived = threading.Event()

    @pl.program
    def race(p: pl.Prompt) -> list[str]:
        p.text("a")

        def runner(b: pl.Branch) -> str:
            if b.index == 0:
                b.tool(arrived.wait, 60)
                return "late"
            b.gen(max_tokens=20, min_tokens=20)
            b.keep(first=1)
            arrived.set()
            return "first"

        return [branch.value for branch in p.fork(2, runner)]

    try:
        assert "first" in race()
        assert arrived.is_set()
    finally:
        arrived.set()


def test_branches_step_in_one_batch() -> None:
    @pl.program
    def side_by_side(p: pl.Prompt, count: int) -> None:
        p.text("The")

        def branch(b: pl.Branch) -> None:
            b.text(f" {b.index}")
            b.gen(max_tokens=6, min_tokens=6)

        p.fork(count, branch)

    passes = [side_by_side.run(count).usage.forwards for count in (1, 8)]
    assert passes[1] <= passes[0] + 2


def test_a_branch_that_blocks_holds_nobody_elses_model() -> None:
    @pl.program
    def blocks(p: pl.Prompt) -> None:
        p.text("a")
        p.gen(max_tokens=1)
        time.sleep(3 * MOST_PATIENCE)

    with ThreadPoolExecutor(2) as pool:
        blocking = pool.submit(blocks)
        asked = [pool.submit(ask, "Why?") for _ in range(3)]
        assert len({one.result() for one in asked}) == 1
        assert not blocking.done()


def test_branches_have_context_variables_of_their_own() -> None:
    name: ContextVar[str] = ContextVar("name", default="nobody")

    @pl.program
    def names(p: pl.Prompt) -> list[str]:
        name.set("parent")

        def branch(b: pl.Branch) -> str:
            before = name.get()
            name.set(f"branch {b.index}")
            b.text("a")
            b.gen(max_tokens=2)
            return f"{before}, {name.get()}"

        found = [b.value for b in p.fork(2, branch)]
        return [*found, name.get()]

    assert names() == ["parent, branch 0", "parent, branch 1", "parent"]
    assert name.get() == "nobody"


@pl.program
def race(p: pl.Prompt, question: str) -> list[str]:
    p.text(question)

    def branch(b: pl.Branch) -> str:
        b.text(" then")
        said = b.gen(max_tokens=4, temperature=1)
        b.keep(2, by=len(said))
        return said

    branches = p.fork(4, branch)
    p.adopt(branches[0])
    return [*(branch.value for branch in branches), p.gen(max_tokens=2)]


def test_a_hundred_threads_give_what_one_gives() -> None:
    questions = [f"Question {number % 37} of {number}" for number in range(100)]
    alone = [race(question) for question in questions]
    with ThreadPoolExecutor(100) as pool:
        assert list(pool.map(race, questions)) == alone


def test_a_hundred_tasks_give_what_one_gives() -> None:
    questions = [f"Question {number % 37} of {number}" for number in range(100)]

    async def main() -> list[list[str]]:
        return await asyncio.gather(*(race.acall(question) for question in questions))

    assert asyncio.run(main()) == [race(question) for question in questions]


def edges(found: tuple[Any, ...]) -> Any:
    for edge in found:
        yield edge
        yield from edges(edge.children)


@pytest.mark.parametrize("how", ["timeout", "exception", "batch"])
def test_what_ends_early_holds_nothing(engine: pl.Engine, how: str) -> None:
    @pl.program
    def endless(p: pl.Prompt, fails: bool) -> None:
        p.text("The")

        def branch(b: pl.Branch) -> None:
            b.text(f" {b.index}")
            for _ in range(1000):
                b.gen(max_tokens=5)
                if fails and b.index == 1:
                    raise LookupError

        p.fork(3, branch)

    if how == "batch":
        rows = endless.batch([{"fails": True}, *[{"fails": False}] * 5], at_once=6)
        with pytest.raises(LookupError):
            next(rows)
    else:
        with pytest.raises((pl.Timeout, LookupError)):
            endless.using(timeout=0.05)(fails=how == "exception")
    assert [(edge.locks, edge.holders) for edge in edges(engine.cache.roots) if edge.locks or edge.holders] == []


def test_many_programs_run_on_one_thread() -> None:
    threads: set[int] = set()

    @pl.program
    def where(p: pl.Prompt, number: int) -> int:
        p.text(f"Number {number}")
        p.gen(max_tokens=1)
        threads.add(threading.get_ident())
        return number

    rows = ({"number": number} for number in range(200))
    assert list(where.batch(rows, at_once=100)) == list(range(200))
    assert threads == {threading.get_ident()}


def test_a_plain_call_works_under_a_running_event_loop() -> None:
    async def main() -> list[str]:
        return [ask("Why?"), await ask.acall("Why?"), ask("Why?")]

    assert len(set(asyncio.run(main()))) == 1


def test_a_batch_reads_rows_as_there_is_room_and_gives_faults_where_asked() -> None:
    read: list[int] = []

    def rows() -> Any:
        for number in range(1000):
            read.append(number)
            yield {"question": str(number)} if number != 1 else {"nothing": 0}

    batch = ask.batch(rows(), at_once=2, on_error="return")
    first, second = next(batch), next(batch)
    assert isinstance(first, str)
    assert isinstance(second, TypeError)
    assert len(read) < 50
    batch.close()
    with pytest.raises(TypeError):
        list(ask.batch([{"question": "a"}, {}]))


def test_rows_may_come_as_they_end() -> None:
    @pl.program
    def write(p: pl.Prompt, count: int) -> int:
        p.text("a")
        p.gen(max_tokens=count, min_tokens=count)
        return count

    counts = [40, 1, 20]
    ended = list(write.batch(({"count": count} for count in counts), ordered=False))
    assert sorted(ended) == [(0, 40), (1, 1), (2, 20)]
    assert ended[0] == (1, 1)


def test_a_tool_runs_beside_the_model() -> None:
    @pl.program
    def uses(p: pl.Prompt) -> list[int]:
        def branch(b: pl.Branch) -> int:
            return b.tool(lambda number: threading.get_ident(), 1)

        return [b.value for b in p.fork(2, branch)]

    assert threading.get_ident() not in uses()


@pytest.mark.parametrize("begins", ["at once", "late"])
def test_nobody_waits_for_a_branch_in_a_tool_to_be_the_first(begins: str) -> None:
    kept = threading.Event()

    @pl.program
    def first(p: pl.Prompt) -> list[int]:
        def branch(b: pl.Branch) -> int:
            if b.index == 0:
                if begins == "late":
                    ask("Something else?")
                b.tool(kept.wait, 20)
            b.keep(first=1)
            return b.index

        return [b.value for b in p.fork(2, branch)]

    assert first() == [1]
    kept.set()


def test_nobody_waits_for_a_task_in_a_tool_to_be_the_first() -> None:
    kept = threading.Event()

    @pl.program
    async def first(p: pl.AsyncPrompt) -> list[int]:
        async def branch(b: pl.AsyncBranch) -> int:
            if b.index == 0:
                await asyncio.sleep(0.01)
                await b.tool(kept.wait, 20)
            await b.keep(first=1)
            return b.index

        return [b.value for b in await p.fork(2, branch)]

    assert asyncio.run(first()) == [1]
    kept.set()


# Engines ---------------------------------------------------------------------------------------------------


def test_closing_an_engine_ends_its_runs() -> None:
    started = threading.Event()

    @pl.program
    def endless(p: pl.Prompt) -> None:
        p.text("a")
        while True:
            p.gen(max_tokens=50)
            started.set()

    engine = pl.Engine()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(endless.using(engine=engine))
        started.wait()
        engine.close()
        with pytest.raises(pl.EngineError, match="closed"):
            running.result(timeout=30)
    with pytest.raises(pl.EngineError, match="closed"):
        ask.using(engine=engine)("Why?")


def test_no_model_is_loaded_where_none_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTLANG_NO_MODEL", "1")
    with pytest.raises(pl.EngineError, match="PROMPTLANG_NO_MODEL"):
        ask("Why?")


def test_the_engine_counts_all_runs(engine: pl.Engine) -> None:
    before = engine.usage.calls if engine.lead() else 0
    ask("a")
    list(ask.batch([{"question": "b"}, {"question": "c"}]))
    assert engine.usage.calls == before + 3
