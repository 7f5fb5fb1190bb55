"""Chat templates: Jinja programs that come with a model, and run in a sandbox."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, meta, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class TemplateRefusedError(Exception):
    """The chat template can't render these messages; `str()` says why."""


class _GenerationBlock(Extension):
    """`{% generation %}` marks answers for training; here its body is rendered as it stands."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ConversationTemplate:
    """One compiled chat template.

    Args:
        source: Jinja source.
        variables: constants it may name (`bos_token`, `eos_token`, ...).

    Attributes:
        names: what it takes from outside.

    Raises:
        TemplateRefusedError: the source is no template.
    """

    def __init__(self, source: str, variables: dict[str, str]) -> None:
        self._variables = variables
        try:
            self._template = _compile(source)
            self.names = frozenset(meta.find_undeclared_variables(self._template.environment.parse(source)))
        except TemplateError as error:
            raise TemplateRefusedError(f"the chat template is broken: {error}") from error

    def render(self, messages: list[dict[str, str]], add_generation_prompt: bool, options: Mapping[str, Any]) -> str:
        """The conversation as text.

        Args:
            messages: with `role` and `content` each.
            add_generation_prompt: whether the opening of an answer follows.
            options: more that it may name; they win over the constants.

        Raises:
            TemplateRefusedError: the template refuses the messages, or fails on them.
        """
        try:
            return self._template.render(
                {
                    "tools": None,  # templates tell "none" from "not defined", and are written for the former
                    "documents": None,
                    **self._variables,
                    **options,
                    "messages": messages,
                    "add_generation_prompt": add_generation_prompt,
                }
            )
        # A template computes with what it is given: it may divide, index and call, and fail as any program
        # does.
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise TemplateRefusedError(str(error)) from error


def _compile(source: str) -> Template:
    """Templates are written for these settings, filters and functions; there is no standard but custom."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _GenerationBlock]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)
