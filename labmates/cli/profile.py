"""``labmates profile``: how models play the behavioural games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from labmates.cli.common import json_option, store_option, verbose_option
from labmates.cli.console import complain, out, print_json
from labmates.cli.figures import draw, plot_option
from labmates.cli.options import condition_given, flags_of, options_of
from labmates.cli.run import execute, settings_of
from labmates.cli.tables import out_option, print_grid, write_files
from labmates.errors import UsageError, explain
from labmates.models.options import ModelOptions
from labmates.workflows.games.condition import GameCondition

if TYPE_CHECKING:
    from labmates.games.base import Game
    from labmates.records.store import Store
    from labmates.stats.intervals import Estimate
    from labmates.workflows.games.profiles import Profile

FIXED = ("game", "model", "model_for", "rounds", "rules")
"""What a profile says by itself."""


@click.command(epilog="Example: labmates profile openai:gpt-5.4-mini scripted:random --plot profile.png")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--simulations", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Of each game.")
@click.option("--game", "games", multiple=True, metavar="NAME", help="A game; repeatable. By default all six.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the first simulation.")
@click.option(
    "--baselines",
    type=click.IntRange(0, 10_000),
    default=3,
    show_default=True,
    help="Simulations of each game by each scripted baseline that the profile is shown beside; 0 for none.",
)
@plot_option()
@json_option("per model")
@out_option
@store_option
@verbose_option
def profile(
    models: tuple[str, ...],
    simulations: int,
    games: tuple[str, ...],
    seed: int,
    baselines: int,
    plot: Path | None,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
    **values: Any,
) -> int:
    """Measure how models play the behavioural games: their cooperative profiles.

    Simulations that the store holds already are taken from there; missing ones are played and kept. The table gives
    each game's primary metric with its 95 % interval; how cooperative it is (0 at the equilibrium, 1 at the play that
    is best for all), by what was done and by what came of it; and the decisions that failed. A game in which more than
    20 % of a model's decisions failed is excluded from its profile: the exit code is then 1, as for an invalid run.
    """
    from labmates.records.store import Store
    from labmates.studies.profiling import BASELINES
    from labmates.workflows.games.profile_figures import profile_figure
    from labmates.workflows.games.profiles import profiles_table, told_excluded

    player = Player(games, seed, values)
    others = [name for one in BASELINES if (name := f"scripted:{one}") not in models]
    with Store(store) as database:
        code, found = player.play(database, list(dict.fromkeys(models)), simulations)
        beside: list[Profile] = []
        if code != 130 and baselines and (plot is not None or not as_json):
            other_code, beside = player.play(database, others, baselines)
            code = max(code, other_code)
    if code == 130:
        return code
    if as_json:
        for one in found:
            print_json(profile_json(one))
    else:
        for one in found:
            _print_one(one, player.games)
        if beside:
            _print_beside([*found, *beside])
    if found:
        write_files([profiles_table(found)], files)
    if plot is not None and found:
        draw(profile_figure(found, beside, {("", name): game for name, game in player.games.items()}), plot)
    excluded = [text for one in found for text in told_excluded(one)]
    for text in excluded:
        complain(text)
    return max(code, 1) if excluded else code


profile.params = [
    *profile.params,
    *options_of(GameCondition, leave_out=FIXED),
    *options_of(ModelOptions),
]


def profile_json(one: Profile) -> dict[str, Any]:
    """Return a profile as JSON data; ``cost`` is credits, in dollars by the price list, as a decimal string."""
    from labmates.budgets.money import format_dollars

    games = [{**asdict(game), "excluded": game.excluded, "cost": format_dollars(game.cost)} for game in one.games]
    failed = {"failed_rate": one.failed_rate, "excluded": one.excluded, "excluded_games": list(one.excluded_games)}
    return {"model": one.model, **failed, "games": games}


class Player:
    """Plays the simulations of profiles that the store does not hold yet.

    Attributes
    ----------
    games
        The games with the rules of the profile, by name.
    """

    def __init__(self, games: Sequence[str], seed: int, values: dict[str, Any]) -> None:
        from labmates.models.catalog import Catalog
        from labmates.studies.profiling import AT_ONCE, profile_games

        self.games: dict[str, Game] = {}
        self._names = list(dict.fromkeys(games)) or profile_games()
        self._seed = seed
        settings = settings_of(values, {})
        at_once = max(AT_ONCE, settings.max_concurrent_runs) if settings.models.batch else AT_ONCE
        self._settings = settings.model_copy(update={"max_concurrent_runs": at_once})
        self.catalog = Catalog(self._settings.models)
        own = {name: value for name, value in values.items() if name not in FIXED}
        self._options = condition_given(own, GameCondition)

    def play(self, store: Store, models: Sequence[str], simulations: int) -> tuple[int, list[Profile]]:
        """Play what is missing; return an exit code, and the profiles as far as they are there."""
        from labmates.cli.summary import warn_of_thinking
        from labmates.studies.profiling import missing_runs, profile_conditions, profile_runs
        from labmates.workflows.games.profiles import profiles

        try:
            conditions = profile_conditions(models, self._names, self._options, self.catalog)
        except ValidationError as error:
            raise UsageError(explain(error, flags_of(GameCondition))) from error
        self.games = {condition.game: condition.make_game() for condition in conditions}
        settings = self._settings.resolved(self.catalog)
        missing = missing_runs(store, conditions, simulations, settings, seed=self._seed)
        code = execute(store, missing, settings, as_json=False, part_of="the profile") if missing else 0
        runs = profile_runs(store, conditions, simulations)
        warn_of_thinking(store, runs)
        return code, profiles(runs, store.costs([run.id for run in runs]))


def _print_one(profile: Profile, games: dict[str, Game]) -> None:
    from labmates.budgets.money import show_dollars
    from labmates.games.references import references_or_none
    from labmates.stats.intervals import notes
    from labmates.workflows.games.profiles import METRICS

    out().print(f"\nCooperative profile of {profile.model}", style="bold", markup=False)
    headings = ["game", "metric", "value", "Nash → best", "cooperation", "efficiency", "failed"]
    headings += ["simulations", "calls", "tokens", "credits", "seconds"]
    rows: list[list[str]] = []
    for one in profile.games:
        game = games[one.game]
        plays = references_or_none(game)
        between = "" if plays is None else f"{float(plays.nash.level):.4g} → {float(plays.optimum.level):.4g}"
        means = [None if one.excluded else getattr(one, name) for name in METRICS]
        value, *near = map(_cell, means)
        row = [one.game, game.primary, value, between, *near, f"{one.failed_rate:.1%}", str(one.simulations)]
        row += [f"{one.calls:.0f}", f"{one.input_tokens + one.output_tokens:,.0f}", show_dollars(one.cost)]
        rows.append([*row, f"{one.seconds:.2f}"])
    print_grid(headings, rows, [place > 1 for place in range(len(headings))])
    for note in notes(getattr(one, name) for one in profile.games if not one.excluded for name in METRICS):
        out().print(note, style="dim", markup=False)
    cost = sum(one.cost for one in profile.games)
    tokens = sum(one.simulations * (one.input_tokens + one.output_tokens) for one in profile.games)
    out().print(
        f"In all {sum(one.simulations for one in profile.games)} simulations, {tokens:,.0f} tokens, "
        f"{show_dollars(cost)} in credits (by the price list of the condition, not what was paid); calls, tokens and "
        "seconds in the table are of one simulation.",
        style="dim",
        markup=False,
    )


def _print_beside(found: Sequence[Profile]) -> None:
    games = list(dict.fromkeys(one.game for profile in found for one in profile.games))
    rows = []
    for profile in found:
        levels = {one.game: one.level for one in profile.games if not one.excluded}
        rows.append([profile.model, *(_cell(levels.get(game)) for game in games)])
    out().print("\nBeside baselines: primary metrics", style="italic")
    print_grid(["model", *games], rows, [False, *(True for _ in games)])


def _cell(mean: Estimate | None) -> str:
    from labmates.stats.tables import Column

    return Column("mean", form=".3f", shows="both").cell({} if mean is None else mean.row("mean"))
