"""Scripted players of groups with chat models and strategies."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from labmates.agents.players.base import Family, Strategy
from labmates.models.scripted.base import Heard

Facts = Mapping[str, Any]


def read(heard: Heard) -> Facts:
    """The facts of the request."""
    return heard.facts


def _by(cooperates: Callable[[Facts, random.Random], bool]) -> Strategy:
    return lambda facts, rng: json.dumps({"action": "C" if cooperates(facts, rng) else "D"})


def _with_most(facts: Facts, _rng: random.Random) -> bool:
    rounds = facts["rounds"]
    return not rounds or 2 * rounds[-1]["others"] >= facts["players"] - 1


def _without_defection(facts: Facts, _rng: random.Random) -> bool:
    return all(each["others"] == facts["players"] - 1 for each in facts["rounds"])


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "cooperate": _by(lambda _facts, _rng: True),
    "defect": _by(lambda _facts, _rng: False),
    "random": _by(lambda _facts, rng: rng.random() < 0.5),
    "conditional": _by(_with_most),
    "grim": _by(_without_defection),
}

FAMILY = Family(read, STRATEGIES)
