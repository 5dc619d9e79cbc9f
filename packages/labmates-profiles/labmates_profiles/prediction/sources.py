"""Data sources of the prediction of lab outcomes: runs of a store, or two CSV files; and exclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from labmates.errors import LabmatesError, UsageError, unknown_name
from labmates.records.run import ENDED, RunRecord
from labmates.stats.intervals import mean
from labmates.util.csv_rows import read_rows
from labmates.util.grouping import grouped
from labmates.workflows.protocol.experiment import condition_of
from labmates_profiles.run_files import Line, Scores, exported_runs, is_export, number, plain, require, scores_of

if TYPE_CHECKING:
    from labmates.records.store import Store
    from labmates.workflows.science.lab.condition import ScienceCondition

SKILL: Final = "skill"
OUTCOMES: Final = ("accuracy", "quality", "completeness")
"""The outcomes of the cooperative-profiles paper (section 4.1.2); quality is a model's or a person's rating."""
COMPARED: Final = (SKILL, "quality", "completeness")
"""The outcomes of screening: skill is accuracy corrected for guessing."""
INSTEAD: Final[Mapping[str, str]] = {SKILL: "accuracy", "quality": "heuristic_quality"}
"""The substitute for a default outcome that no run has."""
ALL_OUTCOMES: Final = (*OUTCOMES, SKILL, "provenance", "heuristic_quality")
USUAL: Final[Mapping[str, object]] = {
    "framing": "standard",
    "reasoning": "none",
    "deliberation": False,
    "group_size": 5,
    "groups": 2,
}
"""The condition of the games of a profile (cooperative-profiles paper, section 3.1)."""
_SIZES: Final = ("group_size", "groups")
FILE_JUDGE: Final = "file"
"""The judge of the scores of a file without a judge."""


@dataclass(frozen=True)
class Level:
    """A model's play of one game.

    Attributes
    ----------
    value
        Its primary metric, the mean over simulations.
    error
        Standard error of the mean; None for a single simulation.
    failed
        Proportion of failed decisions.
    """

    model: str
    game: str
    value: float
    error: float | None
    simulations: int
    failed: float = 0.0


@dataclass(frozen=True)
class Observation:
    """A lab run: its condition, and its scores with the versions of the judges.

    Attributes
    ----------
    readable
        Whether its report has readable findings; assumed for files.
    seed
        Determines the data set of its task; None if unknown.
    seats
        The model of each seat of a team of several models, the lead's first; empty for a team of one model.
    """

    model: str
    condition: Mapping[str, Any]
    scores: Scores
    versions: Mapping[str, str]
    readable: bool = True
    seed: str | None = None
    seats: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """An exclusion from an analysis, and its reason.

    Attributes
    ----------
    what
        The name of a model, or ``runs`` or ``simulations``.
    """

    what: str
    count: int
    reason: str

    @property
    def sentence(self) -> str:
        """The exclusion and its reason in a sentence."""
        what = f"{self.count} {self.what}" if self.what in ("runs", "simulations") else self.what
        return f"{what}: {self.reason}"


def check_outcomes(outcomes: Iterable[str]) -> None:
    """Raise UsageError for an unknown outcome."""
    for name in outcomes:
        if name not in ALL_OUTCOMES:
            raise unknown_name("outcome", name, ALL_OUTCOMES)


def check_variant(variant: Iterable[str]) -> None:
    """Raise UsageError for a name that is not part of the condition of profiles."""
    for name in variant:
        if name not in USUAL:
            raise UsageError(f"--variant takes NAME=VALUE with one of {', '.join(USUAL)}, not '{name}'")


def levels_of_runs(
    runs: Iterable[RunRecord], variant: Mapping[str, str] | None = None
) -> tuple[list[Level], list[LeftOut]]:
    """Each model's level in each game, from runs of games with one model and the standard rules.

    `variant` changes the standard condition.
    """
    wanted = {**USUAL, **(variant or {})}
    reasons = [(run, _no_profile(run, wanted)) for run in runs]
    left = Counter(reason for _, reason in reasons if reason)
    levels = []
    for (model, game), mine in grouped(
        ((run.models[0], run.condition["game"]), run) for run, reason in reasons if not reason
    ).items():
        failed = sum(run.metrics.get("failed_decision_rate", 0.0) for run in mine) / len(mine)
        if values := [run.metrics["level"] for run in mine if "level" in run.metrics]:
            levels.append(_level(model, game, values, failed))
        else:
            left[f"no usable decision of {model} in {game}"] += len(mine)
    return levels, [LeftOut("simulations", count, reason) for reason, count in left.items()]


def _level(model: str, game: str, values: Sequence[float], failed: float = 0.0) -> Level:
    level = mean(values)
    return Level(model, game, level.value, level.error, level.n, failed)


def is_profile_run(run: RunRecord, variant: Mapping[str, str] | None = None) -> bool:
    """Whether a run of a game belongs to a profile; see `levels_of_runs`."""
    return not _no_profile(run, {**USUAL, **(variant or {})})


def is_lab_run(run: RunRecord) -> bool:
    """Whether a run is an ended lab run of a team of one model."""
    return not _no_lab_run(run) and len(run.models) == 1


def _no_lab_run(run: RunRecord) -> str:
    if run.kind != "science":
        return "not a run of the science lab"
    if run.status not in ENDED:
        return "they have not ended"
    return "a single agent, not a team" if run.condition.get("organisation") == "solo" else ""


def _no_profile(run: RunRecord, wanted: Mapping[str, object]) -> str:
    if run.status not in ENDED:
        return "they have not ended"
    if len(run.models) != 1:
        return "they have players of several models"
    other = [
        f"{name}={run.condition.get(name)}"
        for name, value in wanted.items()
        if not _same(run.condition.get(name), value)
    ]
    if other:
        return f"not the condition of profiles: {', '.join(other)}"
    return "not the standard rules" if _other_rules(run.condition) else ""


def _same(first: object, second: object) -> bool:
    return str(first).lower() == str(second).lower()


def _other_rules(condition: Mapping[str, Any]) -> bool:
    from labmates.games.registry import make_game

    try:
        usual = make_game(condition["game"], {name: condition[name] for name in _SIZES if name in condition})
    except LabmatesError:  # a game of a package that is not installed: its standard rules are unknown
        return False
    rules = {**condition.get("rules", {}), "rounds": condition.get("rounds")}
    figures = usual.model_dump(mode="json")
    return any(name in figures and not _same(figures[name], value) for name, value in rules.items())


def observations_of_runs(store: Store, runs: Iterable[RunRecord]) -> tuple[list[Observation], list[LeftOut]]:
    """The ended lab runs of teams, with their newest scores.

    By intention to treat: a run without a paper or without readable findings has accuracy 0.
    """

    def scored() -> Iterator[tuple[RunRecord, Scores, Mapping[str, str], bool]]:
        for run in runs:
            events = store.scores(run.id)
            scores = {(score.judge, score.metric): score.value for score in events}
            versions = {score.judge: score.version.partition("+")[0] for score in events}
            readable = [score.readable for score in events if score.readable is not None]
            yield run, scores, versions, not readable or readable[-1]

    return _of_teams(scored())


def _of_teams(
    scored: Iterable[tuple[RunRecord, Scores, Mapping[str, str], bool]],
) -> tuple[list[Observation], list[LeftOut]]:
    observations, left = [], Counter[str]()
    for run, scores, versions, readable in scored:
        if reason := _no_lab_run(run):
            left[reason] += 1
            continue
        condition = {name: value for name, value in run.condition.items() if name not in ("model", "model_for")}
        try:
            seats = () if len(run.models) == 1 else _seats(run)
        except UsageError as error:
            left[f"teams of several models whose seats are unknown: {error}"] += 1
            continue
        model = team_name(seats) if seats else run.models[0]
        observations.append(Observation(model, condition, scores, versions, readable, str(run.seed), seats))
    return observations, [LeftOut("runs", count, reason) for reason, count in left.items()]


def _seats(run: RunRecord) -> tuple[str, ...]:
    """The models of the seats in use, that of the lead who writes the paper first."""
    condition = cast("ScienceCondition", condition_of(run))
    crew = condition.crew
    if crew.graph:
        raise UsageError("the code of an organisation decides who takes part")
    lead = crew.teams[crew.author].lead.id
    return tuple(map(condition.model_of, [lead, *(name for name in crew.seats if name != lead)]))


def team_name(seats: Sequence[str]) -> str:
    """The name of a team: its lead's model, and those of its other seats.

    >>> team_name(("a", "b", "a", "b")), team_name(("a", "a"))
    ('a leads a + 2 b', 'a')
    """
    if len(set(seats)) == 1:
        return seats[0]
    others = sorted(Counter(seats[1:]).items())
    return f"{seats[0]} leads " + " + ".join(f"{count} {name}" if count > 1 else name for name, count in others)


def read_levels(path: Path, variant: Mapping[str, str] | None = None) -> tuple[list[Level], list[LeftOut]]:
    """Read profiles: columns ``model``, ``game`` and ``level``, a row per simulation.

    Or a row per model and game: ``model``, ``game``, ``mean``, ``error`` (the standard error), ``simulations``, and
    optionally ``failed_rate``. The files of ``labmates export`` and ``labmates profile --out`` are accepted; the
    runs of an export are selected as in `levels_of_runs`.

    Raises
    ------
    UsageError
        If the file can't be read, or lacks a column or a number.
    """
    rows = read_rows(path)
    if is_export(list(rows[0])):
        return levels_of_runs([run for run, _ in exported_runs(rows, path) if run.kind == "game"], variant)
    lines = plain(rows, path, "model")
    columns = lines[0][1]
    require(columns, path, "game")
    mean_name, error_name = ("level", "level_error") if "level_error" in columns else ("mean", "error")
    if mean_name in columns:
        require(columns, path, error_name)
        # In a profile, a game without usable decisions has no mean.
        lines = [(where, row) for where, row in lines if row[mean_name] or not row.get("failed_rate")]
        twice = Counter((row["model"], row["game"]) for _, row in lines).most_common(1)
        if twice and twice[0][1] > 1:
            model, game = twice[0][0]
            raise UsageError(f"'{path}' has two rows of the model {model} in the game {game}")
        return [_told_level(row, where, mean_name, error_name) for where, row in lines], []
    if "level" not in columns:
        raise UsageError(f"'{path}' needs a column level (a row per simulation), or mean and error")
    by_game = grouped(((row["model"], row["game"]), number(row, "level", where)) for where, row in lines if row["game"])
    return [_level(*key, values) for key, values in by_game.items()], []


def _told_level(row: Line, where: str, mean_name: str, error_name: str) -> Level:
    def optional(name: str) -> float:
        return number(row, name, where, 0) if row.get(name) else 0.0

    error = number(row, error_name, where, 0) if row[error_name] else None
    value, simulations = number(row, mean_name, where), int(optional("simulations"))
    return Level(row["model"], row["game"], value, error, simulations, optional("failed_rate"))


def read_observations(path: Path) -> tuple[list[Observation], list[LeftOut]]:
    """Read lab runs, one per row: ``model``, outcomes (``accuracy``, …), and columns of the condition.

    The column ``judge`` names the judge; a run with several judges has a row for each, or columns
    ``scores.JUDGE.METRIC``. ``seed`` identifies the data set of the task. ``team`` has the models of all seats,
    separated by semicolons, the lead's first. All other columns are the condition. An empty outcome is unscored.
    The files of ``labmates export`` are accepted; their runs are selected as those of a store.

    Raises
    ------
    UsageError
        If the file can't be read, or lacks a column or a number.
    """
    rows = read_rows(path)
    if is_export(list(rows[0])):
        return _of_teams((run, scores, {}, True) for run, scores in exported_runs(rows, path))
    return [_observation(where, row) for where, row in plain(rows, path, "model")], []


def _observation(where: str, row: Line) -> Observation:
    scores = scores_of(row, where, ALL_OUTCOMES, row.get("judge") or FILE_JUDGE)
    if not scores:
        raise UsageError(f"{where}: there is no column of an outcome: {', '.join(OUTCOMES)}")
    named = (*ALL_OUTCOMES, "model", "judge", "seed", "team")
    condition = {name: text for name, text in row.items() if name not in named and not name.startswith("scores.")}
    seats = tuple(filter(None, map(str.strip, row.get("team", "").split(";")))) or (row["model"],)
    several = seats if len(set(seats)) > 1 else ()
    return Observation(team_name(seats), condition, scores, {}, seed=row.get("seed") or None, seats=several)
