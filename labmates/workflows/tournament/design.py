"""Tournaments as contrasts see them: structures, wordings, plans and models, over equal teams and rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from labmates.display_names import settings_apart
from labmates.stats.contrasts import Design, Observed, Run
from labmates.stats.domains import ANY, CORRELATION
from labmates.stats.validity import invalid
from labmates.workflows.analysis import Runs
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.results import Tournament, rate, standings, tournaments

_OUTCOMES: Final = {"cooperation": CORRELATION, "one-shot cooperation": CORRELATION, "points per round": ANY}
_REMARK: Final = "Cooperation: share of a player's moves that cooperate; one-shot: of its first ones. Means of players."
_SAME: Final = ("teams", "team_size", "temptation", "reward", "punishment", "sucker")
_NO_FACTOR: Final = frozenset({*_SAME, "prices"})


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
