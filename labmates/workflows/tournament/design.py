"""Tournaments for contrasts and ratings: levels of factors, and models' payoffs against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from labmates.stats.contrasts import Design, Observed, Run
from labmates.stats.domains import ANY, CORRELATION, Domain
from labmates.stats.metagame import metagame
from labmates.stats.ratings import Cell, Scale
from labmates.stats.validity import invalid
from labmates.util.display_names import labels_apart, settings_apart
from labmates.workflows.protocol.analysis import Runs
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.results import Tournament, rate, standings, tournaments

_OUTCOMES: Final = {"cooperation": CORRELATION, "one-shot cooperation": CORRELATION, "points per round": ANY}
_REMARK: Final = "Cooperation: share of a player's moves that cooperate; one-shot: of its first ones. Means of players."
_SAME: Final = ("teams", "team_size", "temptation", "reward", "punishment", "sucker")
_NO_FACTOR: Final = frozenset({*_SAME, "prices"})
_SHOWN: Final = frozenset({"structure", "model", "model_for", "prices"})


def design(runs: Runs) -> Design:
    """The design of the completed tournaments among runs, without those with too many failed decisions of a model."""
    played = tournaments(runs.store, runs.completed("tournament"))
    conditions = [_settings(tournament.condition) for tournament in played]
    factors = settings_apart(conditions, _NO_FACTOR)
    compared = [
        Run(
            tuple(condition[name] for name in _SAME),
            {name: str(condition[name]) for name in factors},
            tuple(_observed(tournament)),
        )
        for tournament, condition in zip(played, conditions, strict=True)
        if not invalid(tournament.failures)
    ]
    return Design(compared, _OUTCOMES, _REMARK, within_runs="model, in the same tournament")


def _settings(condition: Mapping[str, Any]) -> dict[str, Any]:
    """All settings; rounds per player only if they differ from their default, which follows from other settings."""
    given = TournamentCondition.model_validate(condition)
    default = TournamentCondition.model_validate({**condition, "rounds_per_player": None})
    chosen = None if given.rounds_per_player == default.rounds_per_player else given.rounds_per_player
    settings = {name: getattr(given, name) for name in TournamentCondition.model_fields}
    return {**settings, "rounds_per_player": chosen}


def _observed(played: Tournament) -> Iterator[Observed]:
    for player in standings(played):
        rates = {
            "cooperation": player.cooperation,
            "one-shot cooperation": rate(played.first_moves(player.player)),
            "points per round": player.points / player.rounds if player.rounds else None,
        }
        values = {name: value for name, value in rates.items() if value is not None}
        yield Observed(player.model, (), values)


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
    models = sorted(set(tournament.models.values()).difference(left_out))
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
        Domain(payoffs.sucker, payoffs.temptation),
    )
