"""What small models get wrong in the behavioural games, and what a repair turn mends: counts by game and kind of fault.

    python -m benchmarks.small_models games --model openai:qwen --base-url http://127.0.0.1:8080/v1 --store first.db
    python -m benchmarks.small_models counts --store sqlite:///build/results.db

``games`` plays the behavioural games and prints decisions, failed decisions, unusable replies by kind of fault, and how
many of them the next reply mended; ``counts`` prints the same of a store's games, by model. A model behind a server
needs its ``--base-url``; a ``gguf:`` file needs none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from labmates.api import arun
from labmates.games.registry import GAMES
from labmates.models.catalog import Catalog
from labmates.models.names import SCRIPTED
from labmates.models.objects import find_objects
from labmates.models.options import ModelOptions
from labmates.records.events import DecisionEvent, FailedReplyEvent, LLMCallEvent
from labmates.records.store import Store
from labmates.studies.result import Run

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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Faults of small models, and what repair turns mend.")
    parser.add_argument("what", choices=["games", "counts"])
    parser.add_argument("--model", help="The model, openai:NAME or gguf:PATH.")
    parser.add_argument("--base-url", default="", help="Address of the model's server, if it has one.")
    parser.add_argument("--store", default="sqlite:///small_models.db")
    parser.add_argument("--game", action="append", choices=GAMES.names(), help="Repeatable; by default all.")
    parser.add_argument("--reasoning", default="none", choices=["none", "cot", "tom"])
    parser.add_argument("--structured", action="store_true")
    asked = parser.parse_args()
    if asked.what == "counts":
        count(asked.store)
    else:
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
