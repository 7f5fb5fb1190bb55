"""Calls to replay: a program of agents, made up, and request traces, recorded."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from promptlang.runtime.cache.prefix_cache import TokenIds
from promptlang.runtime.simulation.simulator import Call, NextRead

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


def _text(random: np.random.Generator, low: int, high: int) -> TokenIds:
    """Made-up tokens, at least `low` and fewer than `high`."""
    return random.integers(0, 32_000, int(random.integers(low, high)), dtype=np.int32)


def read_trees(path: Path, count: int) -> list[Call]:
    """Read runs of tree searches in DeFT's format (Yao et al., arXiv:2404.00242): a JSON list, each entry with the
    nodes of a tree, their size and their children. Each node is a call that writes it behind its parent. The program
    knows when a node's next child comes. Texts of different nodes share nothing.

    Args:
        path: a .json file.
        count: how many trees; empty ones don't count.
    """
    entries = json.loads(path.read_text())
    trees = [entry["data"] for entry in entries if entry["data"]][:count]
    calls: list[Call] = []
    first_token = 0
    for tree in trees:
        calls += _tree_calls(tree, first_token, len(calls))
        first_token += sum(node["value"] for node in tree.values())
    return calls


def _tree_calls(tree: dict[str, Any], token: int, start: int) -> list[Call]:
    """The calls of one tree in the order of its nodes' numbers; its tokens count up from `token`, its calls from
    `start`."""
    nodes = sorted(tree.values(), key=lambda node: int(node["id"]))
    order = {node["id"]: start + index for index, node in enumerate(nodes)}
    parents = {child: node["id"] for node in nodes for child in node["children"]}
    paths: dict[int, TokenIds] = {}
    calls: list[Call] = []
    for node in nodes:
        written = np.arange(token, token := token + node["value"], dtype=np.int32)
        parent = parents.get(node["id"])
        before = paths.get(parent, written[:0]) if parent is not None else written[:0]
        paths[node["id"]] = np.concatenate([before, written])
        reads = [NextRead((start, node["id"]), len(before) + len(written), _next(node, order[node["id"]], order))]
        if parent is not None:
            at = _next(tree[str(parent)], order[node["id"]], order)
            reads.append(NextRead((start, parent), len(before), at))
        prompt, answer = (written, before[:0]) if parent is None else (before, written)
        calls.append(Call(prompt, answer, tuple(reads)))
    return calls


def _next(node: dict[str, Any], now: int, order: dict[int, int]) -> int | None:
    """When a child of the node comes next after `now`."""
    return min((order[child] for child in node["children"] if order[child] > now), default=None)


def read_trace(path: Path) -> list[Call]:
    """Read a request trace in Mooncake's format (Qin et al., FAST 2025): a JSON object a line, `hash_ids` naming the
    prompt's blocks of 512 tokens. A block stands for one token here.

    Args:
        path: a .jsonl file.
    """
    with path.open() as lines:
        return [Call(np.array(json.loads(line)["hash_ids"], np.int32)) for line in lines]
