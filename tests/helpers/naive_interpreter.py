"""What a program means, as plainly as can be said: one statement after another, one model call at a time, no cache.

Written from docs/language.md as an oracle for the interpreter and for the passes; it shares neither's code. Branches
run one after another, each up to the `keep` where it must wait for the others; a call runs to its end where it stands.
"""

from collections import ChainMap, Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from promptlang.compiler import graph as g
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.reader import read, validate
from promptlang.grammar.shapes import Str
from promptlang.runtime.engine import Engine
from promptlang.runtime.healing import heal
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GenerateTokens, RequestError, ScoreOptions
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.select import choose_option, encode_options, scores
from promptlang.runtime.usage import Usage
from promptlang.syntax.ast import Expression
from promptlang.values.conversion import ArgumentsError, bind_arguments, from_json, to_json
from promptlang.values.expressions import EvaluationError, evaluate
from promptlang.values.values import Parts, RecordValue, answered, render_text

FREE_TOKENS, TYPED_TOKENS = 256, 32
ROUNDS = 64


@dataclass(frozen=True)
class Fault:
    """One thing that went wrong: what, on which line, in which branch."""

    message: str
    line: int
    path: tuple[str, ...]


class Failed(Exception):
    """The program fails; of several faults, which one is reported depends on who comes first."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = set(faults)


class _Pruned(Exception):
    pass


class _Jump(Exception):
    pass


class _Return(Exception):
    pass


@dataclass(frozen=True)
class _Vote:
    """A branch waits at a `keep`: which one, how many go on, and what it is ranked by."""

    place: tuple[int, int]
    count: int
    score: float


@dataclass(frozen=True, eq=False)
class _Branch(Parts):
    index: int
    fields: dict[str, Any]
    said: str
    logprob: float
    prompt: TokenPrompt
    scope: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)

    def _parts(self) -> dict[str, Any]:
        own = {"text": self.said, "index": self.index, "logprob": self.logprob}
        return {**self.extra, **own, **self.fields}

    def part(self, name: str) -> Any:
        return self._parts()[name]

    def part_names(self) -> tuple[str, ...]:
        return tuple(self._parts())

    def plain(self) -> Any:
        return self.fields


@dataclass
class _Frame:
    """A prompt and its variables."""

    graph: g.Graph
    prompt: TokenPrompt
    scope: dict[str, Any]
    constants: Mapping[str, Any]
    path: tuple[str, ...]
    key: tuple[int | str, ...]
    own: set[str] = field(default_factory=set)
    calls: list[Any] = field(default_factory=list)
    said: str = ""
    logprob: float = 0.0
    visits: Counter[Any] = field(default_factory=Counter)

    def answer_key(self) -> tuple[int | str, ...]:
        self.visits["answers"] += 1
        return (*self.key, self.visits["answers"])

    def fork_key(self, node: g.ForkNode | g.BeamNode) -> tuple[int | str, ...]:
        self.visits["fork", node.name] += 1
        return (*self.key, node.name, self.visits["fork", node.name])

    def bind(self, name: str | None, value: Any) -> None:
        if name is not None:
            self.scope[name] = value
            self.own.add(name)

    @property
    def variables(self) -> dict[str, Any]:
        return {name: value for name, value in self.scope.items() if name in self.own}

    def fail(self, message: str, node: g.Node) -> Failed:
        return Failed(Fault(message, node.span.position.line, self.path))


Steps: TypeAlias = Generator[_Vote, bool, None]


@dataclass
class Told:
    """A run: its result, its variables, what it logged by branch, and the model calls it took."""

    result: Any
    variables: Any
    logs: dict[tuple[str, ...], list[str]]
    calls: int
    generated: int


class NaiveInterpreter:
    """Runs graphs that no pass has changed.

    Args:
        engine: asked for one answer at a time.
        graphs: the programs of a bundle, from `lower`.
    """

    def __init__(self, engine: Engine, graphs: Mapping[str, g.Graph], seed: int = 0) -> None:
        self._engine = engine
        self._graphs = graphs
        self._seed = seed
        self._usage = Usage()
        self._logs: dict[tuple[str, ...], list[str]] = {}

    def run(self, name: str, arguments: Mapping[str, Any]) -> Told:
        """Run a program.

        Raises:
            Failed: with every fault that may be the one to be reported.
        """
        graph = self._graphs[name]
        frame = _Frame(graph, self._engine.new_prompt(), dict(arguments), graph.constants, (), ())
        result = self._program(frame)
        return Told(
            to_json(result), to_json(frame.variables), self._logs, self._usage.calls, self._usage.generated_tokens
        )

    def _program(self, frame: _Frame) -> Any:
        try:
            return self._result(frame)
        except Failed as failed:
            calls = [call for call in frame.calls if isinstance(call, Failed)]
            raise Failed(*failed.faults, *(fault for call in calls for fault in call.faults)) from failed

    def _result(self, frame: _Frame) -> Any:
        try:
            self._finish(self._region(frame.graph.body, frame))
        except _Return as returned:
            self._join(frame)
            return returned.args[0]
        self._join(frame)
        return frame.variables

    def _finish(self, steps: Steps) -> None:
        for _ in steps:
            raise AssertionError("only branches wait")

    # What is known --------------------------------------------------------------------------------------------

    def _settle(self, names: Sequence[str] | frozenset[str], frame: _Frame) -> None:
        for name in sorted(names):
            if isinstance(frame.scope.get(name), Failed):
                raise frame.scope[name]

    def _join(self, frame: _Frame) -> None:
        self._settle(frozenset(frame.own), frame)
        for call in frame.calls:
            if isinstance(call, Failed):
                raise call

    def _value(self, expression: Expression, frame: _Frame) -> Any:
        try:
            return evaluate(expression, ChainMap(frame.scope, frame.constants))  # type: ignore[arg-type]
        except EvaluationError as error:
            raise Failed(Fault(error.message, error.span.position.line, frame.path)) from error

    def _items(self, expression: Expression, frame: _Frame) -> list[Any]:
        value = self._value(expression, frame)
        if not isinstance(value, list | str | dict):
            message = f"can't go through {render_text(value)!r}: it is no list"
            raise Failed(Fault(message, expression.span.position.line, frame.path))
        return list(value)

    def _unpack(self, targets: tuple[str, ...], item: Any, frame: _Frame, node: g.Node) -> None:
        items = [item] if len(targets) == 1 else item
        if not isinstance(items, list) or len(items) != len(targets):
            raise frame.fail(f"can't unpack {render_text(item)!r} into {len(targets)} names", node)
        for name, value in zip(targets, items, strict=True):
            frame.bind(name, value)

    # Statements -----------------------------------------------------------------------------------------------

    def _region(self, region: g.Region, frame: _Frame) -> Steps:
        for node in region.nodes:
            self._settle(node.reads, frame)
            try:
                yield from self._node(node, frame)
            except RequestError as error:
                raise frame.fail(str(error), node) from error

    def _node(self, node: g.Node, frame: _Frame) -> Steps:
        match node:
            case g.TextNode(text=text):
                said = render_text(self._value(text, frame))
                frame.prompt.add(said)
                frame.said += said
            case g.TurnNode(role=role, body=body):
                frame.said += "\n" if frame.said and not frame.said.endswith("\n") else ""
                frame.prompt.open(role)
                yield from self._region(body, frame)
                frame.prompt.close()
            case g.LetNode(target=target, value=value):
                frame.bind(target, self._value(value, frame))
            case g.LogNode(value=value):
                self._logs.setdefault(frame.path, []).append(render_text(self._value(value, frame)))
            case g.GenNode():
                self._gen(node, frame)
            case g.SelectNode():
                self._select(node, frame)
            case g.ScoreNode(target=target, text=text):
                tokens = tuple(self._engine.tokenizer.encode(render_text(self._value(text, frame))))
                frame.prompt.flush()
                frame.bind(target, float(sum(self._scored(frame.prompt, (tokens,))[0])))
            case g.CallNode():
                self._call(node, frame)
            case g.ReturnNode(value=value):
                raise _Return(self._promised(self._value(value, frame), node, frame))
            case g.JumpNode(kind=kind):
                raise _Jump(kind)
            case g.AdoptNode():
                self._adopt(node, frame)
            case g.PinNode():
                pass
            case _:
                yield from self._block(node, frame)

    def _block(self, node: g.Node, frame: _Frame) -> Steps:
        match node:
            case g.IfNode():
                yield from self._if(node, frame)
            case g.ForNode(targets=targets, iterable=iterable, body=body):
                for item in self._items(iterable, frame):
                    self._unpack(targets, item, frame, node)
                    if (yield from self._round(body, frame)):
                        break
            case g.WhileNode():
                yield from self._while(node, frame)
            case g.UseNode():
                yield from self._use(node, frame)
            case g.RequireNode():
                yield from self._require(node, frame)
            case g.ForkNode():
                self._fork(node, frame)
            case g.BeamNode():
                self._beam(node, frame)
            case g.KeepNode():
                yield from self._keep(node, frame)
            case _:
                raise AssertionError(f"the oracle knows no {type(node).__name__}")

    def _if(self, node: g.IfNode, frame: _Frame) -> Steps:
        for condition, body in zip(node.conditions, node.bodies, strict=True):
            if self._value(condition, frame):
                yield from self._region(body, frame)
                return
        yield from self._region(node.otherwise, frame)

    def _round(self, body: g.Region, frame: _Frame) -> Generator[_Vote, bool, bool]:
        """One round of a loop; whether it was the last."""
        try:
            yield from self._region(body, frame)
        except _Jump as jump:
            return jump.args[0] == "break"
        return False

    def _while(self, node: g.WhileNode, frame: _Frame) -> Steps:
        limit = ROUNDS if node.limit is None else self._value(node.limit, frame)
        for _ in range(limit):
            if not self._value(node.condition, frame) or (yield from self._round(node.body, frame)):
                return
            self._settle(node.reads, frame)
        if node.limit is None and self._value(node.condition, frame):
            raise frame.fail(f"the loop did not end in {limit} rounds; say `limit N` where more are meant", node)

    def _use(self, node: g.UseNode, frame: _Frame) -> Steps:
        defaults = {each.name: each.default for each in node.parameters if each.default is not None}
        scope = {name: evaluate(value, node.constants) for name, value in defaults.items()}
        scope.update({name: self._value(value, frame) for name, value in node.arguments.items()})
        scope = {each.name: scope[each.name] for each in node.parameters}
        outer = frame.scope, frame.own, frame.constants
        frame.scope, frame.own, frame.constants = dict(scope), set(), node.constants
        yield from self._region(node.body, frame)
        frame.scope, frame.own, frame.constants = outer

    def _require(self, node: g.RequireNode, frame: _Frame) -> Steps:
        retries = self._value(node.retries, frame)
        before = replace(frame, prompt=frame.prompt.fork(), scope=dict(frame.scope), own=set(frame.own))
        calls = len(frame.calls)
        for left in range(retries, -1, -1):
            yield from self._region(node.body, frame)
            self._settle(node.reads, frame)
            if self._value(node.condition, frame):
                return
            if left:
                frame.prompt, frame.scope, frame.own = before.prompt.fork(), dict(before.scope), set(before.own)
                frame.said, frame.logprob = before.said, before.logprob
                del frame.calls[calls:]
        message = f"`{' '.join(node.condition.span.text.split())}` is not met"
        if node.message is not None:
            message = render_text(self._value(node.message, frame))
        raise frame.fail(f"{message} (after {retries} retries)" if retries else message, node)

    # The model ------------------------------------------------------------------------------------------------

    def _ask(self, request: GenerateTokens | ScoreOptions) -> Any:
        answer = self._engine.submit(request)
        while not answer.is_done:
            assert self._engine.step()
        assert answer.error is None, answer.error
        return answer.result

    def _stream(self, frame: _Frame) -> RandomStream:
        return RandomStream(self._seed, 0, *frame.answer_key())

    def _gen(self, node: g.GenNode, frame: _Frame) -> None:
        options = {name: self._value(value, frame) for name, value in node.options.items()}
        frame.prompt.flush()
        withdrawn = heal(frame.prompt, self._engine.vocabulary)
        constraint = None
        if node.shape is not None and node.shape != Str():
            constraint = compile_constraint(node.shape, self._engine.vocabulary, prefix=withdrawn.decode())
        result = self._ask(
            GenerateTokens(
                prompt=frame.prompt,
                stream=self._stream(frame),
                usage=self._usage,
                max_tokens=options.get("max_tokens", FREE_TOKENS if constraint is None else TYPED_TOKENS),
                sampling=Sampling(temperature=options.get("temperature", 0.0)),
                constraint=constraint,
                withdrawn=withdrawn,
                wants_logprobs=True,
            )
        )
        frame.said += result.text
        frame.logprob += result.logprob
        shape = node.shape
        frame.bind(node.target, result.text if shape is None else from_json(shape, read(shape, result.text)))

    def _select(self, node: g.SelectNode, frame: _Frame) -> None:
        options = {name: self._value(value, frame) for name, value in node.options.items()}
        values = options.get("options") or [self._value(choice, frame) for choice in node.choices]
        texts = [render_text(value) for value in values]
        if "" in texts:
            raise frame.fail("an option of select is empty", node)
        if twice := [text for text in texts if texts.count(text) > 1]:
            raise frame.fail(f"select has the option {twice[0]!r} twice", node)
        frame.prompt.flush()
        withdrawn = heal(frame.prompt, self._engine.vocabulary).decode()
        encoded = encode_options(tuple(withdrawn + text for text in texts), self._engine.vocabulary)
        if withdrawn and {self._engine.vocabulary.token_bytes[option[0]] for option in encoded} == {withdrawn.encode()}:
            frame.prompt.extend(encoded[0][:1])
            encoded = tuple(option[1:] for option in encoded)
        logprobs = self._scored(frame.prompt, encoded)
        uniform = self._stream(frame).uniform(0)
        chosen = choose_option(scores("sum", encoded, logprobs), options.get("temperature", 0.0), uniform)
        frame.prompt.extend(encoded[chosen.index])
        frame.said += texts[chosen.index]
        frame.logprob += float(sum(logprobs[chosen.index]))
        frame.bind(node.target, answered(texts[chosen.index], {}))

    def _scored(self, prompt: TokenPrompt, options: tuple[tuple[int, ...], ...]) -> Any:
        return self._ask(ScoreOptions(prompt, options, self._usage)).logprobs

    # Programs -------------------------------------------------------------------------------------------------

    def _call(self, node: g.CallNode, frame: _Frame) -> None:
        callee = self._graphs[node.callee]
        given = {name: self._value(value, frame) for name, value in node.arguments.items()}
        frame.visits["call", node.callee] += 1 + node.skipped
        earlier = frame.visits["call", node.callee] - 1
        label = f"{node.callee}()[{earlier}]" if earlier else f"{node.callee}()"
        path = (*frame.path, label)
        try:
            arguments = bind_arguments(callee, given)
        except ArgumentsError as error:
            raise Failed(Fault(str(error), node.span.position.line, path)) from error
        inner = _Frame(callee, self._engine.new_prompt(), arguments, callee.constants, path, (*frame.key, label))
        value: Any
        try:
            value = self._program(inner)
        except Failed as failed:
            value = failed
        frame.calls.append(value)
        frame.bind(node.target, value)

    def _promised(self, value: Any, node: g.Node, frame: _Frame) -> Any:
        if frame.graph.returns is None:
            return value
        data = to_json(value)
        try:
            validate(frame.graph.returns, data)
        except ValueError as error:
            raise frame.fail(f"the result is not what {frame.graph.name} promises: {error}", node) from error
        return from_json(frame.graph.returns, data)

    # Branches -------------------------------------------------------------------------------------------------

    def _child(self, parent: _Frame, label: str, key: tuple[int | str, ...]) -> _Frame:
        path = (*parent.path, label)
        return _Frame(parent.graph, parent.prompt.fork(), dict(parent.scope), parent.constants, path, key)

    def _fork(self, node: g.ForkNode, frame: _Frame) -> None:
        assert not node.head.nodes, "the oracle runs what no pass has changed"
        items: list[Any] = list(node.arms)
        if node.kind != "arms":
            assert node.over is not None
            over = node.over
            items = self._items(over, frame) if node.kind == "each" else [None] * self._value(over, frame)
        key = frame.fork_key(node)
        running: dict[int, Steps] = {}
        frames: dict[int, _Frame] = {}
        for index, item in enumerate(items):
            name = item if node.kind == "arms" else index
            label = f"{node.name}.{item}" if node.kind == "arms" else f"{node.name}[{index}]"
            child = self._child(frame, label, (*key, name))
            if node.kind == "each":
                self._unpack(node.targets, item, child, node)
            frames[index] = child
            running[index] = self._branch(node.bodies[index if node.kind == "arms" else 0], child)
        ended = self._race(running)
        values = {
            index: _Branch(index, child.variables, child.said, child.logprob, child.prompt, child.scope)
            for index, child in frames.items()
            if index in ended
        }
        if items and not values and not node.allow_none:
            raise frame.fail(f"keep left no branch of {node.name}; say `or none` where that may be", node)
        if node.kind == "arms":
            arms = {arm: values.get(index) for index, arm in enumerate(node.arms)}
            frame.bind(node.name, RecordValue(node.name, arms))  # type: ignore[arg-type]
        else:
            frame.bind(node.name, list(values.values()))

    def _branch(self, body: g.Region, frame: _Frame) -> Steps:
        yield from self._region(body, frame)
        self._join(frame)

    def _race(self, running: dict[int, Steps]) -> set[int]:
        """Run branches, each up to where it must wait; decide; and on. Gives those that came to their end."""
        ended: set[int] = set()
        answers: dict[int, bool | None] = dict.fromkeys(running)
        while answers:
            votes: dict[int, _Vote] = {}
            faults: set[Fault] = set()
            for index, kept in answers.items():
                try:
                    votes[index] = running[index].send(kept)  # type: ignore[arg-type]
                except StopIteration:
                    ended.add(index)
                except _Pruned:
                    pass
                except Failed as failed:
                    faults |= failed.faults
            if faults:
                raise Failed(*faults)
            answers = dict(self._decided(votes))
        return ended

    def _decided(self, votes: dict[int, _Vote]) -> dict[int, bool | None]:
        kept: dict[int, bool | None] = {}
        for place in {vote.place for vote in votes.values()}:
            ranked = sorted((-vote.score, index) for index, vote in votes.items() if vote.place == place)
            count = next(vote.count for vote in votes.values() if vote.place == place)
            kept |= {index: rank < count for rank, (_, index) in enumerate(ranked)}
        return dict(sorted(kept.items()))

    def _keep(self, node: g.KeepNode, frame: _Frame) -> Steps:
        assert node.kind != "first", "who comes first is nothing an oracle can know"
        assert node.by is not None
        if node.kind == "where":
            if not self._value(node.by, frame):
                raise _Pruned
            return
        assert node.count is not None
        count = self._value(node.count, frame)
        score = self._rank(node.by, frame, "keep")
        frame.visits["keep", node.id] += 1
        if not (yield _Vote((node.id, frame.visits["keep", node.id]), count, score)):
            raise _Pruned

    def _rank(self, by: Expression, frame: _Frame, what: str) -> float:
        score = self._value(by, frame)
        if not isinstance(score, int | float):
            message = f"{what} ranks by a number, not {render_text(score)!r}"
            raise Failed(Fault(message, by.span.position.line, frame.path))
        return float(score)

    def _beam(self, node: g.BeamNode, frame: _Frame) -> None:
        depth, width, branch = (self._value(each, frame) for each in (node.depth, node.width, node.branch))
        frontier, paths = [frame], []
        key = frame.fork_key(node)
        for number in range(depth):
            ranked: list[tuple[float, int, _Frame]] = []
            faults: set[Fault] = set()
            children = [(parent, way) for parent in frontier for way in range(branch)]
            for index, (parent, way) in enumerate(children):
                above = parent.key if number else key
                child = self._child(parent, f"{node.name}[{number}][{index}]", (*above, f"round {number}", way))
                child.path = (*frame.path, f"{node.name}[{number}][{index}]")
                if number:
                    child.said, child.logprob, child.own = parent.said, parent.logprob, set(parent.own)
                try:
                    self._finish(self._branch(node.body, child))
                    ranked.append((-self._rank(node.by, child, "beam"), index, child))
                except Failed as failed:
                    faults |= failed.faults
            if faults:
                raise Failed(*faults)
            best = sorted(ranked, key=lambda one: one[:2])[:width]
            paths = [(score, child) for score, _, child in best]
            frontier = [child for _, _, child in sorted(best, key=lambda one: one[1])]
        frame.bind(
            node.name,
            [
                _Branch(rank, one.variables, one.said, one.logprob, one.prompt, one.scope, {"score": -score})
                for rank, (score, one) in enumerate(paths)
            ],
        )

    def _adopt(self, node: g.AdoptNode, frame: _Frame) -> None:
        branch = self._value(node.branch, frame)
        if not isinstance(branch, _Branch):
            raise frame.fail("adopt needs a branch that survived its fork", node)
        frame.prompt = branch.prompt.fork()
        frame.scope.update(branch.scope)
        frame.own.update(branch.fields)
        frame.said += branch.said
        frame.logprob += branch.logprob
