"""The social dilemma as an experiment. This module imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labmates.registry import lazy
from labmates.stats.domains import SHARE
from labmates.workflows.dilemmas.condition import DilemmaCondition, Entrant
from labmates.workflows.protocol.experiment import Estimate, Experiment, Metric

_PAYOFF = lazy("labmates.workflows.dilemmas.records:payoffs_in")
_NORMALISED = lazy("labmates.workflows.dilemmas.records:normalised_in")
METRICS = (
    Metric(
        "normalised",
        "expected payoff: 0 if all defect, 1 if all cooperate",
        _NORMALISED,
        better="higher",
        headline=True,
        words="normalised payoff",
    ),
    Metric(
        "normalised_sampled",
        "the same of sampled actions",
        _NORMALISED,
        better="higher",
        words="normalised payoff of sampled actions",
    ),
    Metric("payoff", "expected payoff of a player", _PAYOFF, better="higher", headline=True, same_as="normalised"),
    Metric("payoff_sampled", "payoff of sampled actions", _PAYOFF, better="higher"),
    Metric(
        "fitness", "payoff under replicator dynamics, averaged over time", _NORMALISED, better="higher", headline=True
    ),
    Metric(
        "cooperation_rate",
        "probability of the cooperative action, weighted as payoffs are",
        SHARE,
        "higher",
        headline=True,
    ),
    Metric("failed_decision_rate", "share of decisions without a usable reply", SHARE, "lower", headline=True),
    Metric("delegation_rate", "probability of delegating to the mediator", SHARE),
    Metric("signature_rate", "share of contracts signed", SHARE),
    Metric("adoption_rate", "share of contracts signed by all", SHARE),
    Metric("tie_rate", "share of votes that end in a tie", SHARE),
    Metric("approval_rate", "share of proposals that a voter approves", SHARE),
    Metric("stable_proposal_rate", "share of proposals under which cooperation is an equilibrium", SHARE, "higher"),
    Metric("dominant_proposal_rate", "share of proposals under which cooperation is dominant", SHARE, "higher"),
)
"""Payoffs of all models, shares of decisions, and metrics of mediation and contracts alone."""


def estimate(condition: DilemmaCondition) -> Estimate:
    """The expected usage of a run; the number of calls is exact without repair turns.

    With ``ties: all``, one winner is assumed, since the number of tied winners is unknown in advance.
    """
    from labmates.mechanisms.play import calls_of

    game, mechanisms = condition.make_game(), condition.mechanisms()
    each = calls_of(mechanisms, game)
    entrants = len(condition.entrants)
    matches = entrants if mechanisms[0].seats_itself else len(condition.seatings())
    calls = matches * each.per_match + entrants * game.players * each.shared
    prompt = _INPUT + _INPUT_PER_PROFILE * game.payoffs[..., 0].size
    output = _OUTPUT if condition.reasoning == "none" else _REASONED
    rounds = each.per_match / game.players
    return Estimate(calls, calls * prompt, calls * output, _SECONDS * rounds, exact=True)


_INPUT, _INPUT_PER_PROFILE, _OUTPUT, _REASONED, _SECONDS = 450, 20, 20, 400, 8


def described(condition: Mapping[str, Any]) -> dict[str, Any]:
    """A condition whose entrants are written as on the command line."""
    return {**condition, "entrants": ",".join(Entrant.model_construct(**each).shown for each in condition["entrants"])}


DILEMMA = Experiment(
    "dilemma",
    DilemmaCondition,
    lazy("labmates.workflows.dilemmas.graph:graph"),
    lazy("labmates.workflows.dilemmas.outcome:outcome"),
    METRICS,
    start=lazy("labmates.workflows.dilemmas.graph:first_state"),
    context=lazy("labmates.workflows.dilemmas.context:DilemmaContext"),
    example="labmates run dilemma --game prisoners --mechanism contract --models scripted:equilibrium,scripted:defect",
    estimate=estimate,
    page=lazy("labmates.workflows.dilemmas.page:sections"),
    players=lazy("labmates.workflows.dilemmas.seats:players"),
    described=described,
)
