"""Screening of models: predictions of their lab performance from profiles that are read or played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from labmates.budgets.money import format_dollars
from labmates.errors import UsageError
from labmates.models.names import parse_model
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.command import Command
from labmates_profiles.prediction.analysis import MaterialParams
from labmates_profiles.profiling import FIXED, SIMULATIONS, profile

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab
    from labmates_profiles.prediction.material import Material
    from labmates_profiles.prediction.screened import Screened
    from labmates_profiles.prediction.sources import Level
    from labmates_profiles.prediction.usefulness import Usefulness
    from labmates_profiles.profiles import GameProfile


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

    The prediction is fitted to the models in the store with both a profile and scored lab runs. Missing simulations of
    the given models are played and stored.

    Parameters
    ----------
    models
        As ``provider:name``.
    outcomes
        ``"skill"``, ``"quality"``, ``"completeness"``, ``"accuracy"``, ``"provenance"`` or ``"heuristic_quality"``; by
        default the first three.
    games
        Games to predict from; by default all games with profiles in the store.
    judges
        Judge by outcome; ``""`` for all outcomes. Required if several judges scored.
    benchmarks
        Control for benchmark scores, size and thinking; models without scores are then excluded.
    form
        Form of the statistical model.
    simulations, seed
        As for ``profile``.

    Raises
    ------
    UsageError
        If the store has too few data for a prediction, or a profile can't be used.
    """
    from labmates_profiles.prediction.design_matrix import Choice
    from labmates_profiles.prediction.material import read_material
    from labmates_profiles.prediction.screened import Screening, levels_of_profile
    from labmates_profiles.prediction.sources import check_outcomes

    check_outcomes(outcomes)
    material = read_material(lab.runs, variant=_variant(lab))
    screening = Screening(material, Choice(judges or {}, tuple(games), benchmarks), form, outcomes)
    played = profile(lab, models, games=screening.games(), simulations=simulations, seed=seed)
    return [screening.of(each.model, levels_of_profile(each)) for each in played]


class ScreenParams(MaterialParams):
    """The parameters of screening, in addition to the condition of the games."""

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
    from labmates_profiles.prediction.screened import Screening, screening_table

    if params.games is None and not params.stored:
        for reference in params.models:
            parse_model(lab.catalog.name_of(reference))
    material = params.material(lab.runs, _variant(lab))
    screening = Screening(material, params.choice(), params.spec, params.outcomes, seed=params.draws_seed)
    screened: list[Screened] = []
    several = len(set(params.models)) > 1
    for reference in dict.fromkeys(params.models):
        model = lab.catalog.name_of(reference)
        levels, played = _profile_of(lab, params, material, screening.games(), model, reference)
        if levels:
            screened.append(screening.of(model, levels))
            yield _result(screened[-1], levels, played, several=several)
    if several:
        yield Result([screening_table(screened)], objects=())


def _variant(lab: Lab) -> dict[str, str]:
    """The user's changes to the standard condition of profiles."""
    from labmates_profiles.prediction.sources import USUAL

    return {name: str(lab.given[name]) for name in USUAL if name in lab.given}


def _profile_of(
    lab: Lab, params: ScreenParams, material: Material, games: Sequence[str], model: str, reference: str
) -> tuple[Sequence[Level], Sequence[GameProfile]]:
    """The profile of a model from the file or store, or played now; UsageError if it is missing with `stored`."""
    from labmates_profiles.prediction.screened import levels_of_profile

    levels = [level for level in material.levels if level.model == model]
    if levels and (params.stored or params.games):
        return levels, ()
    if params.stored:
        raise UsageError(f"there is no profile of {model} ({material.told}); omit --stored to take it now")
    played = profile(lab, [reference], games=games, simulations=params.simulations, seed=params.seed)
    return [level for each in played for level in levels_of_profile(each)], [
        game for each in played for game in each.games
    ]


def _result(screened: Screened, levels: Sequence[Level], played: Sequence[GameProfile], *, several: bool) -> Result:
    """The prediction for a model, with the games that were played now and paid for."""
    from labmates_profiles.prediction.screened import screening_table

    cost = format_dollars(sum(game.cost for game in played)) if played else None
    tokens = round(sum(game.simulations * (game.input_tokens + game.output_tokens) for game in played))
    simulations = sum(level.simulations for level in levels)
    paid = f", {tokens:,} tokens, ${cost}" if played else ""
    outlooks = screened.outcomes
    basis = [f"Fitted on {screened.source}, form {screened.form}. Profile: {simulations} simulations{paid}."]
    if any(outlook.observed is not None for outlook in outlooks.values()):
        basis.append("The model is part of the study and was excluded from the fit.")
    basis += _standings(screened)
    basis += dict.fromkeys(note for outlook in outlooks.values() for note in outlook.study.notes)
    of_studies = (left for outlook in outlooks.values() for left in outlook.study.left_out)
    table = screening_table([screened])
    profile_data = {"levels": [asdict(level) for level in levels], "cost": cost, "tokens": tokens if played else None}
    return Result(
        [] if several else [table],
        verdict=[
            f"{name.capitalize()}. {outlook.useful.sentence} {_headline(outlook.useful)}"
            for name, outlook in outlooks.items()
        ],
        objects=[{**screened.json(), "profile": profile_data}],
        details=[table] if several else [],
        remarks={
            "Basis": basis,
            "Left out": [left.sentence for left in dict.fromkeys([*screened.left_out, *of_studies])],
        },
        warnings=screened.doubts,
    )


def _headline(use: Usefulness) -> str:
    if use.answer == "yes":
        return "The headline is the prediction with games."
    return "So the headline is the models' mean; the prediction with games comes second."


def _standings(screened: Screened) -> list[str]:
    """The model's distance from the study; outcomes with the same answer share a sentence."""
    outcomes: dict[str, list[str]] = {}
    for outcome, outlook in screened.outcomes.items():
        standing = outlook.standing
        where = standing.where.replace("within", "within the range")
        why = f": {'; '.join(standing.reasons)}" if standing.reasons else ""
        trust = " The prediction is an extrapolation: do not rely on it." if where == "far outside" else ""
        z = ", ".join(f"{name} {value:+.1f}" for name, value in standing.z.items())
        distance = standing.distance
        together = "" if distance is None else f" Mahalanobis distance {distance:.1f} (p = {standing.p:.2g})."
        reach = f"leverage {standing.leverage:.2f} (fitted models: at most {standing.largest_leverage:.2f})"
        text = f"lies {where} of the fitted models{why}.{trust} z: {z}.{together} {reach}."
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
