"""Social dilemmas as a kind of experiment. This module is light: what executes a run is imported when one starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.analysis.intervals import SHARE
from labmates.workflows.dilemma.condition import DilemmaCondition
from labmates.workflows.kinds import Estimate, Kind, Outcome

if TYPE_CHECKING:
    from labmates.workflows.services import Services

METRICS = (
    "normalised",
    "normalised_sampled",
    "payoff",
    "payoff_sampled",
    "fitness",
    "cooperation_rate",
    "failed_decision_rate",
    "delegation_rate",
    "signature_rate",
    "adoption_rate",
    "tie_rate",
    "approval_rate",
    "stable_proposal_rate",
    "dominant_proposal_rate",
)
"""Payoffs, expected and sampled, of all models; normalised ones are 0 if all defect and 1 if all cooperate. Then shares
of decisions, and what only mediation and contracts have."""

HEADLINE = ("normalised", "payoff", "fitness", "cooperation_rate", "failed_decision_rate")


async def execute(condition: DilemmaCondition, services: Services) -> Outcome:
    """Let all models play each other; see `labmates.workflows.dilemma.run.execute`."""
    from labmates.workflows.dilemma import run

    return await run.execute(condition, services)


def estimate(condition: DilemmaCondition) -> Estimate:
    """Return what a run is expected to take: exactly its calls if no reply has to be asked for again.

    Where all tied winners of a vote are played (``ties: all``), one winner is reckoned with: how many tie is not known
    before. Tokens are what our prompts take, and a reply with its reasons.
    """
    from labmates.mechanisms.play import calls_of

    game, mechanisms = condition.make_game(), condition.mechanisms()
    each = calls_of(mechanisms, game)
    entrants = len(condition.entrants)
    matches = entrants if mechanisms[0].seats_itself else len(condition.seatings())
    calls = matches * each.per_match + entrants * game.players * each.shared
    told = _INPUT + _INPUT_PER_PROFILE * game.payoffs[..., 0].size
    output = _OUTPUT if condition.reasoning == "none" else _REASONED
    rounds = each.per_match / game.players
    return Estimate(calls, calls * told, calls * output, _SECONDS * rounds)


_INPUT, _INPUT_PER_PROFILE, _OUTPUT, _REASONED, _SECONDS = 450, 20, 20, 400, 8

DOMAINS = {name: SHARE for name in METRICS if name.endswith("_rate")}

DILEMMA = Kind(
    "dilemma",
    DilemmaCondition,
    execute,
    METRICS,
    headline=HEADLINE,
    estimate=estimate,
    exact_calls=True,
    domains=lambda _condition: DOMAINS,
)
