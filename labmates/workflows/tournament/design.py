"""Tournaments as contrasts and ratings see them: levels of factors, and what models got against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from labmates.display_names import labels_apart, settings_apart
from labmates.stats.contrasts import Design, Observed, Run
from labmates.stats.domains import ANY, CORRELATION, Domain
from labmates.stats.metagame import metagame
from labmates.stats.ratings import Cell, Scale
from labmates.stats.validity import invalid
from labmates.workflows.analysis import Runs
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.results import Tournament, rate, standings, tournaments

_OUTCOMES: Final = {"cooperation": CORRELATION, "one-shot cooperation": CORRELATION, "points per round": ANY}
_REMARK: Final = "Cooperation: share of a player's moves that cooperate; one-shot: of its first ones. Means of players."
_SAME: Final = ("teams", "team_size", "temptation", "reward", "punishment", "sucker")
_NO_FACTOR: Final = frozenset({*_SAME, "prices"})
_SHOWN: Final = frozenset({"structure", "model", "model_for", "prices"})


def design(runs: Runs) -> Design:
    """The completed tournaments among runs, without those of a model of which too many decisions failed."""
    played = tournaments(runs.store, runs.completed("tournament"))
    conditions = [_settings(one.condition) for one in played]
    factors = settings_apart(conditions, _NO_FACTOR)
    compared = [
        Run(
            tuple(condition[name] for name in _SAME),
            {name: str(condition[name]) for name in factors},
            tuple(_observed(one)),
        )
        for one, condition in zip(played, conditions, strict=True)
        if not invalid(one.failures)
    ]
    return Design(compared, _OUTCOMES, _REMARK, within_runs="model, in the same tournament")


def _settings(condition: Mapping[str, Any]) -> dict[str, Any]:
    """All settings; rounds per player, which follow from the others by default, only where they were chosen."""
    whole = TournamentCondition.model_validate(condition)
    usual = TournamentCondition.model_validate({**condition, "rounds_per_player": None})
    chosen = None if whole.rounds_per_player == usual.rounds_per_player else whole.rounds_per_player
    settings = {name: getattr(whole, name) for name in TournamentCondition.model_fields}
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
    """The payoffs of a round that each model got against each other one, tournament by tournament.

    A metagame needs every model to meet every model, itself included; other tournaments have means alone. Tournaments
    of a single model are left out.
    """
    played = tournaments(runs.store, runs.completed("tournament"))
    labels = labels_apart([_settings(one.condition) for one in played], _SHOWN)
    names = [", ".join(filter(None, (one.structure.upper(), label))) for one, label in zip(played, labels, strict=True)]
    return [
        cell_of(one, name, keep_failed=keep_failed)
        for one, name in zip(played, names, strict=True)
        if len(set(one.models.values())) > 1
    ]


def cell_of(tournament: Tournament, mechanism: str, *, keep_failed: bool = False) -> Cell:
    """The payoffs of a tournament's models; those of which too many decisions failed are left out by default."""
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
        got: list[list[float]] = [[] for _ in models]
        for seats, both in rounds:
            for seat, points in zip(seats, both, strict=True):
                got[seat].append(points)
        values = np.array([np.mean(points or [np.nan]) for points in got])
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
