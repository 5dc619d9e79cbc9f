"""What players, seats, steps and rounds share stands first in every prompt, so that servers reuse it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import combinations
from os.path import commonprefix
from typing import Any, cast

import pytest

from labmates.api import arun
from labmates.budgets.tokens import text_of
from labmates.condition_types import Kind
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.records.store import Store
from tests.support.puppet import puppet

LEAST_CHARS = 60
"""Shorter paragraphs, such as headings, may come again."""
LEAST_PROMPTS = 4
RECORD = re.compile(r"## |# This match")
"""The beginning of a record of play, which may be like another one by chance."""


async def heard_in(store: Store, kind: str, baseline: str, **condition: Any) -> list[Heard]:
    """Return what the model heard in each call of a run; what it writes in plain text differs from call to call."""
    model, calls = cast(type[ScriptedModel], BASELINES.get(baseline))(), list[Heard]()

    def reply(heard: Heard) -> Draft:
        calls.append(heard)
        draft = model.compose(heard)
        return draft if draft.calls or "{" in str(draft.content) else Draft(f"{draft.content} {len(calls)}")

    with puppet(reply) as name:
        played = {"entrants": [name, name]} if kind == "dilemma" else {"model": name}
        settings = {"sandbox": "unsafe-local"} if kind == "science" else {}
        [run] = await arun(Kind(kind), store=store.url, settings=settings, **played, **condition)
    assert run.error is None
    return calls


def late(one: str, other: str) -> list[str]:
    """Return paragraphs of both prompts that are not in their common beginning; the last one is what is asked now."""
    begins = commonprefix([one, other])  # noqa: RUF071
    both = set(one.split("\n\n")[:-1]) & set(other.split("\n\n")[:-1])
    return [part for part in both if part not in begins and len(part) >= LEAST_CHARS]


GAMES: list[tuple[str, str, dict[str, Any]]] = [
    ("game", "conditional", {"game": "common-pool", "group_size": 3, "rounds": 3}),
    ("game", "conditional", {"game": "collective-risk", "group_size": 3, "rounds": 2, "wording": "paper"}),
    ("game", "random", {"game": "common-pool-sanctions", "group_size": 3, "rounds": 2, "deliberation": True}),
    ("game", "random", {"game": "public-goods", "framing": "alternate", "reasoning": "tom", "rounds": 2}),
    ("dilemma", "tit-for-tat", {"game": "prisoners", "mechanism": "repetition(rounds=3)"}),
    ("dilemma", "equilibrium", {"game": "trust", "mechanism": "contract", "wording": "paper"}),
    ("dilemma", "random", {"game": "public-goods", "mechanism": "reputation(rounds=3)"}),
    ("dilemma", "random", {"game": "travellers", "mechanism": "mediation", "wording": "paper"}),
    ("tournament", "alternator", {"structure": "ri", "rounds": 3, "team_size": "2", "plan_every": 2}),
    ("tournament", "random", {"structure": "sa", "rounds": 2, "team_size": "2", "messages": "each-match"}),
    ("tournament", "random", {"structure": "gc", "rounds": 2, "team_size": "2", "wording": "paper"}),
    ("tournament", "random", {"structure": "sa", "rounds": 2, "team_size": "2", "team_choice": "wished"}),
    ("strategies", "author", {"game": "public-goods", "attitude": "collective", "number": 3}),
]


@pytest.mark.parametrize(("kind", "baseline", "condition"), GAMES)
async def test_what_two_prompts_of_a_step_share_stands_first(
    store: Store, kind: str, baseline: str, condition: dict[str, Any]
) -> None:
    steps: dict[Any, list[str]] = defaultdict(list)
    systems = set[str]()
    for heard in await heard_in(store, kind, baseline, **condition):
        *before, order = heard.messages[: 1 if kind == "strategies" else 2]
        systems.update(text_of(message.content) for message in before)
        step = heard.facts.get("stage", heard.facts.get("step", "name" in heard.facts))
        # A game has the requests of all its steps in the system message.
        text = "\n\n".join(text_of(message.content) for message in (*before, order))
        steps["" if kind == "game" else step].append(text)
    assert len(systems) == (kind != "strategies"), "all players read the same rules"
    assert sum(map(len, steps.values())) >= LEAST_PROMPTS
    for prompts in steps.values():
        for one, other in combinations(dict.fromkeys(prompts), 2):
            assert [part for part in late(one, other) if not RECORD.match(part)] == []


@pytest.mark.parametrize(
    ("organisation", "more"),
    [
        ("solo", {}),
        ("independent", {"team_size": 2}),
        ("centralised", {"team_size": 4, "evidence": "split:0.5"}),
        ("decentralised", {"team_size": 2}),
        ("hybrid", {"team_size": 3}),
        ("blackboard", {"team_size": 2}),
        ("pipeline", {"team_size": 2}),
    ],
)
async def test_a_seat_reads_the_same_system_text_and_tools_in_all_steps(
    store: Store, organisation: str, more: dict[str, Any]
) -> None:
    systems: dict[str, set[str]] = defaultdict(set)
    tools, steps = set[str](), defaultdict[str, set[str]](set)
    for heard in await heard_in(
        store, "science", "hasty", task="anomaly", difficulty="easy", organisation=organisation, **more
    ):
        agent = heard.facts["agent"]
        systems[agent].add(text_of(heard.messages[0].content))
        steps[agent].add(heard.facts["step"])
        tools.add(json.dumps(heard.tools))
    assert len(tools) == 1
    assert max(map(len, steps.values())) > 1
    assert {len(texts) for texts in systems.values()} == {1}
    if "evidence" not in more:
        for [one], [other] in combinations(systems.values(), 2):
            assert late(one, other) == []
