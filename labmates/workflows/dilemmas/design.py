"""The design of cross-plays for contrasts: mechanisms, wordings and models, given game, models and seating."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Final

from labmates.stats.contrasts import Design, Observed, Run
from labmates.stats.domains import ANY, CORRELATION
from labmates.stats.validity import invalid
from labmates.util.display_names import settings_apart
from labmates.util.grouping import grouped
from labmates.workflows.dilemmas.records import CrossPlay, cross_plays, mechanism_labels
from labmates.workflows.protocol.analysis import Runs

_OUTCOMES: Final = {"cooperation": CORRELATION, "payoff": ANY}
_REMARK: Final = (
    "Cooperation: probability of the cooperative action. Payoff: expected; 0 at full defection, 1 at full cooperation."
)
_NO_FACTOR: Final = frozenset({"game", "mechanism", "terms", "entrants", "prices", "seating"})


def design(runs: Runs) -> Design:
    """The design of the completed cross-plays among runs, without models with too many failed decisions."""
    plays = cross_plays(runs)
    conditions = [run.condition for run in runs.completed("dilemma")]
    mechanisms = mechanism_labels(
        [{name: each.get(name) for name in ("mechanism", "terms") if name in each} for each in conditions]
    )
    others = [{name: value for name, value in each.items() if name not in _NO_FACTOR} for each in conditions]
    factors = settings_apart(others)
    out = {play.models: set[str]() for play in plays}
    for play in plays:
        out[play.models].update(invalid(play.failures))
    compared = [
        Run(
            (play.game, play.models, condition["seating"]),
            {"mechanism": mechanism, **{name: str(other.get(name)) for name in factors}},
            tuple(_observed(play.without(out[play.models]))),
            {"game": play.game},
        )
        for condition, play, mechanism, other in zip(conditions, plays, mechanisms, others, strict=True)
    ]
    return Design(compared, _OUTCOMES, _REMARK)


def _observed(play: CrossPlay) -> Iterator[Observed]:
    scale = play.scale
    cooperation = _cooperation(play)
    seats = {
        (each.match, agent): (seat, each.entrants) for each in play.rounds for seat, agent in enumerate(each.agents)
    }
    for agent, (entrant, payoff) in play.totals("expected").items():
        values: dict[str, float] = {}
        if agent in cooperation:
            values["cooperation"] = fmean(cooperation[agent])
        if scale is not None:
            values["payoff"] = (payoff - scale.defect) / (scale.cooperate - scale.defect)
        seat, entrants = seats[agent]
        others = (*entrants[:seat], *entrants[seat + 1 :]) if play.has_metagame else ()
        yield Observed(play.models[entrant], (seat, others), values)


def _cooperation(play: CrossPlay) -> dict[tuple[str, int], list[float]]:
    """The probabilities of the cooperative action of each agent of each match, without failed decisions."""
    return grouped(
        ((round_.match, round_.agents[seat]), likely)
        for round_ in play.rounds
        for seat, likely in enumerate(play.cooperation(round_))
        if not round_.failed[seat]
    )
