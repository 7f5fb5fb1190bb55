"""The model calls of a program: their options, their constraints, and what they bind."""

from collections.abc import Mapping, Sequence

from promptlang.checker.inference import Inference
from promptlang.checker.names import TypeResolver
from promptlang.checker.statics import AnswerType, Scope, Static, kind_of, may_be, name_of, static_of
from promptlang.checker.tables import Checked
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.grammar import shapes
from promptlang.grammar.checking import check_shape
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.shapes import Shape, describe
from promptlang.syntax import ast
from promptlang.syntax.walk import named
from promptlang.values.values import render_text

RULES = ("sum", "mean", "prior", "greedy")

_WHOLE = "a whole number"
_GEN_OPTIONS: Mapping[str, tuple[Shape, str]] = {
    "max_tokens": (shapes.Int(1), f"{_WHOLE}, at least 1"),
    "min_tokens": (shapes.Int(0), f"{_WHOLE}, at least 0"),
    "stop": (shapes.Union((shapes.Str(), shapes.List(shapes.Str()))), "a text that isn't empty, or a list of them"),
    "temperature": (shapes.Float(0), "a number, at least 0"),
    "top_p": (shapes.Float(0, 1), "a number from 0 to 1"),
    "top_k": (shapes.Int(0), f"{_WHOLE}, at least 0"),
    "min_p": (shapes.Float(0, 1), "a number from 0 to 1"),
    "repetition_penalty": (shapes.Float(1e-9), "a number above 0"),
    "seed": (shapes.Int(), _WHOLE),
    "heal": (shapes.Bool(), "true or false"),
    "logprobs": (shapes.Bool(), "true or false"),
    "pretty": (shapes.Bool(), "true or false"),
}
_GEN_EXTRAS: Mapping[str, Shape] = {"logprobs": shapes.List(shapes.Float())}
_SELECT_EXTRAS: Mapping[str, Shape] = dict.fromkeys(("probs", "scores"), shapes.Dict(shapes.Float()))
_SELECT_OPTIONS: Mapping[str, tuple[Shape, str]] = {
    "by": (shapes.Union(tuple(map(shapes.Constant, RULES))), "one of " + ", ".join(f'"{rule}"' for rule in RULES)),
    "temperature": (shapes.Float(0), "a number, at least 0"),
    "heal": (shapes.Bool(), "true or false"),
}
OPTIONS: Mapping[str, tuple[str, ...]] = {"gen": tuple(_GEN_OPTIONS), "select": ("options", *_SELECT_OPTIONS)}
"""The names of what may be given to an answer, by what asks for it."""


class AnswerChecker:
    """Checks the answers of one file and writes what lowering needs to `checked`."""

    def __init__(
        self, inference: Inference, types: TypeResolver, checked: Checked, diagnostics: list[Diagnostic]
    ) -> None:
        self._inference = inference
        self._types = types
        self._checked = checked
        self._diagnostics = diagnostics

    def type_of(self, answer: ast.Answer, scope: Scope) -> Static:
        """The type of what an answer binds."""
        match answer:
            case ast.Gen():
                return self._gen(answer, scope)
            case ast.Select():
                return self._select(answer, scope)
            case ast.Score(text=text):
                self._inference.expect(text, shapes.Str(), "the text of `score`", scope)
                return shapes.Float()
        raise AssertionError(f"no check for {type(answer).__name__}")

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)

    def _gen(self, gen: ast.Gen, scope: Scope) -> Static:
        self._options("gen", gen.options, _GEN_OPTIONS, scope)
        self._check_tokens(gen.options)
        shape: Shape = shapes.Str()
        if gen.type is not None:
            shape = self._types.resolve(gen.type)
            self._checked.gen_shapes[id(gen)] = shape
            self._check_constraint(gen.type, shape)
        pretty = next((option for option in gen.options if option.name == "pretty"), None)
        if pretty is not None and not _has_parts(shape):
            self._report(faults.no_pretty(pretty.span, describe(shape)))
        logprobs = next((option for option in gen.options if option.name == "logprobs"), None)
        if logprobs is not None and self._asks_for(logprobs, shape):
            return AnswerType(shape, _GEN_EXTRAS)
        return static_of(shape)

    def _check_tokens(self, options: Sequence[ast.Argument]) -> None:
        """Whether an answer can have as many tokens as it must; where both numbers are written out."""
        least, most = (named(options).get(name) for name in ("min_tokens", "max_tokens"))
        match least, most:
            case ast.Literal(value=int() as low, span=span), ast.Literal(value=int() as high) if 0 < high < low:
                self._report(faults.bad_option(span, "min_tokens", f"at most `max_tokens` ({high})", str(low)))

    def _asks_for(self, logprobs: ast.Argument, shape: Shape) -> bool:
        """Whether `logprobs=` says yes. It is written out, for `x.logprobs` is there or not; and text and numbers have
        room for it."""
        if not isinstance(logprobs.value, ast.Literal):
            self._report(
                faults.bad_option(logprobs.value.span, "logprobs", "true or false, written out", "an expression")
            )
        elif logprobs.value.value is True and not _is_text_or_number(shape):
            self._report(faults.no_logprobs(logprobs.span, describe(shape)))
        return logprobs.value == ast.Literal(value=True, span=logprobs.value.span)

    def _check_constraint(self, written: ast.TypeExpression, shape: Shape) -> None:
        """Whether answers can be held to the type at all."""
        try:
            check_shape(shape)
        except ConstraintError as error:
            self._report(faults.bad_constraint(written.span, str(error)))

    def _options(
        self, what: str, options: Sequence[ast.Argument], known: Mapping[str, tuple[Shape, str]], scope: Scope
    ) -> None:
        seen: set[str] = set()
        for option in options:
            assert option.name is not None
            found = self._inference.type_of(option.value, scope)
            if option.name in seen:
                self._report(faults.argument_twice(option.span, f"`{what}`", option.name))
            elif option.name not in known:
                self._report(faults.unknown_option(option.span, what, option.name, known))
            elif not may_be(found, known[option.name][0]) or (option.name == "stop" and _has_empty(found)):
                self._report(faults.bad_option(option.value.span, option.name, known[option.name][1], name_of(found)))
            seen.add(option.name)

    # Select ------------------------------------------------------------------------------------------

    def _select(self, select: ast.Select, scope: Scope) -> Static:
        listed = next((option for option in select.options if option.name == "options"), None)
        self._options("select", [option for option in select.options if option is not listed], _SELECT_OPTIONS, scope)
        texts = [text for choice in select.choices if (text := self._choice(choice, scope)) is not None]
        self._check_texts(texts)
        if listed is not None:
            if select.choices:
                self._report(faults.options_twice(listed.span))
            return AnswerType(self._listed(listed, scope), _SELECT_EXTRAS, frozenset({id(select)}))
        if not select.choices:
            self._report(faults.no_options(select.span))
        known = len(texts) == len(select.choices) and texts
        shape = shapes.Union(tuple(shapes.Constant(text) for _, text in texts)) if known else shapes.Str()
        return AnswerType(shape, _SELECT_EXTRAS, frozenset({id(select)}))

    def _choice(self, choice: ast.Expression, scope: Scope) -> tuple[ast.Expression, str] | None:
        """An option and its text, where it is known."""
        found = self._inference.type_of(choice, scope)
        if kind_of(found) in ("list", "branches"):
            self._report(faults.list_as_option(choice.span))
        elif kind_of(found) in ("dict", "record", "branch", "arms", "none"):
            self._report(faults.wrong_type(choice.span, "an option", "str", name_of(found)))
        if not isinstance(found, shapes.Constant):
            return None
        return choice, render_text(found.value)

    def _check_texts(self, texts: Sequence[tuple[ast.Expression, str | None]]) -> None:
        """Report options that are empty, or there already."""
        seen: set[str] = set()
        for choice, text in texts:
            if text == "":
                self._report(faults.empty_option(choice.span))
            elif text is not None and text in seen:
                self._report(faults.option_twice(choice.span, describe(shapes.Constant(text))))
            seen.add(text or "")

    def _listed(self, option: ast.Argument, scope: Scope) -> Shape:
        """The shape of what is chosen from a list."""
        found = self._inference.type_of(option.value, scope)
        kind = kind_of(found)
        if kind is not None and kind != "list":
            self._report(faults.bad_option(option.value.span, "options", "a list", name_of(found)))
        if not isinstance(found, shapes.List):
            return shapes.Str()
        if found.maximum == 0:
            self._report(faults.no_options(option.value.span))
        if isinstance(option.value, ast.ListDisplay):
            self._check_texts([(item, item.constant) for item in option.value.items if isinstance(item, ast.Template)])
        members = found.item.options if isinstance(found.item, shapes.Union) else (found.item,)
        return (
            found.item
            if all(isinstance(member, shapes.Constant) and isinstance(member.value, str) for member in members)
            else shapes.Str()
        )


def _is_text_or_number(shape: Shape) -> bool:
    if isinstance(shape, shapes.Union):
        return all(map(_is_text_or_number, shape.options))
    return kind_of(shape) in ("str", "int", "float")


def _has_parts(shape: Shape) -> bool:
    """Whether some value of a shape is a list, a dict or a record."""
    if isinstance(shape, shapes.Union):
        return any(map(_has_parts, shape.options))
    return isinstance(shape, shapes.List | shapes.Dict | shapes.Record | shapes.AnyJson | shapes.Schema)


def _has_empty(static: Static) -> bool:
    """Whether a text is empty, or some text of a list."""
    shape = static.item if isinstance(static, shapes.List) else static
    options = shape.options if isinstance(shape, shapes.Union) else (shape,)
    return shapes.Constant("") in options
