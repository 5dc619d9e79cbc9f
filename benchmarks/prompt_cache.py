"""How much of what models read repeats what they have read before, by experiment, and what a server makes of it.

    python -m benchmarks.prompt_cache
    python -m benchmarks.prompt_cache --task anomaly --task ecology --organisation pipeline --memory conversation
    python -m benchmarks.prompt_cache --server http://127.0.0.1:8080/v1 --model qwen [--name-first]

A provider's prompt cache serves the longest prefix, of tools and then messages, that it has seen before. The first form
plays a run of each experiment with scripted models and prints the share of input that repeats an earlier call of the
same agent, and of anybody, and the least prefix that two agents share. The second prints more on the lab, with the
diligent baseline: how many of the calls that continue a conversation repeat the whole call before; of what the input
consists, by step; and the scores, so that two versions of the prompts are compared at equal quality. Tokens are
estimates, as for all scripted models. The third plays one round of a game with ten players on a llama.cpp server, which
should be fresh, and prints the share of input from its cache and the time; `--name-first` puts each name in front.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
from bisect import bisect, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from os.path import commonprefix  # character by character, which is what is meant here
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from labmates.agents.organisation_files import find_organisation
from labmates.api import arun
from labmates.budgets.tokens import estimate_messages, estimate_tokens, text_of
from labmates.condition_types import Kind
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import ScriptedModel
from labmates.records.run import RunRecord
from labmates.workflows.games.briefs import Briefing

BUILT_IN = ("ecology", "anomaly", "biomarker", "geospatial")
SCORES = ("accuracy", "skill", "provenance", "completeness")
KINDS = {"system": "system", "human": "orders", "ai": "own replies", "tool": "tool results"}
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
    """One call: who made it in which conversation, its input in the order in which a cache compares it, its tokens."""

    agent: str
    conversation: str
    text: str
    tokens: int
    parts: Counter[str]

    @property
    def step(self) -> str:
        """What the agent does: plan, work, deliberation or write."""
        return self.conversation.rpartition("/")[2]


CALLS: list[Call] = []


def watch(baseline: str) -> str:
    """Return a model that plays as a baseline does, and whose calls are written down."""
    plain = cast(type[ScriptedModel], BASELINES.get(baseline))

    async def ainvoke(self: Any, input: Any, config: RunnableConfig | None = None, **more: Any) -> AIMessage:
        CALLS.append(read_call(input, more.get("tools") or (), (config or {}).get("metadata", {})))
        return await plain.ainvoke(self, input, config, **more)

    name = f"watched-{baseline}"
    if name not in BASELINES:
        BASELINES.register(name, type("Watched", (plain,), {"ainvoke": ainvoke}))
    return f"scripted:{name}"


def read_call(messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]], told: Mapping[str, Any]) -> Call:
    """Return a call as a provider reads it."""
    pieces = [("tools", json.dumps(tool, separators=(",", ":"))) for tool in tools]
    for message in messages:
        text = f"<{message.type}>{text_of(message.content)}"
        if isinstance(message, AIMessage) and message.tool_calls:
            text += json.dumps([{"name": one["name"], "args": one["args"]} for one in message.tool_calls])
        pieces.append((KINDS[message.type], text))
    parts: Counter[str] = Counter()
    for kind, text in pieces:
        parts[kind] += estimate_tokens(text)
    whole = "".join(text for _, text in pieces)
    conversation = "/".join(told["step"].split("/")[:4])
    return Call(told["agent"], conversation, whole, estimate_messages(messages, tools), parts)


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


def continued(calls: Sequence[Call]) -> tuple[int, int, float]:
    """Calls that continue a conversation, those of them that repeat the whole call before, and the share of input."""
    pairs = [
        (before, call)
        for conversation in dict.fromkeys(call.conversation for call in calls)
        for before, call in pairwise(call for call in calls if call.conversation == conversation)
    ]
    whole = [(before, call) for before, call in pairs if call.text.startswith(before.text)]
    served = sum(round(call.tokens * len(before.text) / len(call.text)) for before, call in whole)
    return len(pairs), len(whole), served / sum(call.tokens for _, call in pairs)


def shared(calls: Iterable[Call]) -> int:
    """Return the tokens of the least prefix that two agents' first calls share."""
    first = {call.agent: call.text for call in reversed(list(calls))}
    prefixes = (commonprefix([one, other]) for one, other in combinations(first.values(), 2))  # noqa: RUF071
    return min(map(estimate_tokens, prefixes), default=0)


def show(run: RunRecord, calls: Sequence[Call]) -> None:
    """Print what a run of the lab took."""
    usage = run.usage
    scores = ", ".join(f"{name} {run.metrics[name]:.3f}" for name in SCORES if name in run.metrics)
    whole = usage.input_tokens + usage.output_tokens
    print(f"{run.condition['task']}, seed {run.seed}: {whole:,} tokens ({usage.input_tokens:,} in), {len(calls)} calls")
    print(f"  {run.status}; {scores}")
    own, anybody = (repeated(calls, same_agent=same) for same in (True, False))
    print(
        f"  prefix repeated: {own:.1%} of the agent's own earlier calls, {anybody:.1%} of anybody's; shared by all "
        f"agents: {shared(calls):,} tokens; cached reads at 0.1: as {usage.input_tokens * (1 - 0.9 * anybody):,.0f} in"
    )
    later, appended, share = continued(calls)
    print(f"  {appended} of {later} calls that continue a conversation repeat the call before: {share:.1%} of input")
    for step in ("plan", "work", "deliberation", "write"):
        mine = [call for call in calls if call.step == step]
        parts = sum((call.parts for call in mine), Counter())
        listed = ", ".join(f"{kind} {parts[kind]:,}" for kind in ("tools", *KINDS.values()) if parts[kind])
        print(f"  {step}: {len(mine)} calls, {sum(call.tokens for call in mine):,} in: {listed}")


async def lab(tasks: Sequence[str], seeds: int, options: dict[str, Any]) -> None:
    """Run the lab and print what each run took."""
    model = watch("diligent")
    with tempfile.TemporaryDirectory() as folder:
        total = 0
        for task in tasks:
            for seed in range(seeds):
                CALLS.clear()
                store = f"sqlite:///{folder}/runs.db"
                [run] = await arun("science", store=store, seed=seed, task=task, model=model, **options)
                show(run, CALLS)
                total += run.usage.input_tokens + run.usage.output_tokens
        print(f"all: {total / (len(tasks) * seeds):,.0f} tokens a run")


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


def put_name_first() -> None:
    """Let games name the player at the beginning of its prompt."""
    order = Briefing._order

    def name_first(self: Briefing, *parts: Any, **more: Any) -> list[BaseMessage]:
        rules, asked = order(self, *parts, **more)
        [name] = re.findall(r"^You are player .*$", str(asked.content), re.MULTILINE)
        return [SystemMessage(f"{name}\n\n{rules.content}"), asked]

    Briefing._order = name_first  # type: ignore[method-assign]


async def on_server(server: str, model: str, game: str) -> None:
    """Print the share of input from the cache, and the time, of a round of ten players on a server."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with tempfile.TemporaryDirectory() as folder:
        store, settings = f"sqlite:///{folder}/runs.db", {"models": {"base_url": server}}
        begun = time.perf_counter()
        [run] = await arun(
            "game",
            store=store,
            settings=settings,
            game=game,
            rounds=1,
            reasoning="none",
            model=f"openai:{model}",
            repair_turns=0,
        )
        seconds, usage = time.perf_counter() - begun, run.usage
    print(
        f"{usage.llm_calls} calls, {usage.input_tokens:,} tokens in, {usage.cached_tokens / usage.input_tokens:.1%} "
        f"from the cache, {usage.output_tokens:,} out, {seconds:.1f} s, "
        f"{run.metrics['failed_decision_rate']:.0%} of decisions failed"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Tokens and repeated prefixes of prompts.")
    parser.add_argument("--task", action="append", choices=BUILT_IN, help="The lab in detail. Repeatable.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--difficulty", default="medium")
    parser.add_argument("--team-size", type=int, default=None)
    parser.add_argument("--organisation", default="pipeline")
    parser.add_argument("--memory", choices=["step", "conversation"], help="By default the organisation's.")
    parser.add_argument("--server", help="Address of a llama.cpp server, with /v1.")
    parser.add_argument("--model", default="model", help="The server's name of its model.")
    parser.add_argument("--game", default="common-pool", help="The game on the server.")
    parser.add_argument("--name-first", action="store_true", help="Begin each prompt with the player's name.")
    asked = parser.parse_args()
    if asked.server:
        if asked.name_first:
            put_name_first()
        asyncio.run(on_server(asked.server, asked.model, asked.game))
    elif not asked.task:
        asyncio.run(by_experiment())
    else:
        crew = find_organisation(asked.organisation)
        if asked.memory:
            teams = {name: team.model_copy(update={"memory": asked.memory}) for name, team in crew.teams.items()}
            crew = crew.model_copy(update={"teams": teams})
        options: dict[str, Any] = {"difficulty": asked.difficulty, "organisation": crew}
        if asked.team_size:
            options["team_size"] = asked.team_size
        asyncio.run(lab(asked.task, asked.seeds, options))
