"""Who we measure ourselves against: llama.cpp and transformers, each driven as its own users would for siblings of
one prefix."""

import ctypes
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch


class Decoder(Protocol):
    """Something that holds a prefix and extends siblings of it, a token each a step."""

    name: str

    def start(self, prefix: list[int], siblings: int) -> None:
        """Compute the prefix once and make the siblings; whatever was there before is gone."""

    def step(self) -> None:
        """One token for every sibling, greedily."""

    def prefill(self, tokens: list[int]) -> None:
        """Compute a prompt from nothing."""


class LlamaCpp:
    """llama.cpp through its C interface: one unified KV cache, siblings by `seq_cp`, which shares cells and copies
    nothing.

    Args:
        file: a GGUF file.
        context: tokens in the cache.
        threads: of the CPU.
    """

    name = "llama.cpp"

    def __init__(self, file: Path, context: int, threads: int) -> None:
        import llama_cpp

        self._api = llama_cpp
        self._log = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._log, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self._model = llama_cpp.llama_model_load_from_file(str(file).encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = 512
        params.n_seq_max = 64
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(512, 0, 1)
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        self._position = 0
        self._last: list[int] = []

    def _decode(self, rows: list[tuple[int, int, int]], wanted: bool) -> None:
        """Rows are (token, position, sequence); logits for all of them or only for the last."""
        batch = self._batch
        batch.n_tokens = len(rows)
        for index, (token, position, sequence) in enumerate(rows):
            batch.token[index] = token
            batch.pos[index] = position
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequence
            batch.logits[index] = wanted or index == len(rows) - 1
        code = self._api.llama_decode(self._context, batch)
        if code:
            raise RuntimeError(f"llama_decode gave {code}")

    def _argmax(self, row: int) -> int:
        pointer = self._api.llama_get_logits_ith(self._context, row)
        return int(np.ctypeslib.as_array(pointer, shape=(self._vocabulary,)).argmax())

    def prefill(self, tokens: list[int]) -> None:
        self._api.llama_memory_clear(self._memory, False)
        for at in range(0, len(tokens), 512):
            chunk = tokens[at : at + 512]
            self._decode([(token, at + index, 0) for index, token in enumerate(chunk)], wanted=False)
        self._position = len(tokens)
        self._last = [self._argmax(len(chunk) - 1)]

    def start(self, prefix: list[int], siblings: int) -> None:
        self.prefill(prefix)
        for sequence in range(1, siblings):
            self._api.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)
        self._last = self._last * siblings

    def step(self) -> None:
        self._decode([(token, self._position, sequence) for sequence, token in enumerate(self._last)], wanted=True)
        self._last = [self._argmax(row) for row in range(len(self._last))]
        self._position += 1


class Transformers:
    """transformers' own decoding of a batch with its DynamicCache: what `generate` does a step, the prefix computed
    once.

    Args:
        folder: a model folder.
    """

    name = "transformers"

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM

        self._network: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._cache: Any = None
        self._last = torch.empty(0)

    @torch.inference_mode()
    def prefill(self, tokens: list[int]) -> None:
        answer = self._network(input_ids=torch.tensor([tokens]), use_cache=True, logits_to_keep=1)
        self._cache, self._last = answer.past_key_values, answer.logits[:, -1].argmax(-1)

    @torch.inference_mode()
    def start(self, prefix: list[int], siblings: int) -> None:
        self.prefill(prefix)
        self._cache.batch_repeat_interleave(siblings)
        self._last = self._last.repeat(siblings)

    @torch.inference_mode()
    def step(self) -> None:
        answer = self._network(input_ids=self._last[:, None], cache=self._cache, use_cache=True)
        self._cache, self._last = answer.past_key_values, answer.logits[:, -1].argmax(-1)
