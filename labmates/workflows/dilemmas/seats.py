"""What models did and got in cross-plays, for comparisons of models in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from labmates.stats.validity import invalid
from labmates.util.grouping import grouped
from labmates.workflows.dilemmas.records import CrossPlay, cross_plays
from labmates.workflows.protocol.analysis import Runs
from labmates.workflows.protocol.experiment import Player


def players(runs: Runs) -> Iterator[Player]:
    """The agents of the completed cross-plays among runs, without models with too many failed decisions."""
    plays = cross_plays(runs)
    out = {play.models: set[str]() for play in plays}
    for play in plays:
        out[play.models].update(invalid(play.failures))
    for run, play in zip(runs.completed("dilemma"), plays, strict=True):
        yield from _players(run.id, play.without(out[play.models]))


def _players(run: str, play: CrossPlay) -> Iterator[Player]:
    scale = play.scale
    cooperation = _cooperation(play)
    seats = {(each.match, agent): (seat, each.models) for each in play.rounds for seat, agent in enumerate(each.agents)}
    for agent, (model, payoff) in play.totals("expected").items():
        values: dict[str, float] = {}
        if agent in cooperation:
            values["cooperation_rate"] = fmean(*zip(*cooperation[agent], strict=True))
        if scale is not None:
            values["normalised"] = (payoff - scale.defect) / (scale.cooperate - scale.defect)
        seat, models = seats[agent]
        others = (*models[:seat], *models[seat + 1 :]) if play.has_metagame else ()
        yield Player(run, model, (seat, others), values)


def _cooperation(play: CrossPlay) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """The probabilities, with weights, of the cooperative action of each agent of each match, if not failed."""
    return grouped(
        ((round_.match, round_.agents[seat]), (likely, round_.weight))
        for round_ in play.rounds
        for seat, likely in enumerate(play.cooperation(round_))
        if not round_.failed[seat]
    )
