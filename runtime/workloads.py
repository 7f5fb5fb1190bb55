"""Calls to replay: a program of agents, made up, and request traces, recorded."""

import json
from pathlib import Path

import numpy as np

from promptlang.runtime.prefix_cache import Tokens
from promptlang.runtime.simulator import Call, NextRead

TRACE_BLOCK = 512
"""Tokens a block of a Mooncake trace."""


def agent_program(agents: int, seed: int = 0) -> list[Call]:
    """A program of three stages over a list of documents, an agent each: plan, do two to six steps of the plan, report.

    All agents share a system prompt; an agent's steps and its report share its document and plan. Calls are served in
    the order in which they are made, so agents take turns. The program knows when an agent's turn comes again, until it
    has reported.

    Args:
        agents: how many.
        seed: of the made-up tokens and lengths.
    """
    random = np.random.default_rng(seed)
    system = _text(random, 300, 301)
    plans = [Call(np.concatenate([system, _text(random, 200, 600)]), _text(random, 100, 300)) for _ in range(agents)]
    last_turns = random.integers(3, 8, agents).tolist()
    calls = [_with_next_turn(plan, plan, agent, agents + agent) for agent, plan in enumerate(plans)]
    for turn in range(1, max(last_turns) + 1):
        for agent in (agent for agent in range(agents) if turn <= last_turns[agent]):
            task = np.concatenate([plans[agent].tokens, _text(random, 20, 80)])
            at = (turn + 1) * agents + agent if turn < last_turns[agent] else None
            calls.append(_with_next_turn(Call(task, _text(random, 40, 120)), plans[agent], agent, at))
    return calls


def _with_next_turn(call: Call, plan: Call, agent: int, at: int | None) -> Call:
    """The call, and when the program will read the agent's plan again."""
    return Call(call.prompt, call.answer, (NextRead(agent, len(plan.tokens), at),))


def _text(random: np.random.Generator, low: int, high: int) -> Tokens:
    """Made-up tokens, at least `low` and fewer than `high`."""
    return random.integers(0, 32_000, int(random.integers(low, high)), dtype=np.int32)


def read_trace(path: Path) -> list[Call]:
    """Read a request trace in Mooncake's format (Qin et al., FAST 2025): a JSON object a line, `hash_ids` naming the
    prompt's blocks of 512 tokens. A block stands for one token here.

    Args:
        path: a .jsonl file.
    """
    with path.open() as lines:
        return [Call(np.array(json.loads(line)["hash_ids"], np.int32)) for line in lines]
