"""The examples, each as a file and as a function: the same answers and the same usage, token for token."""

import runpy
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from places import EXAMPLES

import promptlang as pl
from promptlang.api.data import to_data

COUNTED = ("requested_tokens", "computed_tokens", "generated_tokens", "forced_tokens", "option_tokens", "calls")
TOOLS = runpy.run_path(str(EXAMPLES / "agent_tools.py"))
Stars = Annotated[int, pl.Range(1, 5)]
Tens = Annotated[int, pl.Range(1, 10)]

Twin = Callable[..., Any]
TWINS: dict[str, Twin] = {}


def twin(function: Twin) -> Twin:
    TWINS[function.__name__] = function
    return function


@twin
def triage(p: pl.Prompt, **arguments: str) -> Any:
    function = runpy.run_path(str(EXAMPLES / "triage.py"))["triage"]
    return function._function(p, **arguments)


@twin
def chat(p: pl.Prompt, questions: list[str]) -> Any:
    p.system(constant("chat.pl", "TEACHER"))
    turns = []
    for question in questions:
        p.user(question)
        with p.assistant():
            answer = p.gen(max_tokens=40, stop="\n", repetition_penalty=1.05)
        turns.append({"question": question, "answer": answer})
    return turns


@twin
def tree_of_thought(p: pl.Prompt, goal: str) -> Any:
    p.system("You help people to make plans. Answer in one short sentence.")
    p.user(f"My goal: {goal}")
    p.assistant("Let us find a good plan.")
    warm: Any = {"max_tokens": 32, "temperature": 0.6, "top_p": 0.8, "stop": "\n"}

    def idea(b: pl.Branch) -> tuple[str, str, int]:
        b.user("Give me one idea for it.")
        with b.assistant():
            idea = b.gen(**warm)
        b.user("How good is that idea, from 1 to 10?")
        with b.assistant():
            idea_score = b.gen(Tens)
        b.keep(2, by=idea_score)

        def first_step(inner: pl.Branch) -> tuple[str, int]:
            inner.user("What would I do first?")
            with inner.assistant():
                step = inner.gen(**warm)
            inner.user("How easy is that, from 1 to 10?")
            with inner.assistant():
                step_score = inner.gen(Tens)
            inner.keep(1, by=step_score)
            return step, step_score

        steps = b.fork(2, first_step, name="steps")
        b.adopt(steps[0])
        step, step_score = steps[0].value
        return idea, step, idea_score + step_score

    best = max(p.fork(3, idea, name="ideas"), key=lambda branch: branch.value[2])
    p.adopt(best)
    found, step, total = best.value
    return {"idea": found, "step": step, "score": total}


@twin
def judge(p: pl.Prompt, text: str) -> Any:
    p.system("You are an editor. Answer in one short sentence.")
    p.user(f"Here is a product text.\n\n{text}")
    p.assistant("I have read it with care.")

    def reader(side: str, question: str) -> Callable[[pl.Branch], tuple[str, int]]:
        def read(b: pl.Branch) -> tuple[str, int]:
            b.user(question)
            with b.assistant():
                note = b.gen(max_tokens=32, stop="\n")
            b.user(f"Grade its {side} from 1 to 5.")
            with b.assistant():
                return note, b.gen(Stars)

        return read

    questions = {
        "clarity": "Is the text easy to understand?",
        "tone": "What does the text make the reader feel?",
        "honesty": "Which of its claims can a reader check?",
        "use": "Who would buy this, and what for?",
    }
    readers = {side: reader(side, question) for side, question in questions.items()}
    views = {side: branch.value for side, branch in p.fork(readers, name="views").items()}
    notes = "".join(f"- {side}, {mark}: {note}\n" for side, (note, mark) in views.items())
    p.user(f"Four readers gave these notes and grades (5 is best):\n{notes}What shall we do with the text?")
    with p.assistant():
        verdict = p.select(["publish", "revise", "reject"])
    return {
        "notes": [note for note, _ in views.values()],
        "grades": [mark for _, mark in views.values()],
        "verdict": verdict,
    }


@twin
def beam(p: pl.Prompt, topic: str) -> Any:
    p.system("You are a poet. You write short, simple lines.")
    p.user(f"Write a poem about {topic}, line by line.")

    def write(b: pl.Branch[tuple[float, list[str]]]) -> tuple[float, list[str]]:
        lines = b.previous[1] if b.previous else []
        b.user(f"Line {len(lines) + 1}, please. Only the line.")
        with b.assistant():
            for attempt in b.attempts(8):
                with attempt:
                    line = b.gen(max_tokens=20, temperature=0.9, top_p=0.9, stop="\n", logprobs=True)
                    attempt.require(line.value.strip() != "", "the model writes no line")
        likely = sum(line.logprobs) / len(line.logprobs)
        score = likely - 100 if line.value.strip() in lines else likely
        return score, [*lines, line.value.strip()]

    poems = p.beam(write, depth=3, width=2, branch=3, by=lambda found: found[0], name="poems")
    p.adopt(poems[0])
    score, lines = poems[0].value
    p.user("Which title fits it?")
    with p.assistant():
        title = p.gen(max_tokens=12, temperature=0.5, stop="\n")
    return {"title": title, "lines": lines, "score": round(score, 2)}


@twin
def agent(p: pl.Prompt, question: str) -> Any:
    p.system("You name the tool that a question needs, and then its arguments.")
    for asked, call in (
        ("Are there any eggs?", "stock(eggs)"),
        ("What is 3 times 4?", "multiply(3, 4)"),
        ("When do you close on Friday?", "hours(Friday)"),
        ("How many apples are left?", "stock(apples)"),
        ("How many pears do you have?", "stock(pears)"),
        ("How much are 20 pieces at 15 each?", "multiply(20, 15)"),
        ("Are you open on Sunday?", "hours(Sunday)"),
    ):
        p.user(asked)
        p.assistant(call)
    p.user(question)
    number = Annotated[int, pl.Range(0, 999)]
    with p.assistant():
        name = p.select(["stock", "multiply", "hours"])
        p.text("(")
        if name == "stock":
            item = p.gen(Literal["apples", "eggs", "lemons", "pears"])
            found = f"We have {p.tool(TOOLS['stock'], item)} {item}."
        elif name == "multiply":
            first = p.gen(number)
            p.text(",")
            second = p.gen(number)
            found = f"{first} times {second} is {p.tool(TOOLS['multiply'], first, second)}."
        else:
            day = p.gen(Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])
            found = f"Opening hours on {day}: {p.tool(TOOLS['hours'], day)}."
        p.text(")")
    return {"tool": name, "found": found}


def constant(file: str, name: str) -> Any:
    """What a constant of an example is."""
    return pl.load(EXAMPLES / file)._program.graph.constants[name]


ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("triage", {"ticket": "My bill is wrong"}),
    ("triage", {"ticket": "No wifi", "tone": "calm"}),
    ("chat", {"questions": ["Why is the sky blue?", "And at night?"]}),
    ("tree_of_thought", {"goal": "Read more"}),
    ("judge", {"text": "Fresh bread, every day from six."}),
    ("beam", {"topic": "the sea"}),
    *(("agent", {"question": question}) for question in ("Any lemons?", "2 times 3?", "Open on Sunday?", "Eggs!")),
]


@pytest.mark.parametrize(("name", "arguments"), ARGUMENTS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(ARGUMENTS)])
def test_an_example_and_its_twin_say_and_take_the_same(name: str, arguments: dict[str, Any]) -> None:
    found = []
    for program in (pl.load(EXAMPLES / f"{name}.pl").using(tools=TOOLS), pl.program(TWINS[name])):
        with pl.Engine() as engine:
            outcome = program.using(engine=engine, seed=3).run(**arguments)
        counts = outcome.usage.as_dict()
        found.append((to_data(outcome.result), outcome.messages, {count: counts[count] for count in COUNTED}))
    assert found[0] == found[1]


def test_every_example_has_a_twin() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.pl")} == set(TWINS)


def test_the_example_that_is_read_first_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["triage.py", "No wifi"])
    with pl.testing.answers(["network", "a", "b", "c", "2", "5", "3", "1"]):
        runpy.run_path(str(EXAMPLES / "triage.py"), run_name="__main__")
    assert capsys.readouterr().out == "Reply(team='network', urgency=1, body='b')\n"
