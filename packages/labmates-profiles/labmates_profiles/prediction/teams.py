"""Teams of several models: whose disposition counts."""

from __future__ import annotations

from collections import defaultdict
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
    found: dict[str, dict[str, Level]] = defaultdict(dict)
    for team, seats in teams.items():
        members = [by_model.get(model, {}) for model in seats]
        for game in members[0]:
            if all(game in member for member in members):
                levels = [member[game] for member in members]
                weights = _weights(rule, np.array([level.value for level in levels]))
                for name, shares in zip(columns_of(rule, [game]), weights, strict=True):
                    found[team][name] = _together(team, name, levels, shares)
    return dict(found)


def controls_of_team(rule: Rule, values: Array) -> Array:
    """The controls of a team from those of its seats, shape (seats, controls)."""
    if rule == "lead":
        return np.asarray(values[0])
    return np.asarray(values.min(axis=0) if rule == "minimum" else values.mean(axis=0))


def _weights(rule: Rule, values: Array) -> list[Array]:
    """The weights of the seats in each predictor of a game."""
    n, seats = len(values), np.eye(len(values))
    if rule == "mean":
        return [np.full(n, 1 / n)]
    if rule == "minimum":
        return [seats[int(values.argmin())]]
    others = (1 - seats[0]) / (n - 1) if n > 1 else seats[0]
    return [seats[0], others] if rule == "each" else [seats[0]]


def _together(team: str, name: str, levels: Sequence[Level], weights: Array) -> Level:
    """The weighted mean of the levels of a team's seats; seats of one model share its measurement error."""
    shares: dict[Level, float] = defaultdict(float)
    for level, weight in zip(levels, weights, strict=True):
        if weight:
            shares[level] += float(weight)
    value = sum(weight * level.value for level, weight in shares.items())
    squares = [(weight * level.error) ** 2 for level, weight in shares.items() if level.error is not None]
    error = float(np.sqrt(sum(squares))) if len(squares) == len(shares) else None
    simulations = min(level.simulations for level in shares)
    return Level(team, name, value, error, simulations, max(level.failed for level in shares))
