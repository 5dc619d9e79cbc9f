"""``labmates screen``: how would a model do in the lab, by the way it plays?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from labmates.cli.common import json_option, store_option, verbose_option
from labmates.cli.console import out, print_json
from labmates.cli.options import flags_of, given, model_options, options_of
from labmates.cli.profile import FIXED, Player
from labmates.cli.tables import out_option, write_files
from labmates.errors import UsageError, explain
from labmates.models.catalog import Catalog
from labmates.models.names import parse_model
from labmates.models.options import ModelOptions
from labmates.workflows.analysis import Runs
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.games.prediction.analysis import MaterialParams

if TYPE_CHECKING:
    from labmates.studies.screening import Screened
    from labmates.workflows.games.prediction.material import Material
    from labmates.workflows.games.prediction.sources import Level
    from labmates.workflows.games.prediction.usefulness import Usefulness


@click.command(epilog="Example: labmates screen openai:qwen3-8b --base-url http://127.0.0.1:8000/v1")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--simulations", type=click.IntRange(2, 10_000), default=20, show_default=True, help="Of each game.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the first simulation.")
@click.option("--stored", is_flag=True, help="Play nothing: take the profile from what is there.")
@click.option(
    "--spec",
    "form",
    type=click.Choice(["robust", "correlated"]),
    default="correlated",
    show_default=True,
    help="Form of the model; the paper's own has too narrow intervals for models that it has not seen.",
)
@click.option("--study", metavar="NAME", help="Lab runs of this study only.")
@json_option("per model")
@out_option
@store_option
@verbose_option
def screen(
    models: tuple[str, ...],
    simulations: int,
    seed: int,
    stored: bool,
    form: Any,
    study: str | None,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
    **values: Any,
) -> int:
    """Predict how models would do in the lab from how they play the behavioural games.

    The prediction is that of a study: the models of the store (or of two CSV files) that have both a profile and scored
    lab runs. The profile of MODEL is taken from the store or the file; simulations that are missing are played now and
    kept, as by labmates profile. A model that is part of the study is left out of it first. First is said
    whether the games predict better than the mean of the study's models. If they do, the prediction is that with the
    games, else that mean; the other one stands second, both with 95 % intervals. Shown too is how far outside the study
    the model lies.
    """
    from labmates.studies.screening import Screening, screening_table
    from labmates.workflows.games.prediction.sources import USUAL

    catalog = Catalog(model_options(values))
    params = _params(values)
    if params.games is None and not stored:
        for reference in models:
            parse_model(catalog.name_of(reference))
    choice = params.choice()
    variant = {name: str(values[name]) for name in USUAL if values.get(name) is not None}
    with closing(Runs(store, study=study)) as runs:
        material = params.material(runs, variant)
    screening = Screening(material, choice, form, params.outcomes, seed=params.draws_seed)
    player = partial(Player, screening.games(), seed, values)
    profiles = _Profiles(material, params, player, variant, store, study, None if stored else simulations)
    worst, screened = 0, []
    for reference in dict.fromkeys(models):
        model = catalog.name_of(reference)
        code, levels, cost = profiles.of(model, reference)
        worst = max(worst, code)
        if code == 130:
            return code
        if not levels:
            continue
        found = screening.of(model, levels)
        screened.append(found)
        if as_json:
            ratio = cost.pop("ratio")
            beside = {"games_to_lab": None if ratio is None else ratio.json()}
            print_json({**found.json(), "profile": {"levels": [asdict(one) for one in levels], **cost, **beside}})
        else:
            _print(found, levels, cost)
    if screened:
        write_files([screening_table(screened)], files)
    return worst


screen.params = [
    *screen.params,
    *options_of(MaterialParams, leave_out=("covariates",)),
    *options_of(GameCondition, leave_out=FIXED),
    *options_of(ModelOptions),
]


def _params(values: dict[str, Any]) -> MaterialParams:
    try:
        return MaterialParams.model_validate(given(values, MaterialParams))
    except ValidationError as error:
        raise UsageError(explain(error, flags_of(MaterialParams))) from error


@dataclass(frozen=True)
class _Profiles:
    """Profiles of the models to be screened: of the file, of the store, or played now.

    Attributes
    ----------
    player
        Makes what plays missing simulations.
    simulations
        Of each game; None if nothing is played.
    """

    material: Material
    params: MaterialParams
    player: Callable[[], Player]
    variant: Mapping[str, str]
    store: str | None
    study: str | None
    simulations: int | None

    def of(self, model: str, reference: str) -> tuple[int, list[Level], dict[str, Any]]:
        """Return an exit code, how the model plays, and what that has cost; it is played by its `reference`.

        Raises
        ------
        UsageError
            If nothing is to be played, and there is no profile.
        """
        mine = [level for level in self.material.levels if level.model == model]
        if mine and (self.simulations is None or self.params.games):
            return 0, mine, {"cost": None, "tokens": None, **self._beside_lab(model, mine)}
        if self.simulations is None:
            raise UsageError(f"there is no profile of {model} ({self.material.told}); without --stored it is taken")
        return self._played(reference, self.simulations)

    def _beside_lab(self, model: str, levels: Sequence[Level]) -> dict[str, Any]:
        """Return the ratio of what the profile and lab runs take; none where either is from a file."""
        from labmates.records.store import Store
        from labmates.studies.effort import profile_beside_lab

        if self.params.games or self.params.lab:
            return {"ratio": None}
        games = [level.game for level in levels]
        with Store(self.store) as database:
            found = profile_beside_lab(database, model, games, study=self.study, variant=self.variant)
        return {"ratio": found}

    def _played(self, model: str, simulations: int) -> tuple[int, list[Level], dict[str, Any]]:
        from labmates.budgets.money import format_dollars
        from labmates.records.store import Store
        from labmates.studies.screening import levels_of_profile

        with Store(self.store) as database:
            code, found = self.player().play(database, [model], simulations)
        levels = [level for one in found for level in levels_of_profile(one)]
        games = [game for one in found for game in one.games]
        tokens = sum(one.simulations * (one.input_tokens + one.output_tokens) for one in games)
        cost = {"cost": format_dollars(sum(one.cost for one in games)), "tokens": round(tokens)}
        return code, levels, {**cost, **self._beside_lab(model, levels)}


def _print(found: Screened, levels: Sequence[Level], cost: Mapping[str, Any]) -> None:
    from labmates.cli.tables import print_tables
    from labmates.studies.screening import screening_table

    simulations = sum(level.simulations for level in levels)
    paid = "" if cost["cost"] is None else f", {cost['tokens']:,} tokens, ${cost['cost']}"
    for outcome, one in found.useful.items():
        out().print(f"{outcome.capitalize()}. {one.sentence} {_headline(one)}", markup=False)
    print_tables([screening_table([found])])
    out().print(f"Fitted on {found.source}, form {found.form}. Profile: {simulations} simulations{paid}.", markup=False)
    if cost["ratio"] is not None:
        out().print(cost["ratio"].sentence, markup=False)
    if found.observed:
        out().print("It is part of the study, and was left out of it for this.", markup=False)
    _print_standings(found)
    told = dict.fromkeys(note for one in found.studies.values() for note in one.notes)
    for note in told:
        out().print(note, style="dim", markup=False)
    for doubt in found.doubts:
        out().print(f"Warning: {doubt}", style="yellow", markup=False)
    of_studies = (left for one in found.studies.values() for left in one.left_out)
    if left_out := dict.fromkeys([*found.left_out, *of_studies]):
        out().print("\nLeft out", style="bold")
    for left in left_out:
        out().print(f"  {left.sentence}", markup=False)


def _headline(one: Usefulness) -> str:
    if one.answer == "yes":
        return "The prediction is that with games."
    return "So the prediction is the models' mean; that with games is shown second."


def _print_standings(found: Screened) -> None:
    said: dict[str, list[str]] = {}
    for outcome, one in found.standings.items():
        z = ", ".join(f"{name} {value:+.1f}" for name, value in one.z.items())
        together = "" if one.distance is None else f" Mahalanobis distance {one.distance:.1f} (p = {one.p:.2g})."
        why = f": {'; '.join(one.reasons)}" if one.reasons else ""
        reach = f"leverage {one.leverage:.2f} (fitted models: at most {one.largest_leverage:.2f})"
        trust = " The prediction is an extrapolation: do not rely on it." if one.where == "far outside" else ""
        text = f"lies {one.where} of the models that it was fitted on{why}.{trust}\n  z: {z}.{together} {reach}."
        said.setdefault(text.replace("within of", "within the range of"), []).append(outcome)
    for text, outcomes in said.items():
        who = "It" if len(said) == 1 else f"For {', '.join(outcomes)} it"
        out().print(f"{who} {text}", markup=False)
