"""From a model's name to a model that is ready."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from promptlang.runtime.models import gguf_files
from promptlang.runtime.models.crossover import kept_limit
from promptlang.runtime.models.devices import find_device
from promptlang.runtime.models.four_bit_weights import FourBitWeights
from promptlang.runtime.models.layouts import Layouts
from promptlang.runtime.models.lean_model import LeanConfig, LeanModel
from promptlang.runtime.models.measurements import Measurements
from promptlang.runtime.models.model import Model, ModelError
from promptlang.runtime.models.quiet import quiet_transformers
from promptlang.runtime.models.self_test import self_test
from promptlang.runtime.models.sources import Progress, find_source
from promptlang.runtime.models.transformers_model import ATTENTION, TransformersModel, register_attention
from promptlang.runtime.text.tokenizer import Tokenizer

CPU = torch.device("cpu")

_LOG = logging.getLogger(__name__)


_WHOLE_MODELS = ("model.safetensors", "model.safetensors.index.json")
_PICKLES = {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"}


@dataclass(frozen=True)
class ComputeOptions:
    """How and where a model computes.

    Attributes:
        dtype: of its activations.
        four_bits: whether its layers' weights have four bits.
        one_layout: whether weights are kept in one layout, that all rows go through.
        drafts: whether weights are kept in four bits besides, where they have more.
        measurements: of this machine.
        kept_in: a folder for weights in four bits; None where they aren't kept.
        device: where its weights are.
    """

    dtype: torch.dtype
    four_bits: bool = False
    one_layout: bool = False
    drafts: bool = False
    measurements: Measurements = field(default_factory=Measurements)
    kept_in: Path | None = None
    device: torch.device = CPU

    def layouts(self, key: str | None = None) -> Layouts:
        """How a model's weights are kept.

        Args:
            key: stands for all that the weights are; None where nothing does.
        """
        return Layouts(
            self.dtype,
            self.four_bits,
            self.one_layout,
            self.drafts,
            partial(kept_limit, self.measurements),
            FourBitWeights(self._four_bit_file(key) if key is not None else None),
        )

    def _four_bit_file(self, key: str) -> Path | None:
        """torch lays them out as the processor likes it."""
        if self.kept_in is None:
            return None
        capability = torch.backends.cpu.get_cpu_capability()
        return self.kept_in / f"four-bits-{key}-{capability}-{torch.__version__}.safetensors"


DTYPES = {
    "float32": ComputeOptions(torch.float32),
    "bfloat16": ComputeOptions(torch.bfloat16),
    "float16": ComputeOptions(torch.float16),
    "int4": ComputeOptions(torch.float32, four_bits=True),
}


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready, with its tokenizer.

    Attributes:
        model: computes logits.
        tokenizer: belongs to it.
        name: what the user called it.
        measurements: of the machine it runs on.
    """

    model: Model
    tokenizer: Tokenizer
    name: str
    measurements: Measurements = field(default_factory=Measurements)


def load(
    name: str = "embedded",
    *,
    device: str = "cpu",
    dtype: str | None = None,
    one_layout: bool = False,
    drafts: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> LoadedModel:
    """Load a model.

    Args:
        name: `embedded`, a Hugging Face hub id, a folder with safetensors, or a `.gguf` file.
        device: where the model lives, and its keys and values and its batches with it: `auto`, `cpu`, `cuda`, `cuda:1`
            ...
        dtype: of weights and activations: `float32`, `bfloat16`, `float16`, or `int4` for weights in four bits where
            a step has few rows (for Llama-like models on a CPU; approximate). None is `float32` on a CPU and
            `bfloat16` elsewhere.
        one_layout: don't choose the layout of weights by the rows of a step.
        drafts: make `Model.drafting` where that is sensible: for a small Llama-like model on a CPU.
        cache: keep converted copies of GGUF files, weights in four bits, what tests of other models showed and what was
            measured about this machine, under the user's cache folder; without it every start converts, rounds, tests
            and measures.
        progress: told in a few words what takes long.

    Raises:
        ModelError: there is no such model, or it can't be used.
    """
    if dtype not in (None, *DTYPES):
        raise ModelError(f"there is no dtype {dtype}; use one of {', '.join(DTYPES)}")
    tell = progress or _ignore
    place = find_device(device)
    dtype = dtype or ("float32" if place == CPU else "bfloat16")
    options = replace(DTYPES[dtype], one_layout=one_layout, drafts=drafts, device=place)
    if options.four_bits and options.device != CPU:
        raise ModelError(f"weights in four bits are laid out for the CPU; use bfloat16 on {options.device}")
    if cache:
        kept_in = _kept_folder()
        options = replace(options, measurements=Measurements(kept_in), kept_in=kept_in)
    with _explained(name):
        source = find_source(name, cache, tell)
    if source.is_converted:
        return _load_converted(name, source.folder, options)
    if source.gguf_file is not None:
        tell("dequantising the model")
        return _load_with_transformers(name, source.folder, options, gguf_file=source.gguf_file)
    return _load_folder(name, source.folder, options, cache, tell)


def _ignore(message: str) -> None:
    """Nobody wants to know."""


def _kept_folder() -> Path | None:
    """The folder for what is measured about this machine and made for it; None where it can't be had."""
    folder = gguf_files.cache_folder().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _LOG.warning("what is measured can't be kept, nor what is made of weights: %s", error)
        return None
    return folder


def _load_converted(name: str, folder: Path, options: ComputeOptions) -> LoadedModel:
    """A model that was tested as it was converted, unless it goes through transformers."""
    with _explained(f"the converted model in {folder} (delete that folder to convert it again)"):
        model: Model | None = _lean_model(folder, options, folder.name)
        if model is None:
            model = _model_of(name, _network(folder, options), options)
        return LoadedModel(model, gguf_files.load_tokenizer(folder), name, options.measurements)


def _load_folder(name: str, folder: Path, options: ComputeOptions, cache: bool, tell: Progress) -> LoadedModel:
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no config.json; give a model's folder, a .gguf file or a hub id")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(f"{folder} holds no safetensors; convert the weights with transformers' save_pretrained")
    _refuse_pickles(folder)
    with _explained(name):
        model = _lean_model(folder, options, _content_key(folder) if cache else None)
        if model is None:
            return _load_with_transformers(name, folder, options)
        if not options.four_bits:
            _test_once(folder, model, options, cache, tell)
        tokenizer = _tokenizer(name, folder, model.shape.vocab_size)
        return LoadedModel(model, tokenizer, name, options.measurements)


def _refuse_pickles(folder: Path) -> None:
    """Refuse a folder whose weights may lie in pickles, which run whatever they hold as they are read.

    Raises:
        ModelError: there are pickles, and no safetensors that are surely the model.
    """
    if any((folder / name).is_file() for name in _WHOLE_MODELS):
        return
    pickles = sorted(file.name for file in folder.iterdir() if file.suffix in _PICKLES)
    if pickles:
        raise ModelError(
            f"{folder} holds pickled weights, {pickles[0]}, and no {_WHOLE_MODELS[0]}; only safetensors are read: "
            "convert the weights with transformers' save_pretrained"
        )


def _test_once(folder: Path, model: LeanModel, options: ComputeOptions, cache: bool, tell: Progress) -> None:
    """Compare with transformers what a folder's model computes, unless an earlier start has.

    Raises:
        ModelError: they differ.
    """
    passed = gguf_files.cache_folder() / f"tested-{options.device.type}-{_content_key(folder)}"
    if cache and passed.exists():
        return
    tell("comparing the model with transformers: once")
    self_test(model, _network(folder, options))
    if cache:
        try:
            passed.parent.mkdir(parents=True, exist_ok=True)
            passed.touch()
        except OSError as error:
            _LOG.warning("the next start will compare the model with transformers again: %s", error)


def _weights(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _content_key(folder: Path) -> str:
    """What stands for a folder's model."""
    return gguf_files.content_key(folder / "config.json", *_weights(folder))


def _lean_model(folder: Path, options: ComputeOptions, key: str | None) -> LeanModel | None:
    """The model straight from its files; None where the lean path doesn't know the architecture."""
    from safetensors.torch import load_file

    config = LeanConfig.read(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    if config is None:
        return None
    weights = {}
    for file in _weights(folder):
        weights.update(load_file(file, device=str(options.device)))
    return LeanModel(config, weights, options.layouts(key))


def _load_with_transformers(name: str, folder: Path, options: ComputeOptions, **where: str) -> LoadedModel:
    """Slower to load, but for any architecture; what it gives is tested."""
    with _explained(name):
        model = _model_of(name, _network(folder, options, **where), options)
        tokenizer = _tokenizer(name, folder, model.shape.vocab_size, **where)
        return LoadedModel(model, tokenizer, name, options.measurements)


def _network(folder: Path, options: ComputeOptions, **where: str) -> Any:
    """A model in transformers' hands, with our attention."""
    from transformers import AutoModelForCausalLM

    register_attention()
    with quiet_transformers():
        network = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=options.dtype,
            attn_implementation=ATTENTION,
            trust_remote_code=False,
            use_safetensors=None if where else True,  # a pickle is never read; GGUF files are neither
            **where,
        )
    return network.to(options.device)


def _model_of(name: str, network: Any, options: ComputeOptions) -> Model:
    config = {key: value for key, value in network.config.to_dict().items() if key != "quantization_config"}
    lean = LeanConfig.read(config)
    if lean is not None:
        model: Model = LeanModel(lean, network.state_dict(), options.layouts())
    elif not options.four_bits:
        model = TransformersModel(network)
    else:
        raise ModelError(f"{name} is no Llama-like model, so it can't run in four bits; use float32")
    if not options.four_bits:
        self_test(model, network)
    return model


def _tokenizer(name: str, folder: Path, vocab_size: int, **where: str) -> Tokenizer:
    from transformers import AutoTokenizer

    with _explained(name), quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **where)
    if not tokenizer.is_fast:
        raise ModelError(f"{name} has no fast tokenizer (tokenizer.json); promptlang needs one")
    return Tokenizer.from_transformers(tokenizer, vocab_size, _generation_ends(folder))


def _generation_ends(folder: Path) -> list[int]:
    """The end tokens that a generation config names beside the tokenizer's own."""
    file = folder / "generation_config.json"
    if not file.is_file():
        return []
    ends = json.loads(file.read_text(encoding="utf-8")).get("eos_token_id")
    return [ends] if isinstance(ends, int) else ends or []


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what transformers raises for files it can't load into one sentence."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # four libraries read these files, and each has its own errors for a broken one
        reason = str(error).strip().split("\n", 1)[0] or type(error).__name__
        lacks = "it lacks " if isinstance(error, KeyError) else ""
        raise ModelError(f"{name} can't be loaded: {lacks}{reason}") from error
