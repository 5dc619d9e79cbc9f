"""What small models get wrong, and what a repair turn mends: counts by game and kind of fault, and first tool calls.

    python -m benchmarks.small_models games --model 'openai:qwen?base_url=http://127.0.0.1:8080/v1' --store first.db
    python -m benchmarks.small_models repairs --store first.db
    python -m benchmarks.small_models tools --model 'openai:qwen?base_url=http://127.0.0.1:8080/v1'

``games`` plays the behavioural games and prints decisions, failed decisions, unusable replies by kind of fault, and how
many of them the next reply mended. ``repairs`` takes the first unusable reply of each decision in that store and asks
the same model again with the present repair text, so that two texts are compared on the same contexts and seeds.
``tools`` asks for the first reply of the lab's work step, in contexts of the diligent baseline, and after a
reply without a tool call once more with the reminder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult

from labmates.agents.prompts import render
from labmates.api import arun
from labmates.games.registry import GAMES
from labmates.models.hub import ModelHub
from labmates.models.objects import find_objects
from labmates.models.options import ModelOptions
from labmates.models.scripted import BASELINES
from labmates.records.events import DecisionEvent, FailedReplyEvent, LLMCallEvent
from labmates.studies.result import Run
from labmates.workflows.science.baselines.diligent import Diligent

TASKS = ("anomaly", "biomarker")
ORGANISATIONS = ("solo", "pipeline")
TIMEOUT = 600.0


def kind_of(text: str, reason: str) -> str:
    """The kind of fault of an unusable reply, by its text, so that it does not depend on the words of a reason."""
    if "cut" in reason.split(", ") or "cut off" in reason:
        return "cut"
    objects = [found.value for found in find_objects(text)]
    if not objects:
        return "no JSON object" if "{" not in text else "no whole JSON object"
    if len({json.dumps(value, sort_keys=True) for value in objects}) > 1:
        return "several objects"
    values = list(objects[0].values())
    if any(isinstance(value, str | float | bool) or value is None for value in values):
        return "no whole number"
    if "add up" in reason:
        return "sum"
    if "at most" in reason or "at least" in reason or "less than" in reason or "greater than" in reason:
        return "out of bounds"
    return "other keys"


def print_faults(game: str, run: Run) -> Counter[str]:
    """Print the counts of a run, and return them."""
    calls = {event.step: event for event in run.events if isinstance(event, LLMCallEvent)}
    failed = {event.step: event.reason for event in run.events if isinstance(event, FailedReplyEvent)}
    decisions = [event for event in run.events if isinstance(event, DecisionEvent)]
    kinds: Counter[str] = Counter()
    mended: Counter[str] = Counter()
    for step, reason in failed.items():
        kind = kind_of(str(run.bodies[calls[step].reply]["content"]), reason)
        kinds[kind] += 1
        conversation, _, number = step.rpartition("/")
        following = f"{conversation}/{int(number) + 1}"
        mended[kind] += following in calls and following not in failed
    counts = Counter(
        decisions=len(decisions), lost=sum(event.failed for event in decisions), calls=len(calls), unusable=len(failed)
    )
    print(
        f"{game}: {counts['lost']} of {counts['decisions']} decisions failed; "
        f"{counts['unusable']} of {counts['calls']} replies unusable",
        *(f"    {kind}: {kinds[kind]}, mended by the next reply: {mended[kind]}" for kind in sorted(kinds)),
        sep="\n",
        flush=True,
    )
    return counts


async def play(model: str, store: str, games: Iterable[str], condition: dict[str, Any]) -> None:
    """Play the games one after the other, and print what failed."""
    total: Counter[str] = Counter()
    settings = {"models": {"call_timeout": TIMEOUT, "max_concurrent_calls": 2}}
    for game in games:
        [run] = await arun("game", store=store, settings=settings, game=game, model=model, **condition)
        total += print_faults(game, run)
    print(
        f"all: {total['lost']} of {total['decisions']} decisions failed; "
        f"{total['unusable']} of {total['calls']} replies unusable"
    )


class Watched(Diligent):
    """Diligent, whose first calls of each work step are kept."""

    baseline: ClassVar[str] = "watched"
    calls: ClassVar[dict[str, tuple[list[BaseMessage], list[dict[str, Any]]]]] = {}

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        step = ((run_manager.metadata if run_manager else None) or {})["step"]
        if step.endswith("/work/0"):
            self.calls.setdefault(step, (messages, list(kwargs.get("tools") or ())))
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


async def first_calls(model: str, tasks: Sequence[str], organisations: Sequence[str], seeds: int) -> None:
    """Print how many first replies of the work step call a tool, and how many second ones after the reminder."""
    BASELINES.register("watched", Watched)
    total = Counter[str]()
    async with ModelHub(ModelOptions(call_timeout=TIMEOUT)) as hub:
        for task in tasks:
            for organisation in organisations:
                Watched.calls.clear()
                with tempfile.TemporaryDirectory() as folder:
                    await arun(
                        "science",
                        store=f"sqlite:///{folder}/runs.db",
                        task=task,
                        organisation=organisation,
                        model="scripted:watched",
                        max_turns=1,
                    )
                messages, tools = next(iter(Watched.calls.values()))
                names = [tool["function"]["name"] for tool in tools]
                for seed in range(seeds):
                    called, again, text = await first_call(hub, model, messages, tools, names, seed)
                    total.update(first=called, second=again, asked=1)
                    print(
                        f"{task}, {organisation}, seed {seed}: {'called' if called else text!r}; {again=}", flush=True
                    )
    print(
        f"{model}: {total['first']} of {total['asked']} first replies call a tool; "
        f"after the reminder {total['second']} of {total['asked'] - total['first']} more"
    )


async def first_call(
    hub: ModelHub, model: str, messages: list[BaseMessage], tools: list[dict[str, Any]], names: list[str], seed: int
) -> tuple[bool, bool, str]:
    """Whether the first reply calls a tool, whether the second does after the reminder, and the first one's text."""
    reply = await hub.call(model, messages, tools=tools, seed=seed, max_output_tokens=400)
    if reply.tool_calls or "bad_tool_call" in reply.faults:
        return True, False, ""
    reminder = HumanMessage(render("nudge_no_tool", tools=", ".join(names)))
    second = await hub.call(model, [*messages, reply.message, reminder], tools=tools, seed=seed, max_output_tokens=400)
    return False, bool(second.tool_calls), f"{reply.text[:160]} … {second.text[:80]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Faults of small models, and what repair turns mend.")
    parser.add_argument("what", choices=["games", "repairs", "tools"])
    parser.add_argument("--model", help="The model, provider:name?base_url=URL.")
    parser.add_argument("--store", default="sqlite:///small_models.db")
    parser.add_argument("--game", action="append", choices=GAMES.names(), help="Repeatable; by default all.")
    parser.add_argument("--reasoning", default="none", choices=["none", "cot", "tom"])
    parser.add_argument("--seeds", type=int, default=2, help="Seeds of each context of tools.")
    parser.add_argument("--structured", action="store_true")
    asked = parser.parse_args()
    if asked.what == "games":
        condition = {
            "groups": 2,
            "group_size": 2,
            "rounds": 2,
            "repair_turns": 3,
            "max_output_tokens": 128,
            "reasoning": asked.reasoning,
            "structured": asked.structured,
        }
        asyncio.run(play(asked.model, asked.store, asked.game or GAMES.names(), condition))
    elif asked.what == "tools":
        asyncio.run(first_calls(asked.model, TASKS, ORGANISATIONS, asked.seeds))
