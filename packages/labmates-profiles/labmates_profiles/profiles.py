"""Cooperative profiles: a model's play of the behavioural games, game by game, with intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from labmates.errors import UsageError
from labmates.games.base import Game
from labmates.games.registry import make_game
from labmates.records.run import ENDED, RunRecord
from labmates.stats.answers import highest
from labmates.stats.domains import SHARE, Domain
from labmates.stats.intervals import Estimate, mean, notes
from labmates.stats.tables import Column, Table
from labmates.stats.validity import MOST_FAILED
from labmates.util.display_names import labels_apart
from labmates.workflows.games.cooperation import game_of, level_domain

_OF_MODELS = frozenset({"model", "model_for", "game", "prices"})
METRICS = ("level", "cooperation", "efficiency")
NEAR = 0.2
"""Maximum share of the possible welfare gain that play near the optimum misses (the limit of the paper, appendix G)."""


@dataclass(frozen=True)
class GameProfile:
    """A model's play of one game.

    Attributes
    ----------
    simulations
        Number of ended runs.
    level
        The primary metric; like the others, None if undefined.
    cooperation, efficiency, pareto_proximity
        See `labmates.workflows.games.cooperation`; the last is the paper's distance of mean decisions.
    near_best
        Share of simulations with an efficiency of at least 1 - `NEAR`.
    failed_rate
        Share of decisions without a usable reply.
    calls, input_tokens, output_tokens, seconds
        Per simulation, on average.
    cost
        Of all simulations, in micro-dollars.
    """

    game: str
    simulations: int
    level: Estimate | None
    cooperation: Estimate | None
    efficiency: Estimate | None
    pareto_proximity: Estimate | None
    near_best: Estimate | None
    failed_rate: float
    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float
    cost: int

    @property
    def excluded(self) -> bool:
        """Whether too many decisions failed for valid metrics."""
        return self.failed_rate > MOST_FAILED


@dataclass(frozen=True)
class Profile:
    """A model's cooperative profile (cooperative-profiles paper, section 3.1).

    Attributes
    ----------
    setting
        The settings in which the runs differ from others of the same games (``framing=alternate, group_size=3``); empty
        if there are no others.
    """

    model: str
    games: tuple[GameProfile, ...]
    setting: str = ""

    @property
    def name(self) -> str:
        """The model, with its setting if that varies."""
        return f"{self.model} ({self.setting})" if self.setting else self.model

    @property
    def failed_rate(self) -> float:
        """Share of failed decisions, mean over games."""
        return sum(game.failed_rate for game in self.games) / len(self.games)

    @property
    def excluded(self) -> bool:
        """Whether all games are excluded."""
        return all(game.excluded for game in self.games)

    @property
    def excluded_games(self) -> tuple[str, ...]:
        """The games with too many failed decisions."""
        return tuple(game.game for game in self.games if game.excluded)


def profiles(runs: Iterable[RunRecord]) -> list[Profile]:
    """The profile of each model from runs of behavioural games, with games in order of first appearance.

    Only ended runs with a single model are used. If a game was played under several conditions, a model has a profile
    for each.
    """
    used = _used(runs)
    settings = _settings(used)
    by_profile: dict[tuple[str, str], dict[str, list[RunRecord]]] = defaultdict(lambda: defaultdict(list))
    for run in used:
        by_profile[run.models[0], settings[run.key]][run.condition["game"]].append(run)
    return [
        Profile(model, tuple(_of_game(game, members) for game, members in games.items()), setting)
        for (model, setting), games in by_profile.items()
    ]


def _used(runs: Iterable[RunRecord]) -> list[RunRecord]:
    return [run for run in runs if run.status in ENDED and len(run.models) == 1]


def _settings(runs: Iterable[RunRecord]) -> dict[str, str]:
    """A label of each condition, by its key: its differences from others of the same game, besides models."""
    of_game: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for run in runs:
        of_game[run.condition["game"]][run.key] = run.condition
    return {
        key: label
        for conditions in of_game.values()
        for key, label in zip(conditions, labels_apart(list(conditions.values()), _OF_MODELS), strict=True)
    }


def profiles_table(profiles: Sequence[Profile]) -> Table:
    """Profiles, a row for each model and game."""
    rows: list[dict[str, Any]] = []
    for profile in profiles:
        for game_profile in profile.games:
            row: dict[str, Any] = {"model": profile.model, "setting": profile.setting, "game": game_profile.game}
            row["simulations"] = game_profile.simulations
            for name in (*METRICS, "pareto_proximity", "near_best"):
                mean = None if game_profile.excluded else getattr(game_profile, name)
                row |= {name: None} if mean is None else mean.row(name)
            rows.append({**row, "failed_rate": game_profile.failed_rate, "excluded": game_profile.excluded})
    columns = [
        Column("model", once=True),
        *([Column("setting", "played under", once=True)] if any(profile.setting for profile in profiles) else []),
        Column("game"),
        Column("simulations"),
        *(Column(name, form=".3f", shows="both") for name in METRICS),
        Column("near_best", "near the best", ".0%"),
        Column("failed_rate", "failed decisions", ".1%"),
        Column("excluded"),
    ]
    played = [game for profile in profiles for game in profile.games if not game.excluded]
    remarks = [
        "Level: the game's primary metric. Cooperation (of actions) and efficiency (of welfare) are 1 at the social "
        "optimum and 0 at the equilibrium. Near the best: share of simulations with an efficiency of at least "
        f"{1 - NEAR}.",
        *notes(getattr(game, name) for game in played for name in METRICS),
    ]
    if undefined := dict.fromkeys(game.game for game in played if game.efficiency is None):
        remarks.append(
            f"Cooperation and efficiency are undefined in {', '.join(undefined)}: with its rules, no play is better "
            "for all than an equilibrium."
        )
    remarks += [text for profile in profiles for text in exclusion_notes(profile)]
    return Table("profiles", "Cooperative profiles", columns, rows, remarks)


def answer(table: Table) -> list[str]:
    """Which model is most cooperative in the games of `profiles_table`, or in which game the only one is."""
    models = ["model", *(["setting"] if any(column.key == "setting" for column in table.columns) else [])]
    if len({tuple(map(row.get, models)) for row in table.rows}) > 1:
        return highest(table, "cooperation", models, ["game"])
    return highest(table, "cooperation", ["game"])


def games_table(profiles: Sequence[Profile]) -> Table:
    """The share of play near the optimum in each game, over models, compared with human play."""
    played: dict[str, dict[str, list[tuple[Estimate, Estimate]]]] = defaultdict(lambda: defaultdict(list))
    for profile in profiles:
        for game in profile.games:
            if not game.excluded and game.near_best is not None and game.efficiency is not None:
                played[game.game][profile.model].append((game.near_best, game.efficiency))
    rows = []
    for name, models in played.items():
        # A model's settings are no further models.
        shares = [fmean(near.value for near, _ in settings) for settings in models.values()]
        close = [fmean(share.value for _, share in settings) >= 1 - NEAR for settings in models.values()]
        people = "; ".join(f"{people.about} ({people.source})" for people in make_game(name).people) or None
        row = {"game": name, "models": len(models), "near_models": fmean(close), "people": people}
        row["simulations"] = sum(near.n for settings in models.values() for near, _ in settings)
        rows.append(row | mean(shares, SHARE).row("near_best"))
    columns = [
        Column("game"),
        Column("models"),
        Column("simulations"),
        Column("near_best", "simulations near the best", ".0%", "both"),
        Column("near_models", "models near the best", ".0%"),
        Column("people"),
    ]
    remarks = [
        f"Near the best: an efficiency of at least {1 - NEAR}, of simulations (mean over models, with its interval) "
        "and of models' means. Degenerate games are left out. People: as reported in the cooperative-profiles paper."
    ]
    return Table("profiles-games", "Play near the best for all, by game", columns, rows, remarks)


def games_of(runs: Iterable[RunRecord]) -> dict[tuple[str, str], Game]:
    """The game of each setting and name of `profiles`, if it is known."""
    used = _used(runs)
    settings = _settings(used)
    games: dict[tuple[str, str], Game] = {}
    for run in used:
        key = settings[run.key], run.condition["game"]
        if key not in games:
            with suppress(UsageError):
                games[key] = game_of(run.condition)
    return games


def exclusion_notes(profile: Profile) -> list[str]:
    """A sentence for each game excluded from a profile."""
    return [
        f"{profile.name} in {game.game} is excluded: {game.failed_rate:.1%} of its decisions failed, more than "
        f"{MOST_FAILED:.0%}."
        for game in profile.games
        if game.excluded
    ]


def _of_game(game: str, runs: list[RunRecord]) -> GameProfile:
    n = len(runs)

    def values(name: str) -> list[float]:
        return [run.metrics[name] for run in runs if name in run.metrics]

    def metric(name: str, domain: Domain = SHARE) -> Estimate | None:
        return mean(known, domain) if (known := values(name)) else None

    near = [float(share >= 1 - NEAR) for share in values("efficiency")]
    return GameProfile(
        game=game,
        simulations=n,
        level=metric("level", level_domain(runs[0].condition)),
        cooperation=metric("cooperation"),
        efficiency=metric("efficiency"),
        pareto_proximity=metric("pareto_proximity"),
        near_best=mean(near, SHARE) if near else None,
        failed_rate=sum(run.metrics["failed_decision_rate"] for run in runs) / n,
        calls=sum(run.usage.llm_calls for run in runs) / n,
        input_tokens=sum(run.usage.input_tokens for run in runs) / n,
        output_tokens=sum(run.usage.output_tokens for run in runs) / n,
        seconds=sum(run.seconds for run in runs) / n,
        cost=sum(run.spent for run in runs),
    )
