"""Measurement of cooperative profiles: stored simulations are read, missing ones are played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from labmates.budgets.money import format_dollars, show_dollars
from labmates.errors import UsageError
from labmates.stats.figures import paged
from labmates.stats.tables import Column, Table
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.games.base import Game
    from labmates.workflows.protocol.command import Lab
    from labmates_profiles.profiles import Profile

SIMULATIONS: Final = 20
"""Simulations of each game, sufficient according to the cooperative-profiles paper (section 4.3)."""
AT_ONCE: Final = 32
"""Parallel simulations; each has few calls in flight, and calls have a limit of their own."""
FIXED: Final = ("game", "model", "model_for", "rounds", "rules")
"""The parameters that a profile sets."""


def profile(
    lab: Lab, models: str | Sequence[str], *, games: Sequence[str] = (), simulations: int = SIMULATIONS, seed: int = 0
) -> list[Profile]:
    """Models' play in the behavioural games; missing simulations are played and stored.

    Parameters
    ----------
    models
        One or several, as ``provider:name``.
    games
        Names; by default the six built-in games.
    simulations
        Per game.
    seed
        Seed of the first simulation.

    Raises
    ------
    UsageError
        If a model, a game or a number is invalid.
    """
    from labmates.games.registry import own_games
    from labmates_profiles.profiles import profiles

    if simulations < 1:
        raise UsageError("simulations must be at least 1")
    names = list(dict.fromkeys(games)) or own_games()
    conditions = [
        _condition(lab, game, model)
        for model in dict.fromkeys([models] if isinstance(models, str) else models)
        for game in names
    ]
    runs = lab.play(conditions, simulations, seed=seed, at_once=AT_ONCE, part_of="the profile")
    return profiles(runs)


def _condition(lab: Lab, game: str, model: str) -> GameCondition:
    condition = lab.condition(GameCondition.kind, {"game": game, "model": model})
    assert isinstance(condition, GameCondition)
    return condition


class ProfileParams(Params):
    """Parameters of profiles, beside those of their condition."""

    models: tuple[str, ...] = Field(description="Models.", json_schema_extra={"argument": True})
    simulations: int = Field(SIMULATIONS, ge=1, le=10_000, description="Simulations per game.")
    games: tuple[str, ...] = Field((), description="A game; repeatable. Default: all six.")
    seed: int = Field(0, ge=0, description="Seed of the first simulation.")


def profile_verb(lab: Lab, params: ProfileParams) -> Iterator[Result]:
    """Measure models' play in the behavioural games: their cooperative profiles.

    Simulations in the store are reused; missing ones are played and stored. The table shows each game's primary metric
    with its 95 % interval, cooperation by actions and by resulting welfare (0 at the equilibrium, 1 at the social
    optimum), and the failed decisions. A game with more than 20 % failed decisions is excluded from a model's profile;
    the exit code is then 1, as for an invalid run. To compare with scripted baselines, name them as further models.
    """
    from labmates_profiles.profile_figures import profile_figure, profile_pages
    from labmates_profiles.profiles import answer, exclusion_notes

    measured = profile(lab, params.models, games=params.games, simulations=params.simulations, seed=params.seed)
    if not measured:
        return
    games = {("", name): _condition(lab, name, measured[0].model).make_game() for name in _names(measured)}
    alt = "Each primary metric with the equilibrium and the social optimum; the numbers are in the table."
    draws = [partial(profile_figure, measured, games, page) for page in profile_pages(measured, games)]
    table = _played_table(measured, games)
    yield Result(
        [table],
        paged("profile", "Cooperative profile", alt, draws),
        answer(table),
        objects=[_json(each) for each in measured],
        fault="\n".join(text for each in measured for text in exclusion_notes(each)) or None,
    )


def _names(profiles: Sequence[Profile]) -> list[str]:
    """Names of the games of profiles."""
    return list(dict.fromkeys(game.game for profile in profiles for game in profile.games))


def _json(profile: Profile) -> dict[str, Any]:
    """A profile as JSON data; ``cost`` is credits, in dollars by the price list, as a decimal string."""
    games = [{**asdict(game), "excluded": game.excluded, "cost": format_dollars(game.cost)} for game in profile.games]
    failed = {
        "failed_rate": profile.failed_rate,
        "excluded": profile.excluded,
        "excluded_games": list(profile.excluded_games),
    }
    return {"model": profile.model, **failed, "games": games}


def _played_table(profiles: Sequence[Profile], games: Mapping[tuple[str, str], Game]) -> Table:
    """Profiles with the reference plays of their games and their usage."""
    from labmates.games.references import references_or_none
    from labmates_profiles.profiles import profiles_table

    table = profiles_table(profiles)
    played = [game for each in profiles for game in each.games]
    rows = []
    for row, game in zip(table.rows, played, strict=True):
        rules = games["", game.game]
        plays = references_or_none(rules)
        between = "" if plays is None else f"{float(plays.nash.level):.4g} → {float(plays.optimum.level):.4g}"
        tokens = round(game.input_tokens + game.output_tokens)
        used = {"calls": game.calls, "tokens": tokens, "credits": show_dollars(game.cost), "seconds": game.seconds}
        rows.append({**row, "metric": rules.primary, "reference plays": between, **used})
    columns = list(table.columns)
    at = [column.key for column in columns].index("level")
    columns[at:at] = [Column("metric"), Column("reference plays", "Nash → best")]
    columns += [Column("calls", form=".0f"), Column("tokens"), Column("credits"), Column("seconds", form=".2f")]
    simulations = sum(game.simulations for game in played)
    all_tokens = sum(game.simulations * (game.input_tokens + game.output_tokens) for game in played)
    cost = show_dollars(sum(game.cost for game in played))
    note = (
        f"In all {simulations} simulations, {all_tokens:,.0f} tokens, {cost} in credits (at the price list of the "
        f"condition, not the bill); calls, tokens and seconds in the table are per simulation."
    )
    title = f"Cooperative profile of {profiles[0].model}" if len(profiles) == 1 else table.title
    return Table(table.name, title, columns, rows, [*table.notes, note])


PROFILE = Command(
    profile_verb,
    ProfileParams,
    function=profile,
    example="labmates profile openai:gpt-5.4-mini scripted:random --plot profile.png",
    kind=GameCondition.kind,
    fixed=FIXED,
    has_store=True,
    has_tables=True,
    has_figures=True,
    objects="per model",
)
