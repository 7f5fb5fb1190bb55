"""The memory of a machine and of its devices."""

import psutil
import pytest
import torch
from tiny_engine import kv_bytes, tiny_loaded

from promptlang.runtime.engine import DEFAULT_KV_BYTES, Engine, EngineOptions
from promptlang.runtime.models.memory import available_memory


def test_the_host_has_what_the_system_says() -> None:
    total = psutil.virtual_memory().total
    assert 0 < available_memory(torch.device("cpu")) <= total


def test_a_device_with_memory_of_its_own_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (asked.append(device), (40, 100))[1])
    assert available_memory(torch.device("cuda:1")) == 40
    assert asked == [torch.device("cuda:1")]


def test_the_cache_takes_a_quarter_of_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 4 * kv_bytes(1000)

    assert Memory.available < DEFAULT_KV_BYTES
    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    assert Engine(tiny_loaded(), EngineOptions()).pool.size == 1000
