"""Runs graphs: every branch a coroutine, every model call a request to the engine.

A `Run` is one program run (one row of data); a `Frame` is one prompt of it with its variables: the program's own, a
branch's, or that of a program it calls.
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Protocol, TypeVar

from promptlang.ast import Expression
from promptlang.branches import Branch, BranchGroup, BranchValue, Pruned
from promptlang.conversion import ArgumentsError, bind_arguments, from_json, to_json
from promptlang.expressions import EvaluationError, evaluate
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint, ConstraintError
from promptlang.grammar.reader import read, validate
from promptlang.grammar.shapes import Bool, Constant, Float, Int, Null, Shape, Str, Union
from promptlang.graph import (
    AdoptNode,
    CallNode,
    ForkNode,
    ForNode,
    GenNode,
    Graph,
    IfNode,
    JumpNode,
    KeepNode,
    LetNode,
    LogNode,
    Node,
    PinNode,
    Region,
    ReturnNode,
    ScoreNode,
    SelectNode,
    TextNode,
    TurnNode,
    UseNode,
    WhileNode,
)
from promptlang.runtime.chat_template import TemplateError
from promptlang.runtime.engine import Engine
from promptlang.runtime.healing import heal
from promptlang.runtime.prompt import Prompt
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import (
    Answer,
    Generate,
    Generated,
    RequestError,
    Scored,
    ScoreOptions,
)
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.select import choose, scores
from promptlang.runtime.usage import Usage
from promptlang.source import Span
from promptlang.tasks import Future, Loop, Task, TaskCancelled
from promptlang.values import ChoiceValue, RecordValue, Value, render_text

T = TypeVar("T")

DEFAULT_MAX_TOKENS = 256
SCALAR_TOKENS = 32
"""The token limit of a number, a truth value or a constant, where the program gives none."""

DEFAULT_ROUNDS = 64
DEEPEST_CALL = 64
MOST_BRANCHES = 4096


class RunError(Exception):
    """A fault while a program ran.

    Args:
        message: what happened, in one sentence.
        span: the statement.
        path: the branch it happened in, outermost first (`drafts[2]`).
    """

    def __init__(self, message: str, span: Span, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.path = path


class Observer(Protocol):
    """Sees a run as it happens. `path` names the branch, outermost first; () is the program itself."""

    def turn(self, path: tuple[str, ...], role: str) -> None: ...

    def text(self, path: tuple[str, ...], text: str) -> None: ...

    def answer(self, path: tuple[str, ...], text: str) -> None: ...

    def ended(self, path: tuple[str, ...]) -> None:
        """A branch, or a program that was called, has come to its end."""

    def pruned(self, path: tuple[str, ...]) -> None:
        """A branch is not kept, or was cancelled."""

    def log(self, path: tuple[str, ...], text: str) -> None: ...


class SilentObserver:
    """Sees nothing."""

    def turn(self, path: tuple[str, ...], role: str) -> None:
        pass

    def text(self, path: tuple[str, ...], text: str) -> None:
        pass

    def answer(self, path: tuple[str, ...], text: str) -> None:
        pass

    def ended(self, path: tuple[str, ...]) -> None:
        pass

    def pruned(self, path: tuple[str, ...]) -> None:
        pass

    def log(self, path: tuple[str, ...], text: str) -> None:
        pass


@dataclass
class Run:
    """One program run.

    Attributes:
        seed, row: with a branch's path and a count of its calls, what its random numbers depend on.
        usage: its numbers.
        observer: who watches.
        prompts: all prompts it made; released at its end.
        pins: tree nodes locked by `pin`; unlocked at its end.
    """

    seed: int
    row: int
    usage: Usage = field(default_factory=Usage)
    observer: Observer = field(default_factory=SilentObserver)
    prompts: list[Prompt] = field(default_factory=list)
    pins: list[Any] = field(default_factory=list)


@dataclass
class Frame:
    """One prompt with its variables."""

    run: Run
    graph: Graph
    prompt: Prompt
    scope: dict[str, Any]
    constants: dict[str, Value]
    path: tuple[str, ...] = ()
    key: tuple[int | str, ...] = ()
    branch: Branch | None = None
    own: set[str] = field(default_factory=set)
    pending: list[Task[Any]] = field(default_factory=list)
    pins: list[int] = field(default_factory=list)
    said: str = ""
    logprob: float = 0.0
    visits: Counter[int] = field(default_factory=Counter)
    called: Counter[str] = field(default_factory=Counter)

    def say(self, text: str) -> None:
        self.said += text

    def value(self, expression: Expression) -> Any:
        """An expression's value; whatever it reads must be known."""
        return evaluate(expression, ChainMap(self.scope, self.constants))

    def visit(self, node: Node) -> tuple[int | str, ...]:
        """Names this visit of a node, for random numbers: the same in every run, whatever else goes on, and whatever
        a pass took out or moved."""
        self.visits[node.id] += 1
        return (*self.key, node.id, self.visits[node.id])

    def call_label(self, callee: str) -> str:
        """What a call of a program adds to the path: `route()`, `route()[1]` for the second one."""
        self.called[callee] += 1
        earlier = self.called[callee] - 1
        return f"{callee}()[{earlier}]" if earlier else f"{callee}()"

    @property
    def variables(self) -> dict[str, Any]:
        """What was bound here, without what came from outside."""
        return {name: value for name, value in self.scope.items() if name in self.own}

    def bind(self, name: str | None, value: Any) -> None:
        if name is not None:
            self.scope[name] = value
            self.own.add(name)


@dataclass(frozen=True)
class Outcome:
    """How a program ended: its result, its variables, its numbers."""

    result: Value
    variables: dict[str, Value]
    usage: Usage


class _Jump(Exception):
    """`break` or `continue` on its way to its loop."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


class _Return(Exception):
    """`return` on its way to its program."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Interpreter:
    """Runs the programs of one bundle on one engine.

    Args:
        engine: does the model's work.
        graphs: the programs, by name.
        seed: of every run.
    """

    def __init__(self, engine: Engine, graphs: Mapping[str, Graph], seed: int = 0) -> None:
        self._engine = engine
        self._graphs = graphs
        self._seed = seed
        self._loop = Loop()
        self._run_node: dict[type[Node], Callable[[Any, Frame], Coroutine[Any, None, None]]] = {
            TextNode: self._text,
            TurnNode: self._turn,
            GenNode: self._gen,
            SelectNode: self._select,
            ScoreNode: self._score,
            LetNode: self._let,
            CallNode: self._call,
            UseNode: self._use,
            IfNode: self._if,
            ForNode: self._for,
            WhileNode: self._while,
            JumpNode: self._jump,
            ForkNode: self._fork,
            KeepNode: self._keep,
            AdoptNode: self._adopt,
            PinNode: self._pin,
            LogNode: self._log,
            ReturnNode: self._return,
        }

    # Programs ----------------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        arguments: Mapping[str, Value],
        row: int = 0,
        observer: Observer | None = None,
        usage: Usage | None = None,
    ) -> Task[Outcome]:
        """Begin a run; it moves when `wait` steps the engine.

        Args:
            name: the program.
            arguments: by parameter name, already validated (`bind_arguments`).
            row: the row of data, for random numbers.
            observer: sees the run.
            usage: takes its numbers; they are there when the run fails, too.
        """
        run = Run(self._seed, row, usage or Usage(), observer or SilentObserver())
        return self._loop.spawn(self._outcome(self._graphs[name], dict(arguments), run))

    def wait(self, task: Task[T]) -> T:
        """Step the engine until the task is done; other tasks go on beside it."""
        return self._loop.run(task, self._engine.step)

    async def _outcome(self, graph: Graph, arguments: dict[str, Any], run: Run) -> Outcome:
        frame = Frame(run, graph, self._new_prompt(run), arguments, graph.constants)
        try:
            result = await self._program(frame)
            return Outcome(result, frame.variables, run.usage)
        finally:
            for prompt in run.prompts:
                prompt.release()
            for node in run.pins:
                self._engine.unpin(node)

    def _new_prompt(self, run: Run) -> Prompt:
        prompt = self._engine.new_prompt()
        run.prompts.append(prompt)
        return prompt

    async def _program(self, frame: Frame) -> Value:
        try:
            await self._region(frame.graph.body, frame)
            await self._join(frame)
        except _Return as returned:
            await self._join(frame)
            return returned.value
        finally:
            _cancel(frame.pending)
        return frame.variables

    async def _join(self, frame: Frame) -> None:
        """Wait for the calls under way; every fault is raised, even where nothing reads the value."""
        await self._settle(frame.scope.keys(), frame)
        for task in frame.pending:
            await task

    async def _settle(self, names: Iterable[str], frame: Frame) -> None:
        """Wait until the named variables are known."""
        for name in sorted(names):
            value = frame.scope.get(name)
            if isinstance(value, Future):
                frame.scope[name] = await value

    async def _region(self, region: Region, frame: Frame) -> None:
        for node in region.nodes:
            try:
                await self._settle(node.reads, frame)
                await self._run_node[type(node)](node, frame)
                if node.ends_prompt:
                    frame.prompt.release()
            except EvaluationError as error:
                raise RunError(error.message, error.span, frame.path) from error
            except (RequestError, TemplateError, ConstraintError) as error:
                raise RunError(str(error), node.span, frame.path) from error

    # Text and answers --------------------------------------------------------------------------------

    async def _text(self, node: TextNode, frame: Frame) -> None:
        text = self._string(node.text, frame)
        frame.prompt.add(text)
        frame.say(text)
        frame.run.observer.text(frame.path, text)

    async def _turn(self, node: TurnNode, frame: Frame) -> None:
        if frame.said and not frame.said.endswith("\n"):
            frame.say("\n")
        frame.prompt.open(node.role)
        frame.run.observer.turn(frame.path, node.role)
        try:
            await self._region(node.body, frame)
        finally:
            frame.prompt.close()

    async def _gen(self, node: GenNode, frame: Frame) -> None:
        options = {name: frame.value(value) for name, value in node.options.items()}
        prompt = frame.prompt
        prompt.flush()
        withdrawn = heal(prompt, self._engine.vocabulary) if options.get("heal", True) else b""
        stop = options.get("stop", ())
        answer = self._engine.submit(
            Generate(
                prompt=prompt,
                stream=self._stream(node, frame, options.get("seed")),
                usage=frame.run.usage,
                max_tokens=options.get("max_tokens", SCALAR_TOKENS if _is_scalar(node.shape) else DEFAULT_MAX_TOKENS),
                min_tokens=options.get("min_tokens", 0),
                sampling=Sampling(**{name: options[name] for name in _SAMPLING if name in options}),
                stop=(stop,) if isinstance(stop, str) else tuple(stop),
                constraint=self._constraint(node.shape, withdrawn, frame.run.usage),
                withdrawn=withdrawn,
                on_text=lambda text: frame.run.observer.answer(frame.path, text),
            )
        )
        result = await self._answered(answer, frame)
        assert isinstance(result, Generated)
        frame.say(result.text)
        frame.logprob += result.logprob
        frame.bind(node.target, self._read(node, result, frame))

    def _constraint(self, shape: Shape | None, withdrawn: bytes, usage: Usage) -> Constraint | None:
        if shape is None or shape == Str():
            return None
        started = perf_counter()
        constraint = compile_constraint(shape, self._engine.vocabulary, prefix=withdrawn.decode())
        usage.compile_seconds += perf_counter() - started
        return constraint

    def _read(self, node: GenNode, result: Generated, frame: Frame) -> Value:
        if node.shape is None:
            return result.text
        if not result.is_whole:
            raise RunError(
                f"max_tokens ended the answer before its value was whole: {result.text!r}",
                node.span,
                frame.path,
            )
        try:
            return from_json(node.shape, read(node.shape, result.text))
        except ValueError as error:
            raise RunError(
                f"the answer {result.text!r} is not what was asked for: {error}", node.span, frame.path
            ) from error

    async def _select(self, node: SelectNode, frame: Frame) -> None:
        options = {name: frame.value(value) for name, value in node.options.items()}
        values = options["options"] if "options" in options else [frame.value(choice) for choice in node.choices]
        texts = self._option_texts(node, values, frame)
        prompt = frame.prompt
        prompt.flush()
        withdrawn = heal(prompt, self._engine.vocabulary) if options.get("heal", True) else b""
        encoded = tuple(tuple(self._engine.tokenizer.encode(withdrawn.decode() + text)) for text in texts)
        rule, temperature = options.get("by", "sum"), options.get("temperature", 0.0)
        best_only = rule == "sum" and temperature == 0 and not node.reads_scores
        if len(encoded) == 1:
            selection = choose([0.0], 0.0, 0.0)
        else:
            logprobs = await self._scored(prompt, encoded, frame, best_only)
            prior = await self._scored(self._new_prompt(frame.run), encoded, frame) if rule == "prior" else None
            uniform = self._stream(node, frame, None).uniform(0)
            selection = choose(scores(rule, encoded, logprobs, prior), temperature, uniform)
        text = texts[selection.index]
        prompt.extend(encoded[selection.index])
        frame.say(text)
        frame.run.observer.answer(frame.path, text)
        frame.logprob += 0.0 if len(encoded) == 1 else float(sum(logprobs[selection.index]))
        frame.bind(
            node.target,
            ChoiceValue(
                text,
                dict(zip(texts, selection.probs, strict=True)),
                dict(zip(texts, selection.scores, strict=True)),
            ),
        )

    def _option_texts(self, node: SelectNode, values: Any, frame: Frame) -> list[str]:
        if not isinstance(values, list) or not values:
            raise RunError("select needs at least one option", node.span, frame.path)
        texts = [render_text(value) for value in values]
        if "" in texts:
            raise RunError("an option of select is empty", node.span, frame.path)
        twice = next((text for text in texts if texts.count(text) > 1), None) if len(set(texts)) < len(texts) else None
        if twice is not None:
            raise RunError(f"select has the option {twice!r} twice", node.span, frame.path)
        return texts

    async def _scored(
        self, prompt: Prompt, options: tuple[tuple[int, ...], ...], frame: Frame, best_only: bool = False
    ) -> Any:
        answer = self._engine.submit(ScoreOptions(prompt, options, frame.run.usage, best_only))
        result = await self._answered(answer, frame)
        assert isinstance(result, Scored)
        return result.logprobs

    async def _score(self, node: ScoreNode, frame: Frame) -> None:
        text = self._string(node.text, frame)
        frame.prompt.flush()
        tokens = tuple(self._engine.tokenizer.encode(text))
        if not tokens:
            raise RunError("score needs a text that isn't empty", node.span, frame.path)
        logprobs = await self._scored(frame.prompt, (tokens,), frame)
        frame.bind(node.target, float(sum(logprobs[0])))

    async def _answered(self, answer: Answer, frame: Frame) -> Generated | Scored:
        future: Future[None] = Future()
        answer.on_done = lambda: future.resolve(None)
        try:
            await future
        except TaskCancelled:
            answer.cancel()
            raise
        self._lock_pins(frame)
        if answer.error is not None:
            raise answer.error
        assert answer.result is not None
        return answer.result

    def _stream(self, node: Node, frame: Frame, seed: int | None) -> RandomStream:
        """Depends on the run's seed, the row, the branch, the node and how often it ran: never on what else is in the
        batch."""
        key = frame.visit(node)
        if seed is not None:
            return RandomStream(seed)
        return RandomStream(self._seed, frame.run.row, *key)

    # Values and calls --------------------------------------------------------------------------------

    async def _let(self, node: LetNode, frame: Frame) -> None:
        frame.bind(node.target, frame.value(node.value))

    async def _call(self, node: CallNode, frame: Frame) -> None:
        """Start a program on a prompt of its own; who reads its result waits for it."""
        if len(frame.path) >= DEEPEST_CALL:
            raise RunError(f"calls nest deeper than {DEEPEST_CALL}", node.span, frame.path)
        graph = self._graphs[node.callee]
        given = {name: frame.value(value) for name, value in node.arguments.items()}
        path = (*frame.path, frame.call_label(node.callee))
        arguments = self._bound(graph, given, node.span, path)
        callee = Frame(
            frame.run, graph, self._new_prompt(frame.run), arguments, graph.constants, path, frame.visit(node)
        )
        task = self._loop.spawn(self._program(callee))
        task.when_done(lambda: frame.run.observer.ended(path))
        frame.pending.append(task)
        frame.bind(node.target, task)

    def _bound(self, graph: Graph, given: dict[str, Any], span: Span, path: tuple[str, ...]) -> dict[str, Any]:
        try:
            return bind_arguments(graph, given)
        except ArgumentsError as error:
            raise RunError(str(error), span, path) from error

    async def _use(self, node: UseNode, frame: Frame) -> None:
        scope = {name: frame.value(value) for name, value in node.arguments.items()}
        for parameter in node.parameters:
            if parameter.name not in scope:
                assert parameter.default is not None
                scope[parameter.name] = evaluate(parameter.default, node.constants)
        outer = frame.scope, frame.own, frame.constants
        frame.scope, frame.own, frame.constants = scope, set(), node.constants
        try:
            await self._region(node.body, frame)
        finally:
            frame.scope, frame.own, frame.constants = outer

    async def _log(self, node: LogNode, frame: Frame) -> None:
        frame.run.observer.log(frame.path, render_text(frame.value(node.value)))

    async def _return(self, node: ReturnNode, frame: Frame) -> None:
        raise _Return(self._promised(node, frame))

    def _promised(self, node: ReturnNode, frame: Frame) -> Value:
        """The result, as the program's header says it looks."""
        value: Value = frame.value(node.value)
        shape = frame.graph.returns
        if shape is None:
            return value
        data = to_json(value)
        try:
            validate(shape, data)
        except ValueError as error:
            message = f"the result is not what {frame.graph.name} promises: {error}"
            raise RunError(message, node.span, frame.path) from error
        return from_json(shape, data)

    def _string(self, expression: Expression, frame: Frame) -> str:
        return render_text(frame.value(expression))

    # Control flow ------------------------------------------------------------------------------------

    async def _if(self, node: IfNode, frame: Frame) -> None:
        for condition, body in zip(node.conditions, node.bodies, strict=True):
            if frame.value(condition):
                await self._region(body, frame)
                return
        await self._region(node.otherwise, frame)

    async def _for(self, node: ForNode, frame: Frame) -> None:
        for item in self._items(node.iterable, frame):
            self._unpack(node.targets, item, frame, node.span)
            if not await self._round(node.body, frame):
                return

    async def _while(self, node: WhileNode, frame: Frame) -> None:
        limit = DEFAULT_ROUNDS if node.limit is None else frame.value(node.limit)
        for _ in range(limit):
            if not frame.value(node.condition):
                return
            if not await self._round(node.body, frame):
                return
            await self._settle(node.reads, frame)
        if node.limit is None and frame.value(node.condition):
            raise RunError(
                f"the loop did not end in {limit} rounds; say `limit N` where more are meant",
                node.span,
                frame.path,
            )

    async def _round(self, body: Region, frame: Frame) -> bool:
        """One round of a loop; False after `break`."""
        try:
            await self._region(body, frame)
        except _Jump as jump:
            return jump.kind == "continue"
        return True

    async def _jump(self, node: JumpNode, frame: Frame) -> None:
        raise _Jump(node.kind)

    def _items(self, iterable: Expression, frame: Frame) -> list[Any]:
        value = frame.value(iterable)
        if not isinstance(value, list | str | dict):
            raise RunError(f"can't go through {render_text(value)!r}: it is no list", iterable.span, frame.path)
        return list(value)

    def _unpack(self, targets: tuple[str, ...], item: Any, frame: Frame, span: Span) -> None:
        if len(targets) == 1:
            frame.bind(targets[0], item)
            return
        if not isinstance(item, list) or len(item) != len(targets):
            raise RunError(f"can't unpack {render_text(item)!r} into {len(targets)} names", span, frame.path)
        for name, value in zip(targets, item, strict=True):
            frame.bind(name, value)

    # Branches ----------------------------------------------------------------------------------------

    async def _fork(self, node: ForkNode, frame: Frame) -> None:
        items = self._fork_items(node, frame)
        frames = await self._branch_frames(node, items, frame)
        if node.ends_prompt:
            frame.prompt.release()
        group = BranchGroup()
        for index, branch_frame in enumerate(frames):
            branch_frame.branch = group.add()
            body = node.bodies[index] if node.kind == "arms" else node.bodies[0]
            branch_frame.branch.run(self._loop.spawn(self._branch(node, body, branch_frame)))
        try:
            await group.finished()
        finally:
            group.cancel()
        values = [branch.value for branch in group.branches]
        if frames and not any(values) and not node.allow_none:
            raise RunError(
                f"keep left no branch of {node.name}; say `or none` where that may be", node.span, frame.path
            )
        self._bind_branches(node, _copied(values, len(items)) if node.is_merged else values, frame)

    def _fork_items(self, node: ForkNode, frame: Frame) -> list[Any]:
        """What tells the branches apart, one item a branch."""
        if node.kind == "arms":
            return list(node.arms)
        assert node.over is not None
        return self._branch_items(node.over, frame) if node.kind == "count" else self._items(node.over, frame)

    async def _branch_frames(self, node: ForkNode, items: list[Any], frame: Frame) -> list[Frame]:
        key = frame.visit(node)
        start = await self._fork_head(node, frame) if node.head.nodes and items else frame
        frames = []
        for index, item in enumerate(items[:1] if node.is_merged else items):
            name = item if node.kind == "arms" else index
            label = f"{node.name}.{item}" if node.kind == "arms" else f"{node.name}[{index}]"
            branch_frame = self._branch_frame(start, (*frame.path, label), (*key, name))
            if start is not frame:
                branch_frame.said = start.said
            if node.kind == "each":
                self._unpack(node.targets, item, branch_frame, node.span)
            frames.append(branch_frame)
        if start is not frame:
            start.prompt.release()
        return frames

    async def _fork_head(self, node: ForkNode, frame: Frame) -> Frame:
        """A frame whose prompt holds what every branch begins with."""
        head = self._branch_frame(frame, (*frame.path, node.name), frame.key)
        await self._region(node.head, head)
        frame.run.observer.ended(head.path)
        return head

    def _branch_items(self, over: Expression, frame: Frame) -> list[Any]:
        count = frame.value(over)
        if not is_whole(count) or not 0 <= count <= MOST_BRANCHES:
            raise RunError(
                f"fork needs a count from 0 to {MOST_BRANCHES}, not {render_text(count)}",
                over.span,
                frame.path,
            )
        return [None] * count

    def _branch_frame(self, frame: Frame, path: tuple[str, ...], key: tuple[int | str, ...]) -> Frame:
        prompt = frame.prompt.fork()
        frame.run.prompts.append(prompt)
        return Frame(frame.run, frame.graph, prompt, dict(frame.scope), frame.constants, path, key)

    async def _branch(self, node: ForkNode, body: Region, frame: Frame) -> BranchValue | None:
        """A branch's value; None when it was pruned."""
        assert frame.branch is not None
        try:
            await self._branch_body(body, frame)
        except Pruned:
            frame.run.observer.pruned(frame.path)
            frame.prompt.release()
            return None
        except TaskCancelled:
            frame.run.observer.pruned(frame.path)
            frame.prompt.release()
            raise
        frame.run.observer.ended(frame.path)
        if not node.keeps_prompts:
            frame.prompt.release()
        return BranchValue(frame.branch.index, frame.variables, frame.said, frame.logprob, frame.prompt, frame.scope)

    async def _branch_body(self, body: Region, frame: Frame) -> None:
        try:
            await self._region(body, frame)
            await self._join(frame)
        finally:
            _cancel(frame.pending)

    def _bind_branches(self, node: ForkNode, values: list[BranchValue | None], frame: Frame) -> None:
        if node.kind == "arms":
            frame.bind(node.name, RecordValue(node.name, dict(zip(node.arms, values, strict=True))))
        else:
            frame.bind(node.name, [value for value in values if value is not None])

    async def _keep(self, node: KeepNode, frame: Frame) -> None:
        branch = frame.branch
        assert branch is not None, "the checker lets `keep` stand only in a fork"
        if node.kind == "where":
            assert node.by is not None
            if not frame.value(node.by):
                raise Pruned
            return
        assert node.count is not None
        count = frame.value(node.count)
        if not is_whole(count) or count < 0:
            raise RunError(
                f"keep needs a whole number of branches, not {render_text(count)}",
                node.count.span,
                frame.path,
            )
        if node.kind == "first":
            branch.arrive_first(node.id, count)
            return
        assert node.by is not None
        score = frame.value(node.by)
        if not isinstance(score, int | float) or score != score:
            raise RunError(f"keep ranks by a number, not {render_text(score)!r}", node.by.span, frame.path)
        await branch.arrive_best(node.id, count, float(score))

    async def _adopt(self, node: AdoptNode, frame: Frame) -> None:
        branch = frame.value(node.branch)
        if not isinstance(branch, BranchValue):
            raise RunError("adopt needs a branch that survived its fork", node.span, frame.path)
        frame.prompt.release()
        frame.prompt = branch.prompt.fork()
        frame.run.prompts.append(frame.prompt)
        frame.scope.update(branch.scope)
        frame.own.update(branch.fields)
        frame.say(branch.text)
        frame.logprob += branch.logprob

    async def _pin(self, node: PinNode, frame: Frame) -> None:
        frame.pins.append(len(frame.prompt.flush()))

    def _lock_pins(self, frame: Frame) -> None:
        """Lock what was pinned, now that a model call has computed it."""
        while frame.pins and self._engine.cache.shares:
            node = self._engine.pin(frame.prompt.flush()[: frame.pins.pop()])
            if node is not None:
                frame.run.pins.append(node)


_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def _is_scalar(shape: Shape | None) -> bool:
    if isinstance(shape, Union):
        return all(map(_is_scalar, shape.options))
    return isinstance(shape, Int | Float | Bool | Null | Constant)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number (`true` is none)."""
    return isinstance(value, int) and not isinstance(value, bool)


def _copied(values: list[BranchValue | None], count: int) -> list[BranchValue | None]:
    """The one branch that ran, `count` times."""
    return [replace(value, index=index) for value in values if value is not None for index in range(count)]


def _cancel(tasks: list[Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
