"""What small models get wrong, and what a repair turn mends: counts by game and kind of fault, and first tool calls.

    python -m benchmarks.small_models games --model openai:qwen --base-url http://127.0.0.1:8080/v1 --store first.db
    python -m benchmarks.small_models counts --store sqlite:///build/results.db
    python -m benchmarks.small_models repairs --base-url http://127.0.0.1:8080/v1 --store first.db
    python -m benchmarks.small_models tools --model gguf:/models/qwen05.gguf

``games`` plays the behavioural games and prints decisions, failed decisions, unusable replies by kind of fault, and how
many of them the next reply mended; ``counts`` prints the same of a store's games, by model. ``repairs`` takes the first
unusable reply of each decision in that store and asks the same model again with the present repair text, so that two
texts are compared on the same contexts and seeds.
``tools`` asks for the first reply of the lab's work step, in contexts of the diligent baseline, and after a
reply without a tool call once more with the reminder. A model behind a server needs its ``--base-url``; a
``gguf:`` file needs none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from labmates.agents.transcript import message_from_data
from labmates.api import arun
from labmates.budgets.tokens import text_of
from labmates.games.registry import GAMES
from labmates.models.catalog import Catalog
from labmates.models.hub import ModelHub
from labmates.models.names import SCRIPTED
from labmates.models.objects import UnusableAnswerError, find_objects
from labmates.models.options import ModelOptions
from labmates.models.scripted import BASELINES
from labmates.records.events import DecisionEvent, FailedReplyEvent, LLMCallEvent
from labmates.records.store import Store
from labmates.studies.result import Run
from labmates.util.seeds import derive
from labmates.workflows.calls.call import recorded_reply
from labmates.workflows.calls.remarks import sent_back
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.games.graph import NO_TOKENS, decision_form, default_words, sanction_form
from labmates.workflows.play.playing import decision_of
from labmates.workflows.protocol.experiment import condition_of
from labmates.workflows.science.baselines.diligent import Diligent
from labmates.workflows.science.steps.member import reminder

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
    if (
        "the most is" in reason
        or "the least is" in reason
        or "at most" in reason
        or "at least" in reason
        or "less than" in reason
        or "greater than" in reason
    ):
        return "out of bounds"
    return "other keys"


def print_faults(game: str, runs: Iterable[Run]) -> Counter[str]:
    """Print the counts of runs of a game, and return them."""
    kinds, mended, counts = Counter[str](), Counter[str](), Counter[str]()
    for run in runs:
        calls = {event.step: event for event in run.events if isinstance(event, LLMCallEvent)}
        failed = {event.step: event.reason for event in run.events if isinstance(event, FailedReplyEvent)}
        decisions = [event for event in run.events if isinstance(event, DecisionEvent)]
        for step, reason in failed.items():
            kind = kind_of(str(run.bodies[calls[step].reply]["content"]), reason)
            kinds[kind] += 1
            conversation, _, number = step.rpartition("/")
            following = f"{conversation}/{int(number) + 1}"
            mended[kind] += following in calls and following not in failed
        lost = sum(event.failed for event in decisions)
        counts.update(decisions=len(decisions), lost=lost, calls=len(calls), unusable=len(failed))
    print(
        f"{game}: {counts['lost']} of {counts['decisions']} decisions failed; "
        f"{counts['unusable']} of {counts['calls']} replies unusable",
        *(f"    {kind}: {kinds[kind]}, mended by the next reply: {mended[kind]}" for kind in sorted(kinds)),
        sep="\n",
        flush=True,
    )
    return counts


def reaching(base_url: str) -> Catalog:
    """A catalog that reaches models at an address, or files."""
    address = {"base_url": base_url} if base_url else {}
    return Catalog(ModelOptions.model_validate({**address, "call_timeout": TIMEOUT, "max_concurrent_calls": 2}))


async def play(model: str, base_url: str, store: str, games: Iterable[str], condition: dict[str, Any]) -> None:
    """Play the games one after the other, and print what failed."""
    total: Counter[str] = Counter()
    settings = {"models": reaching(base_url).options()}
    for game in games:
        [run] = await arun("game", store=store, settings=settings, game=game, model=model, **condition)
        total += print_faults(game, [run])
    print(
        f"all: {total['lost']} of {total['decisions']} decisions failed; "
        f"{total['unusable']} of {total['calls']} replies unusable"
    )


def count(url: str) -> None:
    """Print the counts of a store's games by model, without baselines."""
    with Store(url, must_exist=True) as store:
        runs = [Run.of(record, store) for record in store.runs(kind="game")]
    cells = {(run.condition["model"], run.condition["game"]): 0 for run in runs}
    for model, game in sorted(cells):
        if not model.startswith(SCRIPTED):
            cell = [run for run in runs if (run.condition["model"], run.condition["game"]) == (model, game)]
            print_faults(f"{model} {game}", cell)


async def repair(url: str, base_url: str) -> None:
    """Print how many first unusable replies in a store are mended by one repair turn: as recorded, and now."""
    kinds, before, now = Counter[str](), Counter[str](), Counter[str]()
    with Store(url, must_exist=True) as store:
        runs = [Run.of(record, store) for record in store.runs(kind="game")]
    async with ModelHub(reaching(base_url).options()) as hub:
        for run in runs:
            calls = {event.step: event for event in run.events if isinstance(event, LLMCallEvent)}
            failed = {event.step: event.reason for event in run.events if isinstance(event, FailedReplyEvent)}
            for step in (step for step in failed if step.endswith("/0") and step in calls):
                again = step.removesuffix("0") + "1"
                kind = (
                    f"{run.condition['game']}: {kind_of(str(run.bodies[calls[step].reply]['content']), failed[step])}"
                )
                kinds[kind] += 1
                before[kind] += again in calls and again not in failed
                now[kind] += await is_mended(hub, run, calls[step], derive(run.seed, again))
    for kind in sorted(kinds):
        print(
            f"{kind}: {kinds[kind]}, mended by the recorded repair turn {before[kind]}, by the present one {now[kind]}"
        )


async def is_mended(hub: ModelHub, run: Run, call: LLMCallEvent, seed: int) -> bool:
    """Whether the model's next reply to an unusable one is a decision, with the present repair text."""
    condition = condition_of(run)
    assert isinstance(condition, GameCondition)
    game, reasoned = condition.make_game(), condition.reasoning != "none"
    group = [player for team, player in condition.seats() if team == call.team and player != call.agent]
    is_sanction = "/sanction/" in call.step
    form = sanction_form(game, call.agent, group) if is_sanction else decision_form(game)
    otherwise = NO_TOKENS if is_sanction else default_words(game)
    messages = [message_from_data(run.bodies[number]) for number in call.messages]
    reply = recorded_reply(call, run.bodies)
    try:
        decision_of(reply, form, otherwise=otherwise, reasoned=reasoned)
    except UnusableAnswerError as error:
        limit = call.output_limit or condition.max_output_tokens
        reply = await hub.call(call.model, sent_back(messages, reply, error), seed=seed, max_output_tokens=limit)
    try:
        decision_of(reply, form, otherwise=otherwise, reasoned=reasoned)
    except UnusableAnswerError:
        return False
    return True


class Watched(Diligent):
    """Diligent, whose calls of the work step are kept."""

    baseline: ClassVar[str] = "watched"
    calls: ClassVar[list[tuple[list[BaseMessage], list[dict[str, Any]]]]] = []

    async def ainvoke(self, input: Any, *arguments: Any, **kwargs: Any) -> AIMessage:
        """The reply; the direct way of a call without listeners."""
        if text_of(input[-1].content).startswith("# Step: work"):
            self.calls.append((list(input), list(kwargs.get("tools") or ())))
        return await super().ainvoke(input, *arguments, **kwargs)


async def first_calls(
    model: str, base_url: str, tasks: Sequence[str], organisations: Sequence[str], seeds: int
) -> None:
    """Print how many first replies of the work step call a tool, and how many second ones after the reminder."""
    BASELINES.register("watched", Watched)
    total, catalog = Counter[str](), reaching(base_url)
    name = catalog.name_of(model)
    async with ModelHub(catalog.options()) as hub:
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
                    )
                messages, tools = Watched.calls[0]
                names = [tool["function"]["name"] for tool in tools]
                for seed in range(seeds):
                    called, again, text = await first_call(hub, name, messages, tools, names, seed)
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
    if reply.tool_calls or {"bad_tool_call", "cut_tool_call"} & set(reply.faults):
        return True, False, ""
    again = [*messages, reply.message, HumanMessage(reminder(names))]
    second = await hub.call(model, again, tools=tools, seed=seed, max_output_tokens=400)
    return False, bool(second.tool_calls), f"{reply.text[:160]} … {second.text[:80]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Faults of small models, and what repair turns mend.")
    parser.add_argument("what", choices=["games", "counts", "repairs", "tools"])
    parser.add_argument("--model", help="The model, openai:NAME or gguf:PATH.")
    parser.add_argument("--base-url", default="", help="Address of the model's server, if it has one.")
    parser.add_argument("--store", default="sqlite:///small_models.db")
    parser.add_argument("--game", action="append", choices=GAMES.names(), help="Repeatable; by default all.")
    parser.add_argument("--reasoning", default="none", choices=["none", "cot", "tom"])
    parser.add_argument("--seeds", type=int, default=2, help="Seeds of each context of tools.")
    parser.add_argument("--structured", action="store_true")
    asked = parser.parse_args()
    if asked.what == "counts":
        count(asked.store)
    elif asked.what == "repairs":
        asyncio.run(repair(asked.store, asked.base_url))
    elif asked.what == "games":
        condition = {
            "groups": 2,
            "group_size": 2,
            "rounds": 2,
            "repair_turns": 3,
            "max_output_tokens": 128,
            "reasoning": asked.reasoning,
            "structured": asked.structured,
        }
        asyncio.run(play(asked.model, asked.base_url, asked.store, asked.game or GAMES.names(), condition))
    else:
        asyncio.run(first_calls(asked.model, asked.base_url, TASKS, ORGANISATIONS, asked.seeds))
