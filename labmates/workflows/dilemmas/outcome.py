"""The outcome of a cross-play of a social dilemma: its metrics and validity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from statistics import fmean

import numpy as np

from labmates.mechanisms.mediation import DELEGATE
from labmates.stats.metagame import Array, mean_payoffs
from labmates.stats.replicator import replicator_dynamics
from labmates.stats.validity import invalid_play, total
from labmates.workflows.dilemmas.context import DilemmaContext
from labmates.workflows.dilemmas.graph import CrossPlay as CrossPlays
from labmates.workflows.dilemmas.records import CrossPlay, read_cross_play
from labmates.workflows.protocol.experiment import Outcome


def outcome(_state: CrossPlays, ctx: DilemmaContext) -> Outcome:
    """The outcome of an ended cross-play, from its record."""
    condition = ctx.condition
    play = read_cross_play(
        ctx.services.run_id, condition.model_dump(mode="json"), condition.names(), ctx.recorder.events
    )
    return Outcome("completed", _metrics(play), invalid_play(play.failures))


def _metrics(play: CrossPlay) -> Mapping[str, float]:
    expected, sampled = play.cell("expected"), play.cell("sampled")
    means = {"payoff": _mean(expected.payoffs), "payoff_sampled": _mean(sampled.payoffs)}
    metrics = {name: float(values.mean()) for name, values in means.items()}
    if (scale := play.scale) is not None:
        metrics["normalised"] = float(scale.normalise(means["payoff"]).mean())
        metrics["normalised_sampled"] = float(scale.normalise(means["payoff_sampled"]).mean())
    if play.has_metagame:
        average = replicator_dynamics(expected.payoffs).average
        metrics["fitness"] = average if scale is None else float(scale.normalise(np.array(average)))
    metrics["failed_decision_rate"] = total(play.failures.values()).rate
    return metrics | _of_choices(play) | _of_agreements(play)


def _mean(payoffs: Array) -> Array:
    return payoffs if payoffs.ndim == 1 else mean_payoffs(payoffs)


def _of_choices(play: CrossPlay) -> dict[str, float]:
    """The probabilities of the cooperative action, own or by a mediator, and of delegation, weighted as payoffs are.

    Failed choices are excluded; as are failed votes and signatures in `_of_agreements`.
    """
    cooperative: list[tuple[float, float]] = []
    delegated: list[tuple[float, float]] = []
    for round_ in play.rounds:
        made = [not failed for failed in round_.failed]
        cooperative += [(likely, round_.weight) for likely in compress(play.cooperation(round_), made)]
        for shares in compress(round_.shares, made):
            delegated += [(shares[DELEGATE], round_.weight)] if DELEGATE in shares else []
    values_of = {"cooperation_rate": cooperative, "delegation_rate": delegated}
    return {name: fmean(*zip(*values, strict=True)) for name, values in values_of.items() if values}


def _of_agreements(play: CrossPlay) -> dict[str, float]:
    """The metrics of proposals, for mechanisms with proposals."""
    signed = [
        signature
        for agreement in play.agreements
        for signatures in agreement.signed
        for seat, signature in enumerate(signatures)
        if seat not in play.failed_at(agreement.place, "sign")
    ]
    stable = [stability for agreement in play.agreements for stability in agreement.stable if stability is not None]
    approved = [
        len(vote) / offered
        for agreement in play.agreements
        if (offered := sum(design is not None for design in agreement.proposals))
        for seat, vote in enumerate(agreement.votes)
        if seat not in play.failed_at(agreement.place, "vote")
    ]
    values_of: dict[str, Sequence[float]] = {
        "approval_rate": approved,
        "tie_rate": [agreement.tied > 1 for agreement in play.agreements if any(agreement.proposals)],
        "signature_rate": signed,
        "adoption_rate": [all(signatures) for agreement in play.agreements for signatures in agreement.signed],
        "stable_proposal_rate": [nash for nash, _ in stable],
        "dominant_proposal_rate": [dominant for _, dominant in stable],
    }
    return {name: fmean(values) for name, values in values_of.items() if values}
