"""Tournaments for comparisons and ratings: what players did, and models' payoffs against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from labmates.stats.domains import Domain
from labmates.stats.metagame import metagame
from labmates.stats.ratings import Cell, Scale
from labmates.stats.validity import invalid
from labmates.util.display_names import labels_apart
from labmates.workflows.protocol.analysis import Runs
from labmates.workflows.protocol.experiment import Player
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.results import Tournament, rate, standings, tournaments

_SHOWN: Final = frozenset({"structure", "model", "model_for", "prices"})


def players(runs: Runs) -> Iterator[Player]:
    """The players of the completed tournaments among runs, without those with too many failed decisions of a model."""
    for tournament in tournaments(runs.store, runs.completed("tournament")):
        for player in () if invalid(tournament.failures) else standings(tournament):
            rates = {
                "cooperation": player.cooperation,
                "one_shot_cooperation": rate(tournament.first_moves(player.player)),
                "points_per_round": player.points / player.rounds if player.rounds else None,
            }
            values = {name: value for name, value in rates.items() if value is not None}
            yield Player(tournament.run_id, player.model, (), values)


def _settings(condition: Mapping[str, Any]) -> dict[str, Any]:
    """All settings; rounds per player only if they differ from their default, which follows from other settings."""
    given = TournamentCondition.model_validate(condition)
    default = TournamentCondition.model_validate({**condition, "rounds_per_player": None})
    chosen = None if given.rounds_per_player == default.rounds_per_player else given.rounds_per_player
    settings = {name: getattr(given, name) for name in TournamentCondition.model_fields}
    return {**settings, "rounds_per_player": chosen}


def cells(runs: Runs, keep_failed: bool) -> list[Cell]:
    """Models' payoffs per round against each other, one cell per tournament.

    A metagame requires every model to meet every model, itself included; other tournaments have only means.
    Tournaments of a single model are left out.
    """
    played = tournaments(runs.store, runs.completed("tournament"))
    labels = labels_apart([_settings(tournament.condition) for tournament in played], _SHOWN)
    return [
        cell_of(tournament, ", ".join(filter(None, (tournament.structure.upper(), label))), keep_failed=keep_failed)
        for tournament, label in zip(played, labels, strict=True)
        if len(set(tournament.models.values())) > 1
    ]


def cell_of(tournament: Tournament, mechanism: str, *, keep_failed: bool = False) -> Cell:
    """The payoffs of a tournament's models, by default without those with too many failed decisions."""
    left_out = () if keep_failed else invalid(tournament.failures)
    models = [model for model in dict.fromkeys(tournament.models.values()) if model not in left_out]
    place = {player: models.index(model) for player, model in tournament.models.items() if model in models}
    payoffs = tournament.payoffs
    rounds = [
        ([place[player] for player in match.players], [payoffs.of(*moves), payoffs.of(*reversed(moves))])
        for match in tournament.played
        if place.keys() >= set(match.players)
        for moves in match.rounds
    ]
    if len({frozenset(seats) for seats, _ in rounds}) == len(models) * (len(models) + 1) // 2 > 0:
        values = metagame(len(models), rounds)
    else:
        points: list[list[float]] = [[] for _ in models]
        for seats, both in rounds:
            for seat, payoff in zip(seats, both, strict=True):
                points[seat].append(payoff)
        values = np.array([np.mean(each or [np.nan]) for each in points])
    return Cell(
        tournament.run_id,
        mechanism,
        "tournament",
        tuple(models),
        values,
        Scale(payoffs.punishment, payoffs.reward),
        tournament.failures,
        {model: tournament.failures[model] for model in left_out},
        Domain(*payoffs.range),
    )
