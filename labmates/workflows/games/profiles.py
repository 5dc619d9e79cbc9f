"""Cooperative profiles: how a model plays the behavioural games, game by game, with intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from labmates.display_names import labels_apart
from labmates.errors import UsageError
from labmates.games.base import Game
from labmates.games.registry import make_game
from labmates.records.run import ENDED, RunRecord
from labmates.stats.domains import COUNT, SHARE, Domain
from labmates.stats.intervals import Estimate, mean, notes
from labmates.stats.tables import Column, Table
from labmates.stats.validity import MOST_FAILED

_OF_MODELS = frozenset({"model", "model_for", "game", "prices"})
METRICS = ("level", "cooperation", "efficiency")
NEAR = 0.2
"""The paper's distance (`pareto_proximity`) within which it calls play near the optimum (appendix G)."""


@dataclass(frozen=True)
class GameProfile:
    """A model's play of one game.

    Attributes
    ----------
    simulations
        Runs that have ended.
    level
        The primary metric; None if no decision could be used. So are the others where they are not defined.
    cooperation, efficiency, pareto_proximity
        See `labmates.workflows.games.cooperation`; the last is the paper's distance, 1 less cooperation.
    near_best
        Share of simulations whose distance from the play that is best for all is at most `NEAR`.
    failed_rate
        Share of decisions for which no reply could be used.
    calls, input_tokens, output_tokens, seconds
        Of a simulation, on average.
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
        """Whether too many decisions failed for the metrics to be used."""
        return self.failed_rate > MOST_FAILED


@dataclass(frozen=True)
class Profile:
    """A model's cooperative profile (cooperative-profiles paper, section 3.1).

    Attributes
    ----------
    setting
        Under what the games were played, as far as other runs of them were played under something else
        (``framing=alternate, group_size=3``); empty if there are none.
    """

    model: str
    games: tuple[GameProfile, ...]
    setting: str = ""

    @property
    def name(self) -> str:
        """The model, and under what it played where that varies."""
        return f"{self.model} ({self.setting})" if self.setting else self.model

    @property
    def failed_rate(self) -> float:
        """Share of decisions that failed, the mean over games."""
        return sum(one.failed_rate for one in self.games) / len(self.games)

    @property
    def excluded(self) -> bool:
        """Whether no game is left."""
        return all(one.excluded for one in self.games)

    @property
    def excluded_games(self) -> tuple[str, ...]:
        """The games that the model has not played, since too many of its decisions failed there."""
        return tuple(one.game for one in self.games if one.excluded)


def profiles(runs: Iterable[RunRecord], costs: Mapping[str, int]) -> list[Profile]:
    """The profile of each model, out of runs of behavioural games; games in the order in which they come first.

    Runs with several models are left out, as are those that have not ended. Where a game was played under several
    conditions, a model has a profile for each of them.

    Parameters
    ----------
    costs
        What each run has cost, in micro-dollars, by its id.
    """
    used = _used(runs)
    settings = _settings(used)
    by_profile: dict[tuple[str, str], dict[str, list[RunRecord]]] = defaultdict(lambda: defaultdict(list))
    for run in used:
        by_profile[run.models[0], settings[run.key]][run.condition["game"]].append(run)
    return [
        Profile(model, tuple(_of_game(game, mine, costs) for game, mine in games.items()), setting)
        for (model, setting), games in by_profile.items()
    ]


def _used(runs: Iterable[RunRecord]) -> list[RunRecord]:
    return [run for run in runs if run.status in ENDED and len(run.models) == 1]


def _game_of(condition: Mapping[str, Any]) -> Game:
    sizes = {name: condition[name] for name in ("group_size", "groups", "rounds") if name in condition}
    return make_game(condition["game"], {**condition.get("rules", {}), **sizes})


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
    played = [one for profile in profiles for one in profile.games if not one.excluded]
    remarks = [
        "Level: the game's primary metric. Cooperation (of actions) and efficiency (of welfare) are 1 at the social "
        "optimum and 0 at the equilibrium. Near the best: share of simulations within "
        f"{NEAR:.0%} of the way to the equilibrium.",
        *notes(getattr(one, name) for one in played for name in METRICS),
    ]
    remarks += [text for profile in profiles for text in exclusion_notes(profile)]
    return Table("profiles", "Cooperative profiles", columns, rows, remarks)


def games_table(profiles: Sequence[Profile]) -> Table:
    """The share of play near the best in each game, over models, beside that of people."""
    played: dict[str, list[GameProfile]] = defaultdict(list)
    for profile in profiles:
        for one in profile.games:
            if not one.excluded and one.near_best is not None and one.pareto_proximity is not None:
                played[one.game].append(one)
    rows = [
        {
            "game": game,
            "models": len(mine),
            "simulations": sum(one.near_best.n for one in mine if one.near_best),
            **mean([one.near_best.value for one in mine if one.near_best], SHARE).row("near_best"),
            "near_models": fmean(one.pareto_proximity.value <= NEAR for one in mine if one.pareto_proximity),
            "people": "; ".join(f"{people.about} ({people.source})" for people in make_game(game).people) or None,
        }
        for game, mine in played.items()
    ]
    columns = [
        Column("game"),
        Column("models", "profiles"),
        Column("simulations"),
        Column("near_best", "simulations near the best", ".0%", "both"),
        Column("near_models", "profiles near the best", ".0%"),
        Column("people"),
    ]
    remarks = [
        f"Near the best: within {NEAR:.0%} of the way from the play that is best for all to the equilibrium, of "
        "simulations (mean over models, with an interval over these) and of models' means. Games in which both plays "
        "are the same are left out. People: as the cooperative-profiles paper reports it."
    ]
    return Table("profiles-games", "Play near the best for all, by game", columns, rows, remarks)


def games_of(runs: Iterable[RunRecord]) -> dict[tuple[str, str], Game]:
    """The game behind each setting and name of `profiles`, as far as this package and plug-ins know it."""
    used = _used(runs)
    settings = _settings(used)
    games: dict[tuple[str, str], Game] = {}
    for run in used:
        what = settings[run.key], run.condition["game"]
        if what not in games:
            with suppress(UsageError):
                games[what] = _game_of(run.condition)
    return games


def exclusion_notes(profile: Profile) -> list[str]:
    """The games that are excluded from a profile, a sentence for each."""
    return [
        f"{profile.name} in {one.game} is excluded: {one.failed_rate:.1%} of its decisions failed, more than "
        f"{MOST_FAILED:.0%}."
        for one in profile.games
        if one.excluded
    ]


def level_domain(condition: Mapping[str, Any]) -> Domain:
    """The values that the primary metric of a game under a condition can take; without an end if unknown."""
    try:
        game = _game_of(condition)
    except (KeyError, UsageError):
        return COUNT
    [primary] = [one for one in game.quantities if one.name == game.primary]
    return Domain(primary.low, primary.high)


def _of_game(game: str, runs: list[RunRecord], costs: Mapping[str, int]) -> GameProfile:
    n = len(runs)

    def values(name: str) -> list[float]:
        return [run.metrics[name] for run in runs if name in run.metrics]

    def metric(name: str, domain: Domain = SHARE) -> Estimate | None:
        return mean(known, domain) if (known := values(name)) else None

    near = [float(distance <= NEAR) for distance in values("pareto_proximity")]
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
        cost=sum(costs.get(run.id, 0) for run in runs),
    )
