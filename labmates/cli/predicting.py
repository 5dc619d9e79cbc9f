"""Options that say from which profiles and lab runs to predict, for the verbs that do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import store_option
from labmates.cli.console import out
from labmates.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from labmates.studies.material import Material
    from labmates.workflows.games.prediction.assembly import Choice
    from labmates.workflows.games.prediction.sources import LeftOut

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Asked:
    """What was asked for with the options of `material_options`."""

    games_file: Path | None
    lab_file: Path | None
    study: str | None
    outcomes: tuple[str, ...]
    judges: tuple[str, ...]
    game_names: tuple[str, ...]
    rosters: tuple[Path, ...]
    no_benchmarks: bool
    unit: Any
    draws_seed: int
    store: str | None


def material_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say what to predict from, which the verb gets as `asked`, an `Asked`."""

    @wraps(function)
    def gathered(**values: Any) -> int:
        asked = Asked(**{field.name: values.pop(field.name) for field in fields(Asked)})
        return function(asked=asked, **values)

    parts = (
        click.option(
            "--games",
            "games_file",
            type=_FILE,
            metavar="FILE",
            help="Profiles from a CSV file instead of the store: model, game, level (a row per simulation), or model, "
            "game, mean, error, simulations.",
        ),
        click.option(
            "--lab",
            "lab_file",
            type=_FILE,
            metavar="FILE",
            help="Lab runs from a CSV file instead of the store: model, accuracy, quality, completeness, and what is "
            "known of the condition (task, budget, visibility, team_size, theory_of_mind); optionally judge.",
        ),
        click.option("--study", metavar="NAME", help="Lab runs of this study only."),
        click.option(
            "--outcome",
            "outcomes",
            multiple=True,
            metavar="NAME",
            help="accuracy, quality, completeness, skill or provenance; repeatable. Default: what the runs tell of the "
            "first three, as in the paper; for screen of skill, quality and completeness.",
        ),
        click.option(
            "--judge",
            "judges",
            multiple=True,
            metavar="[OUTCOME=]NAME",
            help="Whose scores, for all outcomes or for one; repeatable. Default: verified for accuracy and skill, the "
            "only judge for others; needed where several scored.",
        ),
        click.option("--game", "game_names", multiple=True, metavar="NAME", help="A game; repeatable. By default all."),
        click.option(
            "--roster",
            "rosters",
            multiple=True,
            type=_FILE,
            metavar="FILE",
            help="Adds models that are not known: name, size, thinking, mmlu_pro, ifeval; repeatable.",
        ),
        click.option(
            "--no-benchmarks",
            is_flag=True,
            help="Do not control for benchmark scores, size and thinking; models without them take part.",
        ),
        click.option(
            "--unit",
            type=click.Choice(["condition", "run"]),
            help="What an observation is: a model and condition with its runs averaged (as in the paper), or a run. "
            "Default: condition, or run where no model has two conditions.",
        ),
        click.option(
            "--draws-seed",
            "draws_seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of draws from posteriors.",
        ),
        store_option,
    )
    for part in reversed(parts):
        gathered = part(gathered)
    return gathered


def material_of(asked: Asked, variant: Mapping[str, str]) -> Material:
    """Read what there is to predict from; see `labmates.studies.material.read_material`."""
    from labmates.studies.material import read_material

    return read_material(
        asked.store,
        study=asked.study,
        games_file=asked.games_file,
        lab_file=asked.lab_file,
        rosters=asked.rosters,
        variant=variant,
    )


def check_outcomes(asked: Asked) -> None:
    """Make sure that outcomes which are asked for are known.

    Raises
    ------
    UsageError
        If one is not.
    """
    from labmates.workflows.games.prediction.sources import ALL_OUTCOMES

    for name in asked.outcomes:
        if name not in ALL_OUTCOMES:
            raise unknown_name("outcome", name, ALL_OUTCOMES)


def choice_of(asked: Asked) -> Choice:
    """Return what of the material is to be analysed.

    Raises
    ------
    UsageError
        If a judge is given for what is no outcome, or two for one.
    """
    from labmates.workflows.games.prediction.assembly import Choice
    from labmates.workflows.games.prediction.sources import ALL_OUTCOMES

    chosen: dict[str, str] = {}
    for text in asked.judges:
        outcome, equals, name = text.partition("=")
        if not equals:
            outcome, name = "", text
        elif outcome not in ALL_OUTCOMES:
            raise unknown_name("outcome", outcome, ALL_OUTCOMES)
        name = name.strip()
        if outcome in chosen:
            raise UsageError(f"--judge: two judges for {outcome or 'all outcomes'}; scores are not mixed, choose one")
        chosen[outcome] = name
    return Choice(chosen, tuple(dict.fromkeys(asked.game_names)), not asked.no_benchmarks, asked.unit)


def print_left_out(left: Sequence[LeftOut]) -> None:
    """Say what has no part in an analysis, and why."""
    if not left:
        return
    out().print("\nLeft out", style="bold")
    for one in left:
        what = f"{one.count} {one.what}" if one.what in ("runs", "simulations") else one.what
        out().print(f"  {what}: {one.reason}", markup=False)
