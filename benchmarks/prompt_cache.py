"""How much of what models read repeats what they have read before, by experiment.

    python -m benchmarks.prompt_cache

A provider's prompt cache serves the longest prefix, of tools and then messages, that it has seen before. A run of each
experiment is played with scripted models; printed is the share of input that repeats an earlier call of the same agent,
and of anybody, and the least prefix that two agents share. Tokens are estimates, as for all scripted models.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from bisect import bisect, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from os.path import commonprefix  # character by character, which is what is meant here
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from labmates.api import arun
from labmates.budgets.tokens import estimate_messages, estimate_tokens, text_of
from labmates.condition_types import Kind
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import ScriptedModel

PLAYED: Sequence[tuple[str, dict[str, Any]]] = [
    ("game", {"game": "common-pool", "rounds": 1}),
    ("game", {"game": "common-pool", "rounds": 10}),
    ("game", {"game": "common-pool-sanctions", "rounds": 5, "deliberation": True}),
    ("dilemma", {"game": "prisoners", "mechanism": "repetition"}),
    ("dilemma", {"game": "trust", "mechanism": "repetition"}),
    ("dilemma", {"game": "public-goods", "mechanism": "contract"}),
    ("tournament", {"structure": "ri"}),
    ("tournament", {"structure": "sa", "messages": "each-match"}),
    ("strategies", {"game": "public-goods", "attitude": "collective", "number": 6}),
    *(
        ("science", {"task": "anomaly", "organisation": name})
        for name in ("solo", "independent", "centralised", "decentralised", "hybrid", "blackboard", "pipeline")
    ),
]
"""Experiments and what is set in them."""
SPEAK = {"game": "conditional", "dilemma": "tit-for-tat", "tournament": "tit-for-tat", "strategies": "author"}


@dataclass(frozen=True)
class Call:
    """One call: who made it, its input in the order in which a cache compares it, its tokens."""

    agent: str
    text: str
    tokens: int


CALLS: list[Call] = []


def watch(baseline: str) -> str:
    """Return a model that plays as a baseline does, and whose calls are written down."""
    plain = cast(type[ScriptedModel], BASELINES.get(baseline))

    async def ainvoke(self: Any, input: Any, config: RunnableConfig | None = None, **more: Any) -> AIMessage:
        CALLS.append(read_call(input, more.get("tools") or (), (config or {})["metadata"]["agent"]))
        return await plain.ainvoke(self, input, config, **more)

    name = f"watched-{baseline}"
    if name not in BASELINES:
        BASELINES.register(name, type("Watched", (plain,), {"ainvoke": ainvoke}))
    return f"scripted:{name}"


def read_call(messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]], agent: str) -> Call:
    """Return a call as a provider reads it."""
    pieces = [json.dumps(tool, separators=(",", ":")) for tool in tools]
    for message in messages:
        text = f"<{message.type}>{text_of(message.content)}"
        if isinstance(message, AIMessage) and message.tool_calls:
            text += json.dumps([{"name": one["name"], "args": one["args"]} for one in message.tool_calls])
        pieces.append(text)
    return Call(agent, "".join(pieces), estimate_messages(messages, tools))


def repeated(calls: Sequence[Call], *, same_agent: bool) -> float:
    """Return the share of the input that is a prefix of the same agent's, or of anybody's, earlier call."""
    served = total = 0
    earlier: dict[str, list[str]] = {}
    for call in calls:
        texts = earlier.setdefault(call.agent if same_agent else "", [])
        place = bisect(texts, call.text)  # The longest common prefix is with a neighbour in alphabetical order.
        near = (commonprefix([call.text, text]) for text in texts[max(0, place - 1) : place + 1])  # noqa: RUF071
        served += round(call.tokens * max(map(len, near), default=0) / len(call.text))
        total += call.tokens
        insort(texts, call.text)
    return served / total


def shared(calls: Iterable[Call]) -> int:
    """Return the tokens of the least prefix that two agents' first calls share."""
    first = {call.agent: call.text for call in reversed(list(calls))}
    prefixes = (commonprefix([one, other]) for one, other in combinations(first.values(), 2))  # noqa: RUF071
    return min(map(estimate_tokens, prefixes), default=0)


async def by_experiment() -> None:
    """Print the share of input that repeats a prefix, for a run of each experiment."""
    print(f"{'experiment':<74} {'calls':>5} {'tokens in':>9} {'own':>6} {'any':>6} {'shared':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, given in PLAYED:
            CALLS.clear()
            model = watch(SPEAK.get(kind, "diligent"))
            more = {"entrants": [model, model]} if kind == "dilemma" else {"model": model}
            await arun(Kind(kind), store=f"sqlite:///{folder}/runs.db", **given, **more)
            own, anybody = (repeated(CALLS, same_agent=same) for same in (True, False))
            name, tokens = f"{kind} {' '.join(f'{k}={v}' for k, v in given.items())}", sum(c.tokens for c in CALLS)
            print(f"{name:<74} {len(CALLS):>5} {tokens:>9,} {own:>6.1%} {anybody:>6.1%} {shared(CALLS):>6,}")


if __name__ == "__main__":
    asyncio.run(by_experiment())
