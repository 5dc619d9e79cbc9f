"""From profiles and lab runs to the data of one outcome: who is in, on which scales, and what was left out and why."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from labmates.errors import UsageError
from labmates.models.roster import KnownModel
from labmates.stats.arrays import Array
from labmates.stats.bayes.covariates import Covariates, covariate_columns
from labmates.stats.validity import MOST_FAILED
from labmates.workflows.games.prediction.data import (
    PredictionData,
    Runs,
    Scale,
    condition_columns,
    standardised,
    summarise,
)
from labmates.workflows.games.prediction.sources import OUTCOMES, SKILL, LeftOut, Level, Observation

GAME_ORDER: Final = (
    "weakest-link",
    "collective-risk",
    "o-ring",
    "common-pool",
    "common-pool-sanctions",
    "public-goods",
)
"""The games as the paper's tables have them."""
CONTROLS: Final = ("IFEval", "MMLU-Pro", "log(size)", "thinking")
LEAST_FREEDOM: Final = 10
"""With fewer models beyond the number of coefficients per model, it is said that there are few."""
LEAST_MODELS: Final = 4
MEAN_JUDGE: Final = "rubric"
RULES_ON_WORDS: Final = "heuristic"
"""Its accuracy looks for words that every paper on a task has, so nobody gets it without asking for it."""
VERIFIED: Final = "verified"
_ACCURACY: Final = "accuracy"
_DATA_SET: Final = ("task", "difficulty")
"""What fixes a data set beside the seed."""
Unit = Literal["condition", "run"]


@dataclass(frozen=True)
class Choice:
    """The choice of material to analyse.

    Attributes
    ----------
    judges
        Whose scores, by outcome; the empty name stands for all outcomes that are not named.
    games
        By default all.
    controls
        Whether benchmark scores, size and thinking are controlled for.
    unit
        What an observation is: a model and condition, with its runs averaged (as in the paper), or a run. By default
        conditions, or runs where no model has two conditions.
    covariates
        The user's own controls of models; see `labmates.stats.bayes.covariates`.
    """

    judges: Mapping[str, str] = field(default_factory=dict)
    games: tuple[str, ...] = ()
    controls: bool = True
    unit: Unit | None = None
    covariates: Covariates = field(default_factory=dict)


class UninformativeError(UsageError):
    """Lab runs carry no information on an outcome: it is unscored, or constant within each model."""


@dataclass(frozen=True)
class Assembled:
    """The data of one outcome.

    Attributes
    ----------
    judge
        Whose scores they are.
    unit
        What an observation is.
    runs
        Scored runs behind the observations.
    level_scale, control_scale
        How metrics and controls were put on the scale of standard deviations between models.
    left_out
        All that has no part in it.
    notes
        What should be known of the data.
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


def assemble(
    outcome: str,
    levels: Sequence[Level],
    observations: Sequence[Observation],
    traits: Mapping[str, KnownModel],
    choice: Choice | None = None,
) -> Assembled:
    """Bring profiles and lab runs together for one outcome.

    Parameters
    ----------
    traits
        Benchmark scores, size and thinking, by the model's name.

    Raises
    ------
    UninformativeError
        If there is no score, or scores do not vary within any model.
    UsageError
        If it is not clear whose scores are meant, or too few models are left.
    """
    choice = choice or Choice()
    notes: list[str] = []
    judge = choose_judge(outcome, observations, choice.judges, notes)
    scored, left = _scored(outcome, judge, observations, notes)
    games = _games(levels, choice.games)
    by_model: dict[str, dict[str, Level]] = defaultdict(dict)
    for level in levels:
        by_model[level.model][level.game] = level
    kept, out = _models(by_model, games, scored, traits, choice.controls)
    left += out
    measured = np.array([[by_model[model][game].value for game in games] for model in kept])
    errors = np.array([[by_model[model][game].error or 0.0 for game in games] for model in kept])
    known = np.array([control_values(traits[model]) for model in kept]) if choice.controls else np.empty((len(kept), 0))
    varying = _varying(measured, games, kept, "all of these models play it alike, so it can predict nothing", notes)
    controls = CONTROLS if choice.controls else ()
    telling = _varying(known, controls, kept, "it is the same for all of these models", notes)
    more, own = _covariates(choice.covariates, kept, (controls, telling, known), (games, varying, measured))
    _enough(len(kept), len(varying), len(telling) + len(more), left, notes, choice.controls)
    scaled, level_scale = standardised(measured[:, varying])
    benchmarks, control_scale = standardised(np.column_stack([known[:, telling], own]))
    mine = [one for one in scored if one[0].model in set(kept)]
    unit, rows = _rows(mine, choice.unit, notes)
    columns, matrix = condition_columns([mine[0][0].condition for mine in rows], notes)
    place = {model: at for at, model in enumerate(kept)}
    data = PredictionData(
        models=tuple(kept),
        games=tuple(games[at] for at in varying),
        controls=(*(controls[at] for at in telling), *more),
        columns=tuple(columns),
        levels=scaled,
        errors=errors[:, varying] / level_scale.spread,
        benchmarks=benchmarks,
        model_of=np.array([place[mine[0][0].model] for mine in rows]),
        conditions=matrix,
        outcome=np.array([sum(value for _, value in mine) / len(mine) for mine in rows]),
        factors=tuple(columns.values()),
        runs=_runs(rows, notes),
    )
    _varies(outcome, data)
    return Assembled(outcome, judge, unit, len(mine), data, level_scale, control_scale, tuple(left), tuple(notes))


def assemble_all(
    wanted: Sequence[str], assembled: Callable[[str], Assembled], default: Sequence[str] = OUTCOMES
) -> tuple[list[Assembled], list[LeftOut]]:
    """The data of the outcomes that are wanted, or of all that lab runs tell of, and why of the others not.

    Where the `default` has skill and no run has it, accuracy takes its place, and that is told.

    Raises
    ------
    UsageError
        If the data of an outcome that is wanted are not enough, or those of none are.
    """
    if wanted:
        return [assembled(outcome) for outcome in dict.fromkeys(wanted)], []
    assembled_all: list[Assembled] = []
    left: list[LeftOut] = []
    outcomes = list(default)
    for outcome in outcomes:
        try:
            assembled_all.append(assembled(outcome))
        except UninformativeError as error:
            left.append(LeftOut(outcome, 1, str(error).removeprefix(f"{outcome} ")))
            if outcome == SKILL:
                outcomes.append(_ACCURACY)
    if not assembled_all:
        raise UsageError("\n".join(f"{one.what}: {one.reason}" for one in left))
    return assembled_all, left


def control_values(known: KnownModel) -> list[float]:
    """The controls of a model in the order of `CONTROLS`; NaN where a score is missing."""
    scores = [math.nan if score is None else float(score) for score in (known.ifeval, known.mmlu_pro)]
    return [*scores, math.log10(known.size), float(known.thinking)]


def choose_judge(outcome: str, observations: Iterable[Observation], asked: Mapping[str, str], notes: list[str]) -> str:
    """The judge whose scores of an outcome count: a single one.

    Without one that is asked for: ``verified`` for accuracy; else the only judge who scored it, or the only one who
    scored every outcome. Accuracy by rules on words has to be asked for.

    Raises
    ------
    UsageError
        If nobody scored it, the judge that is asked for did not, or several did.
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
                f"accuracy was scored by {RULES_ON_WORDS} alone, whose rules look for words that any paper on the task "
                f"has; judge the runs with {VERIFIED}, or request it by name: "
                f"--judge {outcome}={RULES_ON_WORDS}"
            )
        judges = [VERIFIED] if VERIFIED in judges else judges
    if len(judges) > 1:
        judges = [judge for judge in judges if outcomes[judge].issuperset(OUTCOMES)]
    if len(judges) != 1:
        raise UsageError(
            f"several judges scored {outcome}: {scorers}. Scores of different judges are never mixed: choose one with "
            f"--judge NAME, or for this outcome alone with --judge {outcome}=NAME"
        )
    if len(able) > 1:
        notes.append(
            f"{outcome} is that of {judges[0]}; scored by: {scorers}. Another is chosen by --judge {outcome}=NAME."
        )
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
    if judge == VERIFIED and (unread := [value for one, value in scored if not one.readable]):
        read = [value for one, value in scored if one.readable]
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
    there = dict.fromkeys(level.game for level in levels)
    if not there:
        raise UsageError("there are no profiles: no simulation of a game by one model; take some with labmates profile")
    if missing := [game for game in asked if game not in there]:
        raise UsageError(f"no model has simulations of {', '.join(missing)}; there are: {', '.join(there)}")
    known = [game for game in GAME_ORDER if game in there]
    return [game for game in [*known, *(game for game in there if game not in known)] if not asked or game in asked]


def _models(
    by_model: Mapping[str, Mapping[str, Level]],
    games: Sequence[str],
    scored: Sequence[Scored],
    traits: Mapping[str, KnownModel],
    controls: bool,
) -> tuple[list[str], list[LeftOut]]:
    runs = Counter(one.model for one, _ in scored)
    kept, left = [], []
    for model in dict.fromkeys([*by_model, *runs]):
        reason = _why_not(by_model.get(model, {}), games, runs[model], traits.get(model), controls)
        if reason:
            left.append(LeftOut(model, 1, reason))
        else:
            kept.append(model)
    return kept, left


def _why_not(
    mine: Mapping[str, Level],
    games: Sequence[str],
    runs: int,
    known: KnownModel | None,
    controls: bool,
) -> str:
    if not mine:
        return f"it has {runs} scored lab runs, but no profile"
    if not runs:
        return "it has a profile, but no scored lab runs"
    if missing := [game for game in games if game not in mine]:
        return f"no simulations of {', '.join(missing)}"
    if single := [game for game in games if mine[game].error is None]:
        return f"a single simulation of {', '.join(single)}, so that its error is unknown"
    if failed := unplayed(mine, games):
        return failed
    if not controls:
        return ""
    if known is None:
        return "its size and benchmark scores are not known (--roster adds them, --no-benchmarks does without)"
    unknown = [name for name, value in zip(CONTROLS, control_values(known), strict=True) if math.isnan(value)]
    return f"missing benchmark scores: {', '.join(unknown)}" if unknown else ""


def unplayed(mine: Mapping[str, Level], games: Sequence[str]) -> str:
    """The games that a model has not played, since too many of its decisions failed there; empty for none."""
    failed = [f"{mine[game].failed:.0%} in {game}" for game in games if mine[game].failed > MOST_FAILED]
    return f"too many of its decisions failed: {', '.join(failed)} (at most {MOST_FAILED:.0%} may)" if failed else ""


def _varying(values: Array, names: Sequence[str], kept: Sequence[str], why: str, notes: list[str]) -> list[int]:
    if not kept:
        return []
    spread = values.std(axis=0)
    varying = [at for at in range(len(names)) if spread[at] > 1e-9 * max(1.0, float(np.abs(values[:, at]).max()))]
    notes += [f"{name} is left out of the predictors: {why}." for at, name in enumerate(names) if at not in varying]
    return varying


def _covariates(
    covariates: Covariates, kept: Sequence[str], *known: tuple[Sequence[str], Sequence[int], Array]
) -> tuple[list[str], Array]:
    """Names and values of the user's covariates, given other predictors: names, places of those used, values."""
    if not covariates or len(kept) < LEAST_MODELS:
        return [], np.empty((len(kept), 0))
    columns = np.column_stack([values[:, places] for _, places, values in known])
    return covariate_columns(covariates, kept, columns, [names[at] for names, places, _ in known for at in places])


def _enough(
    models: int, games: int, controls: int, left: Sequence[LeftOut], notes: list[str], benchmarks: bool
) -> None:
    coefficients = 1 + games + controls
    freedom = models - coefficients
    advice = "fewer games (--game)" + (" or no benchmark scores (--no-benchmarks)" if benchmarks and controls else "")
    reasons = "".join(f"\n  {one.what}: {one.reason}" for one in left if one.what not in ("runs", "simulations"))
    if models < LEAST_MODELS:
        subject = "1 model has" if models == 1 else f"{models} models have"
        raise UsageError(
            f"{subject} both a profile and scored lab runs; {LEAST_MODELS} are needed at the very least{_list(reasons)}"
        )
    if not games:
        raise UsageError("no game distinguishes these models, so none can predict anything")
    if freedom < 1:
        raise UsageError(
            f"{models} models are too few for {coefficients} coefficients per model (intercept, {games} games, "
            f"{controls} controls): take {advice}, or more models{_list(reasons)}"
        )
    if freedom < LEAST_FREEDOM:
        notes.append(
            f"Only {models} models for {coefficients} coefficients per model: {freedom} "
            f"degree{'s' if freedom > 1 else ''} of freedom. Priors "
            f"weigh as much as data here; take more models, or {advice}."
        )


def _list(reasons: str) -> str:
    return f". Left out:{reasons}" if reasons else ""


def _rows(scored: Sequence[Scored], unit: Unit | None, notes: list[str]) -> tuple[Unit, list[list[Scored]]]:
    """The unit of observations, and the runs of each."""
    cells: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for scored_run in scored:
        cells[scored_run[0].model, json.dumps(dict(scored_run[0].condition), sort_keys=True, default=str)].append(
            scored_run
        )
    single = len(cells) == len({one.model for one, _ in scored})
    if unit == "condition" and single:
        raise UsageError("no model has lab runs of two conditions, so the noise can't be estimated: use --unit run")
    chosen: Unit = unit or ("run" if single else "condition")
    if single:
        notes.append("Each model has one condition, so its runs are the observations.")
    if chosen == "run":
        return chosen, [[one] for one in scored]
    return chosen, list(cells.values())


def _runs(rows: Sequence[Sequence[Scored]], notes: list[str]) -> Runs | None:
    """The runs behind observations with the data sets that several models share; None if there are none."""
    runs = [(at, one, value) for at, mine in enumerate(rows) for one, value in mine]
    if any(one.seed is None for _, one, _ in runs):
        notes.append(
            "The data sets of the runs are unknown (add a column seed), so effects of tasks are for these data "
            "sets alone."
        )
        return None
    keys = ["/".join(str(one.condition.get(name, "")) for name in _DATA_SET) + f"/{one.seed}" for _, one, _ in runs]
    models: dict[str, set[str]] = defaultdict(set)
    for key, (_, one, _) in zip(keys, runs, strict=True):
        models[key].add(one.model)
    shared = {key: at for at, key in enumerate(key for key, mine in models.items() if len(mine) > 1)}
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
    _, left, rank = summarise(data).within
    if rank < len(data.outcome) - len(data.models) and left < 1e-18 * len(data.outcome):
        raise UninformativeError(
            f"the conditions determine {outcome} exactly within each model: effects can't be measured "
            "without noise. More runs per model with other seeds are needed"
        )
