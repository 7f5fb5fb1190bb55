"""Small random models, and the plain ways of running one that tests compare with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny_tokenizers import byte_level
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.slots import SlotRun
from promptlang.runtime.models.batch import build_batch
from promptlang.runtime.models.model import Model, attention_of
from promptlang.runtime.models.transformers_model import ATTENTION, register_attention

VOCABULARY = 97


def tiny_network(model_type: str = "llama", seed: int = 0, **changes: Any) -> Any:
    """A transformers network of two layers with random weights, large enough for the tokens to matter."""
    register_attention()
    settings = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.2,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    config = AutoConfig.for_model(model_type, **{**settings, **changes})
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(config, attn_implementation=ATTENTION, dtype=torch.float32).eval()


def saved_model(folder: Path, model_type: str = "llama", **changes: Any) -> Path:
    """A model's folder, as `save_pretrained` leaves it."""
    backend = byte_level()
    network = tiny_network(model_type, vocab_size=backend.get_vocab_size() + 5, **changes)
    network.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>").save_pretrained(folder)
    return folder


def run(model: Model, pool: KvPool, *lanes: Lane) -> torch.Tensor:
    """One pass."""
    return model.forward(build_batch(lanes, attention_of(model), model.shape.windows), pool).whole()


def cold_logits(model: Model, tokens: Sequence[int]) -> torch.Tensor:
    """Logits of every position, computed at once in an empty pool."""
    pool = KvPool(model.shape, len(tokens), model.dtype)
    return run(model, pool, Lane(tokens, 0, np.arange(len(tokens), dtype=np.int32), (), wants="all"))


def greedy(model: Model, prompt: Sequence[int], count: int) -> list[int]:
    """The most likely continuation, token by token, everything before cached."""
    pool = KvPool(model.shape, len(prompt) + count, model.dtype)
    tokens, computed = list(prompt), 0
    while len(tokens) < len(prompt) + count:
        slots = np.arange(computed, len(tokens), dtype=np.int32)
        context = (SlotRun(0, computed),) if computed else ()
        logits = run(model, pool, Lane(tokens[computed:], computed, slots, context))
        computed = len(tokens)
        tokens.append(int(logits[0].argmax()))
    return tokens[len(prompt) :]


def generate(network: Any, prompt: Sequence[int], count: int) -> list[int]:
    """What transformers itself generates greedily."""
    ours = network.config._attn_implementation
    network.set_attn_implementation("eager")
    tokens = network.generate(
        torch.tensor([list(prompt)]), do_sample=False, max_new_tokens=count, eos_token_id=None, pad_token_id=0
    )
    network.set_attn_implementation(ours)
    generated: list[int] = tokens[0, len(prompt) :].tolist()
    return generated
