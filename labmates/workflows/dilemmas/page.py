"""The page of a cross-play: payoffs, earnings of models against each other, evolution, and every match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from labmates.errors import LabmatesError
from labmates.pages.links import Links
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.pages.svg import stacked_plot, thinned
from labmates.records.reading import RunReader
from labmates.stats.ratings import Cell, Rated
from labmates.stats.replicator import replicator_dynamics
from labmates.stats.validity import MOST_FAILED, invalid
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.dilemmas.ratings import rate_play
from labmates.workflows.dilemmas.records import Agreement, CrossPlay, Round, read_cross_play
from labmates.workflows.protocol.experiment import condition_of

render = templates_of(__package__)


_MOST_MATCHES: Final = 120
_MOST_RATED: Final = 12
"""Maximum number of models with ratings on a page, since ratings of many models take long."""
_HEATS: Final = 7
_STILL: Final = 0.005
_LEAST_STEPS: Final = 10


@dataclass
class Match:
    """A match: its models by seat, agreements, and rounds."""

    name: str
    seats: tuple[str, ...]
    agreements: list[Agreement] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)


def sections(reader: RunReader, _links: Links) -> Iterator[Section]:
    """The sections of a cross-play."""
    play = _play(reader)
    yield Section("game", "The game", _game(play))
    if play.rounds:
        yield from _earned(play)
        matches = _matches(play)
        body = render("matches.html", matches=matches[:_MOST_MATCHES])
        left = len(matches) - _MOST_MATCHES
        yield Section("matches", "Matches", body, f"{left} more in the story" if left > 0 else "")


def _play(reader: RunReader) -> CrossPlay:
    names = cast(DilemmaCondition, condition_of(reader.run)).names()
    events = reader.all("decision", "payoff")
    return read_cross_play(reader.run.id, reader.run.condition, names, events)


def _game(play: CrossPlay) -> Markup:
    """The payoffs of the game: a table for two players, a list for more."""
    form = play.table.game()
    payoffs = {
        tuple(labels[action] for labels, action in zip(form.labels, profile, strict=True)): tuple(
            map(float, form.table[profile])
        )
        for profile in form.profiles()
    }
    meanings = [
        list(zip(labels, names, strict=True)) for labels, names in zip(form.labels, play.table.actions, strict=True)
    ]
    return render("game.html", table=play.table, labels=form.labels, payoffs=payoffs, meanings=meanings)


def _earned(play: CrossPlay) -> Iterator[Section]:
    try:
        rated = rate_play(play) if len(play.models) <= _MOST_RATED else None
        cell = rated.cell if rated else play.without(invalid(play.failures)).cell()
    except LabmatesError:  # not every seating was played
        return
    if not np.isfinite(cell.payoffs).all():
        return
    yield Section("earned", "What models earned", _payoffs(cell, rated))
    if cell.payoffs.ndim < 2 or len(cell.models) < 2:
        return
    path = replicator_dynamics(cell.payoffs).path
    steps = len(path) - 1
    plotted = thinned(list(range(_eventful(path))))
    shares = {model: [float(path[step, at]) for step in plotted] for at, model in enumerate(cell.models)}
    title = f"Shares of models over {steps} steps of replicator dynamics"
    drawn = stacked_plot(shares, plotted, title, x_label="step")
    body = render("plot.html", drawing=drawn, names=list(shares))
    note = f"The first {plotted[-1]} of {steps} steps; no changes afterwards" if plotted[-1] < steps else ""
    yield Section("population", "Who takes over", body, note)


def _eventful(path: NDArray[np.float64]) -> int:
    """Number of points of a path worth drawing: until the shares are constant, plus a fifth."""
    moving = np.flatnonzero(np.abs(path - path[-1]).max(axis=1) > _STILL)
    return min(len(path), max(_LEAST_STEPS, int(1.2 * (moving[-1] + 1 if len(moving) else 0))) + 1)


def _payoffs(cell: Cell, rated: Rated | None) -> Markup:
    """Each model's payoffs against each other model, and its ratings."""
    matrix = cell.payoffs
    while matrix.ndim > 2:  # with more players: the mean over all but the first co-player
        matrix = matrix.mean(axis=-1)
    if cell.scale:
        low, high = cell.scale.defect, cell.scale.cooperate
    else:
        low, high = (float(matrix.min()), float(matrix.max())) if matrix.size else (0.0, 0.0)
    rows: Sequence[Sequence[tuple[float, int]]] = []
    if matrix.ndim == 2:
        rows = [[(float(value), _heat(float(value), float(low), float(high))) for value in row] for row in matrix]
    return render(
        "payoffs.html", cell=cell, rows=rows, rated=rated, players=cell.payoffs.ndim, most=f"{MOST_FAILED:.0%}"
    )


def _heat(value: float, low: float, high: float) -> int:
    share = (value - low) / (high - low) if high > low else 0.5
    return max(0, min(_HEATS - 1, int(share * _HEATS)))


def _matches(play: CrossPlay) -> list[Match]:
    agreements: defaultdict[str, list[Agreement]] = defaultdict(list)
    for agreement in play.agreements:
        agreements[agreement.match].append(agreement)
    matches: dict[str, Match] = {}
    for round_ in play.rounds:
        match = matches.setdefault(round_.match, Match(round_.match, round_.models, agreements[round_.match]))
        match.rounds.append(round_)
    return sorted(matches.values(), key=lambda match: [int(p) if p.isdecimal() else 0 for p in match.name.split("-")])
