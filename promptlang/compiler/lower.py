"""A checked program to its execution graph: names resolved, fragments put in place, what each node reads and binds
worked out."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from promptlang.checker.tables import Checked, ProgramInfo, ToolInfo
from promptlang.compiler.graph import (
    AdoptNode,
    BeamNode,
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
    RequireNode,
    ReturnNode,
    ScoreNode,
    SelectNode,
    TextNode,
    Tool,
    ToolNode,
    TurnNode,
    UseNode,
    WhileNode,
)
from promptlang.syntax import ast
from promptlang.syntax.walk import named, names_in


def lower(checked: Checked) -> dict[str, Graph]:
    """The graphs of all programs of a checked bundle, by the name callers use."""
    return {name: _Lowering(checked, program).graph(name) for name, program in checked.programs.items()}


def lower_statements(checked: Checked, block: ast.Block) -> Region:
    """Statements that stand outside any program, as typed at a prompt, to nodes."""
    return _Lowering(checked, None).region(block)


class _Lowering:
    """One program on its way to a graph."""

    def __init__(self, checked: Checked, program: Any) -> None:
        self._checked = checked
        self._program = program
        self._ids = count()

    def graph(self, name: str) -> Graph:
        program = self._program
        return Graph(
            name=name,
            parameters=program.declaration.parameters,
            shapes=program.shapes,
            returns=program.returns,
            body=self.region(program.declaration.body),
            constants=dict(program.constants),
        )

    def region(self, block: Iterable[ast.Statement]) -> Region:
        nodes: list[Node] = []
        places: list[int] = []
        for statement in block:
            places.append(len(nodes))
            if isinstance(statement, ast.Require):
                self._require(statement, nodes, places)
            elif (node := self._statement(statement)) is not None:
                nodes.append(node)
        return Region(tuple(nodes))

    def _require(self, statement: ast.Require, nodes: list[Node], places: list[int]) -> None:
        """Put what is done again into a node of its own; `places` says where each statement's node is. What an earlier
        `require` holds together is done again as a whole."""
        checkpoint = self._checked.checkpoint(statement)
        start = len(nodes) if checkpoint is None else places[checkpoint]
        node = RequireNode(
            id=next(self._ids),
            span=statement.span,
            body=Region(tuple(nodes[start:])),
            condition=statement.condition,
            retries=statement.retries,
            message=statement.message,
            reads=names_in(statement.condition, statement.retries, statement.message),
        )
        nodes[start:] = [node]
        for held in range(len(places) - 1, -1, -1):
            if places[held] <= start:
                break
            places[held] = start

    def _statement(self, statement: ast.Statement) -> Node | None:
        place: dict[str, Any] = {"id": next(self._ids), "span": statement.span}
        match statement:
            case ast.Text(value=value):
                return TextNode(text=value, reads=names_in(value), **place)
            case ast.Role(role=role, body=body):
                return TurnNode(role=role, body=self.region(body), **place)
            case ast.Ask(target=target, answer=answer):
                return self._answer(target, answer, place)
            case ast.Assign(target=target, value=value):
                return self._assign(target, value, place)
            case ast.Call(call=call):
                return self._call(None, call, place)
            case ast.Use():
                return self._use(statement, place)
            case ast.If():
                return self._if(statement, place)
            case ast.For(targets=targets, iterable=iterable, body=body):
                reads = names_in(iterable)
                return ForNode(
                    targets=targets,
                    iterable=iterable,
                    body=self.region(body),
                    reads=reads,
                    writes=targets,
                    **place,
                )
            case ast.While(condition=condition, limit=limit, body=body):
                reads = names_in(condition, limit)
                return WhileNode(condition=condition, limit=limit, body=self.region(body), reads=reads, **place)
            case ast.Break():
                return JumpNode(kind="break", **place)
            case ast.Continue():
                return JumpNode(kind="continue", **place)
            case ast.ForkCount() | ast.ForkEach() | ast.ForkArms():
                return self._fork(statement, place)
            case ast.Beam():
                return self._beam(statement, place)
            case ast.KeepBest(count=number, by=by):
                return KeepNode(kind="best", count=number, by=by, reads=names_in(number, by), **place)
            case ast.KeepWhere(condition=condition):
                return KeepNode(kind="where", count=None, by=condition, reads=names_in(condition), **place)
            case ast.KeepFirst(count=number):
                return KeepNode(kind="first", count=number, by=None, reads=names_in(number), **place)
            case ast.Adopt(branch=branch):
                return AdoptNode(branch=branch, reads=names_in(branch), **place)
            case ast.Pin():
                return PinNode(**place)
            case ast.Log(value=value):
                return LogNode(value=value, reads=names_in(value), **place)
            case ast.Return(value=value):
                return ReturnNode(value=value, reads=names_in(value), **place)
            case ast.Pass():
                return None
            case _:
                raise AssertionError(f"the checker let {type(statement).__name__} through")

    def _answer(self, target: str | None, answer: ast.Answer, place: dict[str, Any]) -> Node:
        place |= {"target": target, "writes": _written(target)}
        match answer:
            case ast.Gen(options=options):
                shape = self._checked.gen_shape(answer)
                return GenNode(shape=shape, options=named(options), reads=names_in(options), **place)
            case ast.Select(choices=choices, options=options):
                reads_scores = self._checked.reads_scores(answer)
                reads = names_in(choices, options)
                return SelectNode(
                    choices=choices, options=named(options), reads_scores=reads_scores, reads=reads, **place
                )
            case ast.Score(text=text):
                return ScoreNode(text=text, reads=names_in(text), **place)
        raise AssertionError(f"no lowering for {type(answer).__name__}")

    def _assign(self, target: str, value: ast.Expression, place: dict[str, Any]) -> Node:
        if isinstance(value, ast.CallExpression) and (self._checked.callee(value) or self._checked.tool(value)):
            return self._call(target, value, place)
        return LetNode(target=target, value=value, reads=names_in(value), writes=(target,), **place)

    def _call(self, target: str | None, call: ast.CallExpression, place: dict[str, Any]) -> Node:
        callee = self._checked.callee(call) or self._checked.tool(call)
        assert callee is not None
        arguments = _bind(callee.declaration.parameters, call.arguments)
        place |= {"target": target, "writes": _written(target), "arguments": arguments}
        place["reads"] = names_in(list(arguments.values()))
        if isinstance(callee, ProgramInfo):
            return CallNode(callee=callee.name, **place)
        return ToolNode(tool=_tool(callee), **place)

    def _use(self, statement: ast.Use, place: dict[str, Any]) -> Node:
        fragment = self._checked.fragment(statement)
        return UseNode(
            callee=fragment.name,
            parameters=fragment.parameters,
            arguments=_bind(fragment.parameters, statement.arguments),
            constants=dict(fragment.constants),
            body=self.region(fragment.body),
            reads=names_in(statement.arguments),
            **place,
        )

    def _if(self, statement: ast.If, place: dict[str, Any]) -> Node:
        conditions = tuple(condition for condition, _ in statement.branches)
        return IfNode(
            conditions=conditions,
            bodies=tuple(self.region(body) for _, body in statement.branches),
            otherwise=self.region(statement.otherwise),
            reads=names_in(conditions),
            **place,
        )

    def _beam(self, statement: ast.Beam, place: dict[str, Any]) -> Node:
        return BeamNode(
            name=statement.name,
            depth=statement.depth,
            width=statement.width,
            branch=statement.branch,
            by=statement.by,
            body=self.region(statement.body),
            reads=names_in(statement.depth, statement.width, statement.branch, statement.by),
            writes=(statement.name,),
            **place,
        )

    def _fork(self, statement: ast.ForkCount | ast.ForkEach | ast.ForkArms, place: dict[str, Any]) -> Node:
        place |= {"name": statement.name, "writes": (statement.name,)}
        if isinstance(statement, ast.ForkArms):
            arms = tuple(arm.name for arm in statement.arms)
            bodies = tuple(self.region(arm.body) for arm in statement.arms)
            return ForkNode(kind="arms", over=None, targets=(), arms=arms, bodies=bodies, allow_none=False, **place)
        over = statement.count if isinstance(statement, ast.ForkCount) else statement.iterable
        targets = () if isinstance(statement, ast.ForkCount) else statement.targets
        return ForkNode(
            kind="count" if isinstance(statement, ast.ForkCount) else "each",
            over=over,
            targets=targets,
            arms=(),
            bodies=(self.region(statement.body),),
            allow_none=statement.allow_none,
            reads=names_in(over),
            **place,
        )


def _tool(info: ToolInfo) -> Tool:
    return Tool(info.name, info.declaration.parameters, info.shapes, info.returns, info.constants)


def _written(target: str | None) -> tuple[str, ...]:
    return () if target is None else (target,)


def _bind(parameters: Sequence[ast.Parameter], arguments: Sequence[ast.Argument]) -> dict[str, ast.Expression]:
    """Arguments by parameter name; the checker has made sure that they fit."""
    positional = iter(parameters)
    return {argument.name or next(positional).name: argument.value for argument in arguments}
