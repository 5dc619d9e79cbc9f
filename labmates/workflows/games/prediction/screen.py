"""Screening models: their profiles are read or played, and their lab performance is predicted from these.

The effort of a profile against that of lab runs decides whether screening saves anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from labmates.budgets.money import format_dollars, parse_dollars, show_dollars
from labmates.errors import UsageError
from labmates.models.names import parse_model
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.analysis import Result
from labmates.workflows.command import Command
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.games.prediction.analysis import MaterialParams
from labmates.workflows.games.prediction.design_matrix import Choice
from labmates.workflows.games.prediction.material import Material, read_material
from labmates.workflows.games.prediction.screened import Screened, Screening, levels_of_profile, screening_table
from labmates.workflows.games.prediction.sources import USUAL, Level, check_outcomes, is_lab_run, is_profile_run
from labmates.workflows.games.profiling import FIXED, SIMULATIONS, profile

if TYPE_CHECKING:
    from labmates.workflows.command import Lab
    from labmates.workflows.games.prediction.usefulness import Usefulness


@dataclass(frozen=True)
class Effort:
    """The usage of some runs.

    Attributes
    ----------
    tokens
        Input and output of all runs together.
    money
        Of all runs, in micro-dollars: what was paid, or credits at the price lists of the runs' conditions.
    """

    runs: int
    tokens: int
    money: int


@dataclass(frozen=True)
class Ratio:
    """A profile beside lab runs.

    Attributes
    ----------
    paid
        Whether money is what providers bill; else, as for baselines, credits at the price lists of the conditions.
    """

    profile: Effort
    lab: Effort
    paid: bool

    @property
    def in_tokens(self) -> float | None:
        """Lab runs that take as many tokens as the profile; None if a lab run takes none."""
        return _over(self.profile.tokens, self.lab.tokens, self.lab.runs)

    @property
    def in_money(self) -> float | None:
        """Lab runs that cost as much as the profile; None if a lab run costs nothing."""
        return _over(self.profile.money, self.lab.money, self.lab.runs)

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        profile, lab = self.profile, self.lab
        what = "as billed" if self.paid else "in credits at the price lists of the conditions"
        parts = [(self.in_tokens, "tokens"), (self.in_money, "money")]
        as_many = " and ".join(f"{value:.3g} lab runs in {name}" for value, name in parts if value is not None)
        per_run = f"{lab.tokens / lab.runs:,.0f} tokens and {show_dollars(round(lab.money / lab.runs))}"
        return (
            f"Games : lab. The profile ({profile.runs} simulations) took {profile.tokens:,} tokens and "
            f"{show_dollars(profile.money)}, a lab run {per_run} (mean of {lab.runs}; money {what})"
            + (f": the profile takes as much as {as_many}." if as_many else ".")
        )

    def json(self) -> dict[str, Any]:
        """The object as JSON data; money is in dollars."""
        from labmates.budgets.money import format_dollars

        both = {"profile": self.profile, "lab": self.lab}
        efforts = {name: {**asdict(one), "money": format_dollars(one.money)} for name, one in both.items()}
        return {**efforts, "paid": self.paid, "lab_runs_in_tokens": self.in_tokens, "lab_runs_in_money": self.in_money}


def _over(profile: int, lab: int, runs: int) -> float | None:
    return profile * runs / lab if lab else None


def profile_beside_lab(
    store: Store,
    model: str,
    games: Sequence[str],
    *,
    study: str | None = None,
    variant: Mapping[str, str] | None = None,
) -> Ratio | None:
    """Measure what a model's stored profile takes beside the lab runs of the store; None without any of either.

    Parameters
    ----------
    study
        Lab runs of this study alone.
    variant
        Other values of the condition of profiles than the usual ones.
    """
    played = [
        run
        for run in store.runs(kind="game")
        if run.models == [model] and run.condition["game"] in games and is_profile_run(run, variant)
    ]
    worked = [run for run in store.runs(kind="science", study=study) if is_lab_run(run)]
    if not played or not worked:
        return None
    bills = [[parse_dollars(run.bill) for run in runs if run.bill is not None] for runs in (played, worked)]
    # Baselines are free: their usage is shown at list prices.
    paid = all(len(known) == len(runs) and sum(known) for known, runs in zip(bills, (played, worked), strict=True))
    return Ratio(_effort(store, played, paid=paid), _effort(store, worked, paid=paid), paid)


def _effort(store: Store, runs: Iterable[RunRecord], *, paid: bool) -> Effort:
    records = list(runs)
    tokens = sum(run.usage.input_tokens + run.usage.output_tokens for run in records)
    if paid:
        money = sum(parse_dollars(run.bill or "0") for run in records)
    else:
        money = sum(store.costs([run.id for run in records]).values())
    return Effort(len(records), tokens, money)


def screen(
    lab: Lab,
    models: Sequence[str],
    *,
    outcomes: Sequence[str] = (),
    games: Sequence[str] = (),
    judges: Mapping[str, str] | None = None,
    benchmarks: bool = True,
    simulations: int = SIMULATIONS,
    seed: int = 0,
    form: Literal["robust", "correlated"] = "correlated",
) -> list[Screened]:
    """Predict lab performance of models from how they play the behavioural games.

    The prediction rests on the models of the store that have both a profile and scored lab runs. Simulations that the
    store lacks are played and kept.

    Parameters
    ----------
    models
        As ``provider:name``.
    outcomes
        ``"skill"``, ``"quality"``, ``"completeness"``, ``"accuracy"`` or ``"provenance"``; by default the first three.
    games
        Games to predict from; by default all of which the store has profiles.
    judges
        Judge by outcome; ``""`` for all outcomes. Needed where several scored.
    benchmarks
        Control for benchmark scores, size and thinking; models without them don't take part.
    form
        Form of the statistical model.
    simulations, seed
        As for ``profile``.

    Raises
    ------
    UsageError
        If the store has too little to predict from, or a profile can't be used.
    """
    check_outcomes(outcomes)
    material = read_material(lab.runs, variant=_variant(lab))
    screening = Screening(material, Choice(judges or {}, tuple(games), benchmarks), form, outcomes)
    played = profile(lab, models, games=screening.games(), simulations=simulations, seed=seed)
    return [screening.of(each.model, levels_of_profile(each)) for each in played]


class ScreenParams(MaterialParams):
    """The parameters of screening, beside those of the games' condition."""

    models: tuple[str, ...] = Field(description="Models.", json_schema_extra={"argument": True})
    simulations: int = Field(SIMULATIONS, ge=2, le=10_000, description="Simulations per game.")
    seed: int = Field(0, ge=0, description="Seed of the first simulation.")
    stored: bool = Field(False, description="Use only the stored profile; play nothing.")
    spec: Literal["robust", "correlated"] = Field(
        "correlated",
        description="Form of the model. The paper's form is not offered: its intervals for new models are too narrow.",
    )
    covariates: tuple[str, ...] = Field((), description="None.", json_schema_extra={"recorded": True})


def screen_verb(lab: Lab, params: ScreenParams) -> Iterator[Result]:
    """Predict models' results in the lab from their play in the behavioural games.

    The prediction is fitted to the models in the store (or in two CSV files) with both a profile and scored lab runs.
    MODEL itself is excluded from the fit. Its profile comes from the store or the file; missing simulations are played
    and stored, as in labmates profile. The output first states whether games predict better than the mean of the fitted
    models. If they do, the prediction from games comes first, otherwise the mean; both have 95 % intervals. The output
    also shows how far MODEL lies outside the range of the fitted models.
    """
    if params.games is None and not params.stored:
        for reference in params.models:
            parse_model(lab.catalog.name_of(reference))
    material = params.material(lab.runs, _variant(lab))
    screening = Screening(material, params.choice(), params.spec, params.outcomes, seed=params.draws_seed)
    screened: list[Screened] = []
    several = len(set(params.models)) > 1
    for reference in dict.fromkeys(params.models):
        model = lab.catalog.name_of(reference)
        taken = _taken(lab, params, material, screening.games(), model, reference)
        if taken.levels:
            screened.append(screening.of(model, taken.levels))
            yield _result(screened[-1], taken, several=several)
    if several:
        yield Result([screening_table(screened)], objects=())


def _variant(lab: Lab) -> dict[str, str]:
    """The user's changes to the usual condition of profiles."""
    return {name: str(lab.given[name]) for name in USUAL if name in lab.given}


@dataclass(frozen=True)
class _Taken:
    """A model's profile and its cost.

    Attributes
    ----------
    cost, tokens
        In dollars as text, and of all simulations; None if nothing was played now.
    ratio
        The profile beside lab runs; None where either is from a file.
    """

    levels: Sequence[Level]
    cost: str | None = None
    tokens: int | None = None
    ratio: Ratio | None = None


def _taken(
    lab: Lab, params: ScreenParams, material: Material, games: Sequence[str], model: str, reference: str
) -> _Taken:
    """The profile of a model: of the file, of the store, or played now by its reference.

    Raises
    ------
    UsageError
        If nothing is to be played, and there is no profile.
    """

    def ratio(levels: Sequence[Level]) -> Ratio | None:
        if params.games or params.lab:
            return None
        names = [level.game for level in levels]
        return profile_beside_lab(lab.store, model, names, study=lab.runs.study, variant=_variant(lab))

    levels = [level for level in material.levels if level.model == model]
    if levels and (params.stored or params.games):
        return _Taken(levels, ratio=ratio(levels))
    if params.stored:
        raise UsageError(f"there is no profile of {model} ({material.told}); omit --stored to take it now")
    played = profile(lab, [reference], games=games, simulations=params.simulations, seed=params.seed)
    levels = [level for each in played for level in levels_of_profile(each)]
    taken = [game for each in played for game in each.games]
    tokens = sum(game.simulations * (game.input_tokens + game.output_tokens) for game in taken)
    return _Taken(levels, format_dollars(sum(game.cost for game in taken)), round(tokens), ratio(levels))


def _result(screened: Screened, taken: _Taken, *, several: bool) -> Result:
    simulations = sum(level.simulations for level in taken.levels)
    paid = "" if taken.cost is None else f", {taken.tokens:,} tokens, ${taken.cost}"
    basis = [f"Fitted on {screened.source}, form {screened.form}. Profile: {simulations} simulations{paid}."]
    basis += [] if taken.ratio is None else [taken.ratio.sentence]
    basis += ["It is part of the study, and was left out of it for this."] if screened.observed else []
    basis += _standings(screened)
    basis += dict.fromkeys(note for study in screened.studies.values() for note in study.notes)
    of_studies = (left for study in screened.studies.values() for left in study.left_out)
    table = screening_table([screened])
    profiled = {
        "levels": [asdict(level) for level in taken.levels],
        "cost": taken.cost,
        "tokens": taken.tokens,
        "games_to_lab": None if taken.ratio is None else taken.ratio.json(),
    }
    return Result(
        [] if several else [table],
        verdict=[f"{name.capitalize()}. {use.sentence} {_headline(use)}" for name, use in screened.useful.items()],
        objects=[{**screened.json(), "profile": profiled}],
        details=[table] if several else [],
        remarks={
            "Basis": basis,
            "Left out": [left.sentence for left in dict.fromkeys([*screened.left_out, *of_studies])],
        },
        warnings=screened.doubts,
    )


def _headline(use: Usefulness) -> str:
    if use.answer == "yes":
        return "The prediction is that with games."
    return "So the prediction is the models' mean; that with games is shown second."


def _standings(screened: Screened) -> list[str]:
    """The distance of the model from the study; outcomes with the same answer share a sentence."""
    outcomes: dict[str, list[str]] = {}
    for outcome, standing in screened.standings.items():
        where = standing.where.replace("within", "within the range")
        why = f": {'; '.join(standing.reasons)}" if standing.reasons else ""
        trust = " The prediction is an extrapolation: do not rely on it." if where == "far outside" else ""
        z = ", ".join(f"{name} {value:+.1f}" for name, value in standing.z.items())
        distance = standing.distance
        together = "" if distance is None else f" Mahalanobis distance {distance:.1f} (p = {standing.p:.2g})."
        reach = f"leverage {standing.leverage:.2f} (fitted models: at most {standing.largest_leverage:.2f})"
        text = f"lies {where} of the models that it was fitted on{why}.{trust} z: {z}.{together} {reach}."
        outcomes.setdefault(text, []).append(outcome)
    if len(outcomes) == 1:
        return [f"It {text}" for text in outcomes]
    return [f"For {', '.join(names)} it {text}" for text, names in outcomes.items()]


SCREEN = Command(
    screen_verb,
    ScreenParams,
    function=screen,
    example="labmates screen openai:qwen3-8b --base-url http://127.0.0.1:8000/v1",
    kind=GameCondition.kind,
    fixed=FIXED,
    has_store=True,
    has_tables=True,
    choices=("study",),
    objects="per model",
)
