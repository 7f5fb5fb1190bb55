"""What a session needs of a model: its engine, and the loop of that.

Importing this loads torch; no other file of this room, nor of the command line, does.
"""

import os
from collections.abc import Callable

from promptlang.interpreter.loop import EngineLoop
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.models.loading import LoadedModel, load
from promptlang.runtime.models.model import Model, ModelError
from promptlang.runtime.models.pass_costs import PassCosts, kept_costs
from promptlang.runtime.requests import RequestError
from promptlang.session.settings import OpeningError, Settings


def open_loop(settings: Settings, progress: Callable[[str], None] | None = None) -> tuple[Engine, EngineLoop]:
    """Load a model; gives an engine that runs it, and its loop.

    Args:
        settings: which, and how.
        progress: told in a few words what takes long.

    Raises:
        OpeningError: there is no such model, or the KV budget is too small.
    """
    try:
        if os.environ.get("PROMPTLANG_NO_MODEL"):
            raise ModelError("PROMPTLANG_NO_MODEL is set, so no model is loaded; unset it, or give scripted answers")
        speculates = settings.speculates and not settings.deterministic
        loaded = load(
            settings.model,
            device=settings.device,
            dtype=settings.dtype,
            one_layout=settings.deterministic,
            drafts=speculates,
            progress=progress,
        )
        options = EngineOptions(
            kv_bytes=settings.kv_bytes,
            shares=settings.shares,
            pass_costs=_costs(loaded, loaded.model, progress) if speculates else None,
            drafting_costs=_costs(loaded, loaded.model.drafting, progress),
            template_options=settings.template_options,
        )
        engine = Engine(loaded, options)
        return engine, EngineLoop(LocalBackend(engine))
    except (ModelError, RequestError) as error:
        raise OpeningError(str(error)) from error


def _costs(loaded: LoadedModel, model: Model | None, progress: Callable[[str], None] | None) -> PassCosts | None:
    """What passes of a model cost here, if there is one; told about where they are measured."""
    if model is None:
        return None

    def measured() -> None:
        if progress is not None:
            progress("measuring what passes of the model cost: once")

    return kept_costs(loaded.measurements, model, measured)
