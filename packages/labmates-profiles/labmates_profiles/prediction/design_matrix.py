"""The data of one outcome from profiles and lab runs: selection of models, scales, and exclusions with reasons."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np

from labmates.errors import UsageError
from labmates.models.roster import KnownModel
from labmates.stats.validity import MOST_FAILED
from labmates_profiles.arrays import Array
from labmates_profiles.bayes.covariates import Covariates, covariate_columns
from labmates_profiles.prediction import Rule
from labmates_profiles.prediction.data import (
    PredictionData,
    Runs,
    Scale,
    condition_columns,
    standardised,
)
from labmates_profiles.prediction.sources import OUTCOMES, LeftOut, Level, Observation
from labmates_profiles.prediction.teams import Seats, columns_of, controls_of_team, levels_of_teams

GAME_ORDER: Final = (
    "weakest-link",
    "collective-risk",
    "o-ring",
    "common-pool",
    "common-pool-sanctions",
    "public-goods",
)
"""The games in the order of the paper's tables."""
CONTROLS: Final = ("IFEval", "MMLU-Pro", "log(size)", "thinking")
LEAST_FREEDOM: Final = 10
"""With fewer models beyond the number of coefficients per model, a note warns of the small sample."""
LEAST_MODELS: Final = 4
MEAN_JUDGE: Final = "rubric"
RULES_ON_WORDS: Final = "heuristic"
"""Its accuracy matches words that every paper on a task contains, so it is used only on request."""
VERIFIED: Final = "verified"
_ACCURACY: Final = "accuracy"
_DATA_SET: Final = ("task", "difficulty")
"""The condition keys that, with the seed, determine a data set."""
Unit = Literal["condition", "run"]
Levels = dict[str, dict[str, Level]]
"""By model and game."""


@dataclass(frozen=True)
class Choice:
    """The choice of material to analyse.

    Attributes
    ----------
    judges
        The judge of each outcome; the empty name stands for all other outcomes.
    games
        By default all.
    controls
        Whether to control for benchmark scores, size and thinking.
    unit
        Unit of observation: the mean of a model's runs in a condition (as in the paper), or a run. Default: condition,
        or run if no model has two conditions.
    covariates
        The user's own controls of models; see `labmates_profiles.bayes.covariates`.
    team
        Whose disposition counts in teams of several models; None leaves these out.
    """

    judges: Mapping[str, str] = field(default_factory=dict)
    games: tuple[str, ...] = ()
    controls: bool = True
    unit: Unit | None = None
    covariates: Covariates = field(default_factory=dict)
    team: Rule | None = None


class UninformativeError(UsageError):
    """Lab runs carry no information on an outcome: it is unscored, or constant within each model."""


@dataclass(frozen=True)
class Assembled:
    """The data of one outcome.

    Attributes
    ----------
    runs
        Scored runs behind the observations.
    level_scale, control_scale
        The standardisation of metrics and controls.
    notes
        Caveats about the data.
    """

    outcome: str
    judge: str
    unit: Unit
    runs: int
    data: PredictionData
    level_scale: Scale
    control_scale: Scale
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """What was analysed, and what was left out, as JSON data."""
        data = self.data
        return {
            "judge": self.judge,
            "unit": self.unit,
            "observations": len(data.outcome),
            "runs": self.runs,
            **{name: list(getattr(data, name)) for name in ("models", "games", "controls", "columns")},
            "left_out": [asdict(left) for left in self.left_out],
            "notes": list(self.notes),
        }


def assemble(
    outcome: str,
    levels: Sequence[Level],
    observations: Sequence[Observation],
    traits: Mapping[str, KnownModel],
    choice: Choice | None = None,
) -> Assembled:
    """Profiles and lab runs joined for one outcome.

    Parameters
    ----------
    traits
        Benchmark scores, size and thinking, by the model's name.

    Raises
    ------
    UninformativeError
        If there are no scores, or scores do not vary within any model.
    UsageError
        If the choice of judge is ambiguous, or too few models remain.
    """
    choice = choice or Choice()
    notes: list[str] = []
    judge = choose_judge(outcome, observations, choice.judges, notes)
    scored, left = _scored(outcome, judge, observations, notes)
    games, by_model, teams = _included(levels, scored, traits, choice, left)
    distinct = len({model for seats in teams.values() for model in seats})
    _enough_models(distinct, left)
    measured, errors = (
        np.array([[getattr(by_model[model][game], name) or 0.0 for game in games] for model in teams])
        for name in ("value", "error")
    )
    known = np.array([_controls(seats, traits, choice) for seats in teams.values()])
    alike = "all of these models play it alike, so it can predict nothing"
    varying, games = _varying(measured, games, alike, notes)
    controls = CONTROLS if choice.controls else ()
    informative, told = _varying(known, controls, "it is the same for all of these models", notes)
    values = np.column_stack([known[:, informative], measured[:, varying]])
    more, own = covariate_columns(choice.covariates, list(teams), values, [*told, *games])
    if several := sum(len(set(seats)) > 1 for seats in teams.values()):
        notes.append(
            f"{several} teams of several models share {distinct} models. The permutation test and R² allow for this; "
            "intervals of effects are too narrow where models differ beyond the games."
        )
    _enough_freedom(distinct, len(games), len(told) + len(more), left, notes, choice.controls)
    scaled, level_scale = standardised(measured[:, varying])
    benchmarks, control_scale = standardised(np.column_stack([known[:, informative], own]))
    place = {model: at for at, model in enumerate(teams)}
    included = [(run, value) for run, value in scored if run.model in place]
    unit, rows = _rows(included, choice.unit, notes)
    columns, matrix = condition_columns([row[0][0].condition for row in rows], notes)
    data = PredictionData(
        models=tuple(teams),
        games=tuple(games),
        controls=(*told, *more),
        columns=tuple(columns),
        levels=scaled,
        errors=errors[:, varying] / level_scale.spread,
        benchmarks=benchmarks,
        model_of=np.array([place[row[0][0].model] for row in rows]),
        conditions=matrix,
        outcome=np.array([sum(value for _, value in row) / len(row) for row in rows]),
        factors=tuple(columns.values()),
        runs=_runs(rows, notes),
        families=_families(list(teams.values()), traits),
    )
    _varies(outcome, data)
    return Assembled(outcome, judge, unit, len(included), data, level_scale, control_scale, tuple(left), tuple(notes))


def _included(
    levels: Sequence[Level],
    scored: Sequence[Scored],
    traits: Mapping[str, KnownModel],
    choice: Choice,
    left: list[LeftOut],
) -> tuple[list[str], Levels, dict[str, Seats]]:
    """The games, the levels of models or teams, and the seats of those with all that is needed, in order of name."""
    games = _games(levels, choice.games)
    by_model: Levels = defaultdict(dict)
    for level in levels:
        by_model[level.model][level.game] = level
    teams: dict[str, Seats] = {model: (model,) for model in by_model}
    mixed = [run for run, _ in scored if run.seats]
    runs = Counter(run.model for run, _ in scored)
    if choice.team is not None:
        teams |= {run.model: run.seats for run in mixed}
        by_model = levels_of_teams(choice.team, teams, by_model)
        games = columns_of(choice.team, games)
    elif mixed:
        runs -= Counter(run.model for run in mixed)
        reason = "teams of several models (--team says whose disposition counts in them)"
        left.append(LeftOut("runs", len(mixed), reason))
    # By name: permutations of models must not depend on the order in which runs ended.
    why = {
        model: _why_not(by_model.get(model, {}), games, runs[model], teams.get(model, (model,)), traits, choice)
        for model in sorted({*by_model, *runs})
    }
    left += [LeftOut(model, 1, reason) for model, reason in why.items() if reason]
    return games, by_model, {model: teams[model] for model, reason in why.items() if not reason}


def _families(teams: Sequence[Seats], traits: Mapping[str, KnownModel]) -> Array:
    """The share of each family in each team; a model of unknown family is its own."""
    of_seats = [[(model in traits and traits[model].family) or model for model in seats] for seats in teams]
    names = list(dict.fromkeys(name for families in of_seats for name in families))
    return np.array([[families.count(name) / len(families) for name in names] for families in of_seats])


def _controls(seats: Seats, traits: Mapping[str, KnownModel], choice: Choice) -> Array:
    """The controls of a team, or of a model."""
    if not choice.controls:
        return np.empty(0)
    values = np.array([list(control_values(traits[model]).values()) for model in seats])
    return controls_of_team(choice.team or "lead", values)


def control_values(known: KnownModel) -> dict[str, float]:
    """The controls of a model, `CONTROLS`; NaN for a missing score."""
    scores = [math.nan if score is None else float(score) for score in (known.ifeval, known.mmlu_pro)]
    return dict(zip(CONTROLS, [*scores, math.log10(known.size), float(known.thinking)], strict=True))


def choose_judge(outcome: str, observations: Iterable[Observation], asked: Mapping[str, str], notes: list[str]) -> str:
    """The single judge whose scores of an outcome count.

    Default: ``verified`` for accuracy; otherwise the only judge of this outcome, or the only judge of all outcomes.
    Accuracy by rules on words is used only on request.

    Raises
    ------
    UsageError
        If no judge scored the outcome, the requested judge did not, or several did.
    """
    counts: Counter[str] = Counter()
    outcomes: dict[str, set[str]] = defaultdict(set)
    for observation in observations:
        for (judge, metric), value in observation.scores.items():
            if value is not None:
                outcomes[judge].add(metric)
                counts[judge] += metric == outcome
    able = {judge: count for judge, count in counts.items() if count}
    scorers = ", ".join(f"{judge} ({count} runs)" for judge, count in sorted(able.items()))
    if not able:
        raise UninformativeError(f"no lab run has a score of {outcome}; add some with labmates judge")
    wanted = asked.get(outcome, asked.get("", ""))
    if wanted:
        if wanted not in able:
            raise UsageError(f"the judge '{wanted}' has not scored {outcome}; these have: {scorers}")
        return wanted
    judges = [judge for judge in able if judge != MEAN_JUDGE]
    if outcome == _ACCURACY:
        judges = [judge for judge in judges if judge != RULES_ON_WORDS]
        if not judges:
            raise UninformativeError(
                f"accuracy was scored by {RULES_ON_WORDS} alone, whose rules match words of any paper on the task; "
                f"judge the runs with {VERIFIED}, or request it by name: --judge {outcome}={RULES_ON_WORDS}"
            )
        judges = [VERIFIED] if VERIFIED in judges else judges
    if len(judges) > 1:
        judges = [judge for judge in judges if outcomes[judge].issuperset(OUTCOMES)]
    if len(judges) != 1:
        raise UsageError(
            f"several judges scored {outcome}: {scorers}. Scores of different judges are never mixed: choose one with "
            f"--judge NAME, or for this outcome only with --judge {outcome}=NAME"
        )
    if len(able) > 1:
        notes.append(f"{outcome} is by {judges[0]}; scored by: {scorers}. To choose another: --judge {outcome}=NAME.")
    return judges[0]


Scored = tuple[Observation, float]


def _scored(
    outcome: str, judge: str, observations: Sequence[Observation], notes: list[str]
) -> tuple[list[Scored], list[LeftOut]]:
    scored, unscored, versions = [], Counter[str](), Counter[str]()
    for observation in observations:
        value = observation.scores.get((judge, outcome))
        if value is None:
            unscored[observation.model] += 1
        else:
            scored.append((observation, value))
            versions[observation.versions.get(judge, "")] += 1
    if len(versions) > 1:
        by_version = ", ".join(f"{version or '?'} ({count} runs)" for version, count in sorted(versions.items()))
        notes.append(f"{outcome} was scored by several versions of {judge}: {by_version}.")
    if judge == VERIFIED and (unread := [value for run, value in scored if not run.readable]):
        read = [value for run, value in scored if run.readable]
        protocol = f"; over the other {len(read)} (per protocol) the mean is {np.mean(read):.3f}" if read else ""
        notes.append(
            f"{len(unread)} of {len(scored)} runs have no readable findings and count with their score (intention to "
            f"treat): the mean {outcome} is {np.mean([value for _, value in scored]):.3f}{protocol}."
        )
    left = [
        LeftOut("runs", count, f"{outcome} unscored by {judge}: runs of {model}") for model, count in unscored.items()
    ]
    return scored, left


def _games(levels: Iterable[Level], asked: Sequence[str]) -> list[str]:
    present = dict.fromkeys(level.game for level in levels)
    if not present:
        raise UsageError("there are no profiles: no simulation of a game by one model; take some with labmates profile")
    if missing := [game for game in asked if game not in present]:
        raise UsageError(f"no model has simulations of {', '.join(missing)}; there are: {', '.join(present)}")
    known = [game for game in GAME_ORDER if game in present]
    return [game for game in dict.fromkeys([*known, *present]) if not asked or game in asked]


def _why_not(
    levels: Mapping[str, Level],
    games: Sequence[str],
    runs: int,
    seats: Seats,
    traits: Mapping[str, KnownModel],
    choice: Choice,
) -> str:
    """The reason to leave out a model, or a team; empty for none."""
    if not levels:
        return f"it has {runs} scored lab runs, but no profile"
    if not runs:
        return "it has a profile, but no scored lab runs"
    return lacking(levels, games, [traits.get(seat) for seat in seats], CONTROLS if choice.controls else ())


def lacking(
    levels: Mapping[str, Level], games: Sequence[str], known: Sequence[KnownModel | None], controls: Sequence[str]
) -> str:
    """What the profile of a model, or what is known of the models of a team, lacks; empty for nothing."""
    if missing := [game for game in games if game not in levels]:
        return f"no simulations of {', '.join(missing)}"
    if single := [game for game in games if levels[game].error is None]:
        return f"a single simulation of {', '.join(single)}, so its error is unknown"
    if failed := [f"{levels[game].failed:.0%} in {game}" for game in games if levels[game].failed > MOST_FAILED]:
        return f"too many of its decisions failed: {', '.join(failed)} (at most {MOST_FAILED:.0%} may)"
    if controls and None in known:
        return "its size and benchmark scores are unknown (add them with --roster, or use --no-benchmarks)"
    values = [control_values(model) for model in known if model]
    unknown = [name for name in controls if any(math.isnan(value[name]) for value in values)]
    return f"missing benchmark scores: {', '.join(unknown)}" if unknown else ""


def _varying(values: Array, names: Sequence[str], why: str, notes: list[str]) -> tuple[Array, list[str]]:
    """Where columns vary, and the names of these; a note tells of the others."""
    varies = np.ptp(values, axis=0) > 1e-9 * np.maximum(1.0, np.abs(values).max(axis=0))
    told = dict(zip(names, varies, strict=True))
    notes += [f"{name} is left out of the predictors: {why}." for name, is_told in told.items() if not is_told]
    return varies, [name for name, is_told in told.items() if is_told]


def _enough_models(models: int, left: Sequence[LeftOut]) -> None:
    if models < LEAST_MODELS:
        subject = "1 model has" if models == 1 else f"{models} models have"
        raise UsageError(
            f"{subject} both a profile and scored lab runs; at least {LEAST_MODELS} are needed{_reasons(left)}"
        )


def _enough_freedom(
    models: int, games: int, controls: int, left: Sequence[LeftOut], notes: list[str], benchmarks: bool
) -> None:
    coefficients = 1 + games + controls
    freedom = models - coefficients
    advice = "fewer games (--game)" + (" or no benchmark scores (--no-benchmarks)" if benchmarks and controls else "")
    if not games:
        raise UsageError("no game distinguishes these models, so none can predict anything")
    if freedom < 1:
        raise UsageError(
            f"{models} models are too few for {coefficients} coefficients per model (intercept, {games} games, "
            f"{controls} controls): take {advice}, or more models{_reasons(left)}"
        )
    if freedom < LEAST_FREEDOM:
        notes.append(
            f"Only {models} models for {coefficients} coefficients per model: {freedom} "
            f"degree{'s' if freedom > 1 else ''} of freedom. Priors "
            f"weigh as much as data here; take more models, or {advice}."
        )


def _reasons(left: Sequence[LeftOut]) -> str:
    told = [f"\n  {item.what}: {item.reason}" for item in left if item.what not in ("runs", "simulations")]
    return f". Left out:{''.join(told)}" if told else ""


def _rows(scored: Sequence[Scored], unit: Unit | None, notes: list[str]) -> tuple[Unit, list[list[Scored]]]:
    """The unit of observations, and the runs of each."""
    cells: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for run, value in scored:
        condition = json.dumps(dict(run.condition), sort_keys=True, default=str)
        cells[run.model, condition].append((run, value))
    single = len(cells) == len({run.model for run, _ in scored})
    if unit == "condition" and single:
        raise UsageError("no model has lab runs of two conditions, so the noise can't be estimated: use --unit run")
    chosen: Unit = unit or ("run" if single else "condition")
    if single:
        notes.append("Each model has one condition, so its runs are the observations.")
    if chosen == "run":
        return chosen, [[scored_run] for scored_run in scored]
    return chosen, list(cells.values())


def _runs(rows: Sequence[Sequence[Scored]], notes: list[str]) -> Runs | None:
    """The runs behind observations with the data sets that several models share; None if there are none."""
    runs = [(at, run, value) for at, row in enumerate(rows) for run, value in row]
    if any(run.seed is None for _, run, _ in runs):
        notes.append(
            "The data sets of the runs are unknown (add a column seed), so effects of tasks hold for these data "
            "sets only."
        )
        return None
    keys = ["/".join(str(run.condition.get(name, "")) for name in _DATA_SET) + f"/{run.seed}" for _, run, _ in runs]
    models: dict[str, set[str]] = defaultdict(set)
    for key, (_, run, _) in zip(keys, runs, strict=True):
        models[key].add(run.model)
    shared = {key: at for at, key in enumerate(key for key, users in models.items() if len(users) > 1)}
    if not shared:
        return None
    of_task = Counter(key.rpartition("/")[0] for key in shared)
    if len(of_task) > 1 and set(of_task.values()) == {1}:
        notes.append(
            "All runs of a task worked on one data set, so task and data set can't be separated: intervals of "
            "tasks are wide. More seeds (replicates) help."
        )
    return Runs(
        tuple(shared),
        np.array([at for at, _, _ in runs]),
        np.array([shared.get(key, len(shared)) for key in keys]),
        np.array([value for _, _, value in runs]),
    )


def _varies(outcome: str, data: PredictionData) -> None:
    spread = float(np.sqrt(np.mean([data.outcome[data.model_of == at].var() for at in range(len(data.models))])))
    if spread < 1e-9:
        raise UninformativeError(
            f"{outcome} does not vary within any model: effects can't be measured without noise. More runs per model "
            "with other seeds or conditions are needed"
        )
    _, left, rank = data.within
    if rank < len(data.outcome) - len(data.models) and left < 1e-18 * len(data.outcome):
        raise UninformativeError(
            f"the conditions determine {outcome} exactly within each model: effects can't be measured "
            "without noise. More runs per model with other seeds are needed"
        )
