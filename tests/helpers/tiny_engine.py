"""A whole engine on a tiny random model, with a real byte-level tokenizer and a chat template."""

from functools import cache

from tiny_models import tiny_network
from tiny_tokenizers import byte_level

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.models.loading import LoadedModel
from promptlang.runtime.models.transformers_model import TransformersModel
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings

TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@cache
def tiny_tokenizer() -> Tokenizer:
    """Byte-level BPE of 400 tokens and a few control tokens."""
    backend = byte_level()
    end = backend.token_to_id("<|im_end|>")
    return Tokenizer(
        backend, TokenizerSettings(backend.get_vocab_size(), (end,), {"eos_token": "<|im_end|>"}, TEMPLATE)
    )


@cache
def tiny_loaded(seed: int = 0) -> LoadedModel:
    """A model whose vocabulary is the tokenizer's."""
    tokenizer = tiny_tokenizer()
    network = tiny_network(seed=seed, vocab_size=tokenizer.vocab_size, max_position_embeddings=2048)
    return LoadedModel(TransformersModel(network), tokenizer, "tiny")


def tiny_engine(tokens: int = 4096, **options: object) -> Engine:
    """An engine with room for that many tokens."""
    return Engine(tiny_loaded(), EngineOptions(kv_bytes=kv_bytes(tokens), **options))  # type: ignore[arg-type]


def kv_bytes(tokens: int) -> int:
    """The memory that the KV of that many tokens takes, on the tiny model."""
    model = tiny_loaded().model
    return tokens * KvPool.bytes_per_token(model.shape, model.dtype)


def prompt_of(engine: Engine, text: str) -> TokenPrompt:
    """A plain prompt with that text."""
    prompt = engine.new_prompt()
    prompt.add(text)
    prompt.flush()
    return prompt
