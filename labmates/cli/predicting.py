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
    from labmates.analysis.bayes.prediction.assembly import Assembled, Choice
    from labmates.analysis.bayes.prediction.sources import LeftOut, Level, Observation
    from labmates.models.roster import KnownModel

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
            help="accuracy, quality or completeness; repeatable. By default all that the runs tell something of.",
        ),
        click.option(
            "--judge",
            "judges",
            multiple=True,
            metavar="[OUTCOME=]NAME",
            help="Whose scores, for all outcomes or for one; repeatable. Needed where several judges scored.",
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


@dataclass(frozen=True)
class Material:
    """What there is to predict from.

    Attributes
    ----------
    left_out
        Simulations and runs that none of it rests on.
    told
        Where it is from.
    """

    levels: list[Level]
    observations: list[Observation]
    left_out: list[LeftOut]
    known: tuple[KnownModel, ...]
    told: str

    def traits(self, more: Sequence[str] = ()) -> Mapping[str, KnownModel]:
        """Return what is known of all models in it, and of more."""
        from labmates.models.roster import traits_of

        names = [*(one.model for one in self.levels), *(one.model for one in self.observations), *more]
        return traits_of(dict.fromkeys(names), self.known)


def read_material(asked: Asked, variant: Mapping[str, str]) -> Material:
    """Read profiles and lab runs from files, or where none is given from the store.

    Raises
    ------
    UsageError
        If something is wrong with a file, or the store or the study is not there.
    """
    from labmates.analysis.bayes.prediction.sources import (
        levels_of_runs,
        observations_of_runs,
        read_levels,
        read_observations,
    )
    from labmates.models.roster import read_roster
    from labmates.records.store import Store
    from labmates.records.studies import study_record

    games_file, lab_file, study = asked.games_file, asked.lab_file, asked.study
    known = tuple(model for path in asked.rosters for model in read_roster(path))
    levels, levels_left = read_levels(games_file, variant) if games_file else ([], [])
    observations, observations_left = read_observations(lab_file) if lab_file else ([], [])
    told = [f"profiles of {games_file}"] if games_file else []
    told += [f"lab runs of {lab_file}"] if lab_file else []
    if not (games_file and lab_file):
        with Store(asked.store, must_exist=True) as database:
            if not games_file:
                levels, levels_left = levels_of_runs(database.runs(kind="game"), variant)
                told.insert(0, f"profiles of {database.shown_url}")
            if not lab_file:
                if study is not None:
                    study_record(database.database, study)
                runs = database.runs(kind="science", study=study)
                observations, observations_left = observations_of_runs(database, runs)
                told.append(f"lab runs of {database.shown_url}" + (f", study {study}" if study else ""))
                if not observations:
                    raise UsageError(
                        f"the store {database.shown_url} has no lab run of a team of one model that has ended"
                        + (f" in the study '{study}'" if study else "")
                        + "; make some with labmates run science or labmates study run"
                    )
    return Material(levels, observations, [*levels_left, *observations_left], known, "; ".join(told))


def check_outcomes(asked: Asked) -> None:
    """Make sure that outcomes which are asked for are known.

    Raises
    ------
    UsageError
        If one is not.
    """
    from labmates.analysis.bayes.prediction.sources import OUTCOMES

    for name in asked.outcomes:
        if name not in OUTCOMES:
            raise unknown_name("outcome", name, OUTCOMES)


def assemble_outcomes(asked: Asked, assembled: Callable[[str], Assembled]) -> tuple[list[Assembled], list[LeftOut]]:
    """Return the data of the outcomes that are asked for, or of all that lab runs tell something of.

    Raises
    ------
    UsageError
        If the data of an outcome that is asked for are not enough, or those of none are.
    """
    from labmates.analysis.bayes.prediction.assembly import informative
    from labmates.analysis.bayes.prediction.sources import OUTCOMES

    if asked.outcomes:
        return [assembled(outcome) for outcome in dict.fromkeys(asked.outcomes)], []
    return informative(OUTCOMES, assembled)


def choice_of(asked: Asked) -> Choice:
    """Return what of the material is to be analysed.

    Raises
    ------
    UsageError
        If a judge is given for what is no outcome, or two for one.
    """
    from labmates.analysis.bayes.prediction.assembly import Choice
    from labmates.analysis.bayes.prediction.sources import OUTCOMES

    chosen: dict[str, str] = {}
    for text in asked.judges:
        outcome, equals, name = text.partition("=")
        if not equals:
            outcome, name = "", text
        elif outcome not in OUTCOMES:
            raise unknown_name("outcome", outcome, OUTCOMES)
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
