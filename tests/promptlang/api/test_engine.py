"""Engines as users see them."""

import re

import pytest

import promptlang as pl
from promptlang.drawing.cache import dot


@pl.program
def ask(p: pl.Prompt, question: str) -> str:
    p.user(f"A question that all begin with: {question}")
    with p.assistant():
        return p.gen(max_tokens=3)


def test_what_is_cached_can_be_looked_at(engine: pl.Engine) -> None:
    ask("Why?")
    ask("Where?")
    view = engine.cache
    head, first, *others = str(view).split("\n")
    used = view.slots - view.free
    assert head == f"{used} of {view.slots:,} tokens in use"
    assert "<|im_start|>user" in first
    assert "A question that all begin with: " in view.roots[0].text
    assert view.roots[0].is_shared
    assert len(view.roots[0].children) == 2
    assert sum(int(re.match(r" *([\d]+)", line)[1]) for line in [first, *others]) == used  # type: ignore[index]


def test_the_picture_of_the_cache_has_every_edge(engine: pl.Engine) -> None:
    ask('Say "no" \\ or\nyes')
    lines = dot(engine.cache).split("\n")
    boxes = [line for line in lines if re.match(r"  n\d+ \[", line)]
    assert len(boxes) == str(engine.cache).count("\n")
    assert all(line.count('"') % 2 == 0 for line in (box.replace("\\\\", "").replace('\\"', "") for box in boxes))


def test_engines_that_are_closed_give_their_memory_back() -> None:
    import gc
    import weakref

    gone = []
    for _ in range(10):
        with pl.Engine() as engine:
            ask.using(engine=engine)("Why?")
            gone.append(weakref.ref(engine.lead().backends[None]))
    del engine
    gc.collect()
    assert [ref() for ref in gone] == [None] * 10


def test_an_engine_that_is_closed_says_so() -> None:
    engine = pl.Engine()
    ask.using(engine=engine)("Why?")
    engine.close()
    engine.close()
    with pytest.raises(pl.EngineError, match="closed"):
        ask.using(engine=engine)("Why?")
