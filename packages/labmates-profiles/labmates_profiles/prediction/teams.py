"""Teams of several models: whose disposition counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.prediction import Rule
from labmates_profiles.prediction.sources import Level

Seats = tuple[str, ...]
"""The model of each seat of a team, the lead's first."""
LEAD, OTHERS = "lead", "others"


def columns_of(rule: Rule, games: Sequence[str]) -> list[str]:
    """The predictors that games become."""
    return [f"{game}: {who}" for game in games for who in (LEAD, OTHERS)] if rule == "each" else list(games)


def levels_of_teams(
    rule: Rule, teams: Mapping[str, Seats], by_model: Mapping[str, Mapping[str, Level]]
) -> dict[str, dict[str, Level]]:
    """The play of each team by predictor; games that a member has not played are missing."""
    found: dict[str, dict[str, Level]] = {}
    for team, seats in teams.items():
        members = [by_model.get(model, {}) for model in seats]
        found[team] = {}
        for game in (game for game in members[0] if all(game in member for member in members)):
            levels = [member[game] for member in members]
            counted = {LEAD: levels[:1], OTHERS: levels[1:] or levels}
            if rule != "each":
                least = min(levels, key=lambda level: level.value)
                counted = {"": {"lead": levels[:1], "minimum": [least], "mean": levels}[rule]}
            for name, some in zip(columns_of(rule, [game]), counted.values(), strict=True):
                found[team][name] = _mean(team, name, some)
    return found


def controls_of_team(rule: Rule, values: Array) -> Array:
    """The controls of a team from those of its seats, shape (seats, controls)."""
    if rule == "lead":
        return np.asarray(values[0])
    return np.asarray(values.min(axis=0) if rule == "minimum" else values.mean(axis=0))


def _mean(team: str, name: str, levels: Sequence[Level]) -> Level:
    """The mean of the levels of seats; those of one model share its measurement error."""
    shares = {level: count / len(levels) for level, count in Counter(levels).items()}
    errors = [share * level.error for level, share in shares.items() if level.error is not None]
    return Level(
        team,
        name,
        sum(share * level.value for level, share in shares.items()),
        float(np.linalg.norm(errors)) if len(errors) == len(shares) else None,
        min(level.simulations for level in levels),
        max(level.failed for level in levels),
    )
