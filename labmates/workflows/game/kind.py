"""Behavioural games as a kind of experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from labmates.analysis.intervals import COUNT, SHARE, Domain
from labmates.workflows.game.condition import GameCondition
from labmates.workflows.kinds import Estimate, Kind, Outcome

if TYPE_CHECKING:
    from labmates.workflows.services import Services

METRICS = (
    "level",
    "cooperation",
    "efficiency",
    "action_gap",
    "welfare",
    "payoff",
    "failed_decision_rate",
    "sanctions",
    "least_effort",
    "overdrawn_rate",
    "target_reached",
    "success_rate",
    "kept_share",
    "global_share",
    "pareto_proximity",
)
"""The primary metric and what follows from it, then what only some games have; the paper's distance at the end."""

HEADLINE = ("level", "cooperation", "efficiency", "payoff", "failed_decision_rate")


async def execute(condition: GameCondition, services: Services) -> Outcome:
    """Play one game; see `labmates.workflows.game.run.execute`."""
    from labmates.workflows.game import run

    return await run.execute(condition, services)


def estimate(condition: GameCondition) -> Estimate:
    """Return what a run is expected to take: exactly its calls if no reply has to be asked for again.

    Tokens of a call are what our prompts take, and a reply of tens of tokens (section 4.3 of the paper), or hundreds
    where players reason first; the calls of one stage go out together.
    """
    game = condition.make_game()
    stages = 1 + (game.sanction_limit > 0)
    talks = condition.group_size if condition.deliberation else 0
    calls = game.players * game.rounds * (stages + condition.deliberation)
    output = _OUTPUT if condition.reasoning == "none" else _REASONED
    seen = _INPUT + _INPUT_PER_ROUND * condition.group_size * (game.rounds - 1) / 2
    return Estimate(calls, calls * seen, calls * output, _SECONDS * game.rounds * (stages + talks))


_INPUT, _INPUT_PER_ROUND, _OUTPUT, _REASONED, _SECONDS = 450, 12, 20, 400, 2

DOMAINS = {
    "sanctions": COUNT,
    "least_effort": COUNT,
    "target_reached": SHARE,
    "cooperation": SHARE,
    "efficiency": SHARE,
    **{name: SHARE for name in METRICS if name.endswith(("_rate", "_share", "_proximity"))},
}


def domains(condition: Mapping[str, Any]) -> Mapping[str, Domain]:
    """Return the values that metrics can take; those of the primary one follow from the game."""
    from labmates.analysis.profiles import level_domain

    return {**DOMAINS, "level": level_domain(condition)}


GAME = Kind(
    "game", GameCondition, execute, METRICS, headline=HEADLINE, estimate=estimate, exact_calls=True, domains=domains
)
