"""Simulations of behavioural games as rows, from runs or a CSV file, and the excluded ones with reasons."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from labmates.errors import UsageError, telling
from labmates.models.roster import KnownModel, known_model, traits_of
from labmates.records.run import ENDED, RunRecord
from labmates.util.csv_rows import read_rows
from labmates.workflows.protocol.experiment import condition_of
from labmates_profiles.run_files import Line, exported_runs, is_export, number, plain

if TYPE_CHECKING:
    import pandas as pd

    from labmates.workflows.games.condition import GameCondition

Team = Literal["minimum", "mean"]
"""Whose size and thinking count in a group of several models: of the smallest and the least, or the mean of players."""
OUTCOMES: Final = {"cooperation": "cooperation", "efficiency": "efficiency", "proximity": "pareto_proximity"}
"""The columns of the outcomes; the last is the paper's distance of mean decisions."""
_DISTANCES: Final = {"cooperation": "pareto_proximity", "efficiency": "welfare_proximity"}
"""Alternative columns of measures as distances, with 0 for the best; the latter in files of earlier versions."""
_GIVEN: Final = (*_DISTANCES, *_DISTANCES.values())
FAILED: Final = "failed_decision_rate"
COLUMNS: Final = ("model", "game", "reasoning", "group_size", "framing", "condition")
UNKNOWN: Final = "its family, size and thinking are not known: name it in a file for --roster"
_DEFAULTS: Final = {"reasoning": "none", "group_size": "5", "framing": "standard", "condition": "", FAILED: "0"}
_ALLOWED: Final = {"reasoning": ("none", "cot", "tom"), "framing": ("standard", "alternate")}
_TRAITS: Final = ("family", "size", "thinking")
_NOT_THE_SETTING: Final = frozenset({"model", "model_for", "framing", "prices", "game"})


@dataclass(frozen=True)
class LeftOut:
    """Rows excluded from a fit."""

    what: str
    rows: int
    reason: str


@dataclass(frozen=True)
class Observations:
    """Simulations as rows.

    Attributes
    ----------
    frame
        One row per simulation: ``model``, ``family``, ``size`` (billions of parameters), ``thinking``, ``game``,
        ``reasoning``, ``group_size``, ``framing``, ``condition`` (all other settings), ``cooperation``, ``efficiency``,
        ``pareto_proximity`` (NaN if undefined) and ``failed_decision_rate``.
    """

    frame: pd.DataFrame
    left_out: tuple[LeftOut, ...]


def observations_of_runs(
    runs: Sequence[RunRecord], more: Iterable[KnownModel] = (), team: Team | None = None
) -> Observations:
    """The simulations of games among runs, and the runs left out.

    Parameters
    ----------
    more
        Models in addition to the roster; those without a family are ignored.
    team
        Whose size and thinking count where players are of several models; None leaves these runs out.
    """
    known = traits_of({model for run in runs for model in run.models}, [model for model in more if model.family])
    rows: list[dict[str, Any]] = []
    left: Counter[tuple[str, str]] = Counter()
    for run in runs:
        if run.kind != "game":
            left[f"runs of kind {run.kind}", "no behavioural game"] += 1
        elif run.status not in ENDED:
            left[f"runs that are {run.status}", "they have not ended"] += 1
        elif len(run.models) != 1 and team is None:
            left["runs with several models", "--team says whose size and thinking count in them"] += 1
        elif run.condition.get("deliberation"):
            left["runs in which players talked first", "deliberation is not a predictor of the model"] += 1
        elif unknown := [model for model in run.models if model not in known]:
            left[unknown[0], UNKNOWN] += 1
        else:
            rows.append(_row_of_run(run, _traits(run, known, team)))
    return _observations(rows, left)


def _traits(run: RunRecord, known: Mapping[str, KnownModel], team: Team | None) -> dict[str, Any]:
    """The model, family, size and thinking of a run's players; several models or families are one of their own."""
    if len(run.models) == 1:
        return {"model": run.models[0], **{name: getattr(known[run.models[0]], name) for name in _TRAITS}}
    condition = cast("GameCondition", condition_of(run))
    counts = sorted(Counter(condition.model_of(*seat) for seat in condition.seats()).items())
    players = [known[model] for model, count in counts for _ in range(count)]
    sizes, thinking = [player.size for player in players], [float(player.thinking) for player in players]
    return {
        "model": " + ".join(f"{count} {model}" for model, count in counts),
        "family": " + ".join(dict.fromkeys(player.family for player in players)),
        "size": min(sizes) if team == "minimum" else geometric_mean(sizes),
        "thinking": min(thinking) if team == "minimum" else fmean(thinking),
    }


def observations_of_csv(path: Path, more: Iterable[KnownModel] = (), team: Team | None = None) -> Observations:
    """The simulations of a CSV file with one row each.

    Columns: ``model``, ``game`` and ``cooperation`` (or the paper's ``pareto_proximity``) or ``efficiency``;
    ``reasoning``, ``group_size``, ``framing``, ``condition`` and ``failed_decision_rate`` if they vary; ``family``,
    ``size`` and ``thinking`` for unknown models. Exports of ``labmates export`` are accepted; their runs are
    selected like those of a store.

    Raises
    ------
    UsageError
        If the file is unreadable, a column is missing, or a value is invalid.
    """
    read = read_rows(path)
    if is_export(list(read[0])):
        return observations_of_runs([run for run, _ in exported_runs(read, path)], more, team)
    lines = plain(read, path, "model", "game")
    if not set(_GIVEN) & read[0].keys():
        raise UsageError(f"'{path}' has no column {' or '.join(_GIVEN)}; it has {', '.join(read[0])}")
    known = traits_of({line["model"] for _, line in lines}, [model for model in more if model.family])
    for where, line in lines:
        if all(line.get(name) for name in _TRAITS):
            with telling(where, ValueError):
                known[line["model"]] = known_model({"name": line["model"], **{name: line[name] for name in _TRAITS}})
    left = Counter((line["model"], UNKNOWN) for _, line in lines if line["model"] not in known)
    given = [(where, {**_DEFAULTS, **{name: text for name, text in line.items() if text}}) for where, line in lines]
    rows = [_row_of_line(line, known[line["model"]], where) for where, line in given if line["model"] in known]
    return _observations(rows, left)


def _observations(rows: Sequence[Mapping[str, Any]], left: Counter[tuple[str, str]]) -> Observations:
    import pandas as pd

    columns = [*COLUMNS, *_TRAITS, FAILED, *OUTCOMES.values()]
    frame = pd.DataFrame(rows, columns=columns)
    return Observations(frame, tuple(LeftOut(what, count, reason) for (what, reason), count in left.items()))


def _row_of_run(run: RunRecord, traits: Mapping[str, Any]) -> dict[str, Any]:
    setting = {name: value for name, value in run.condition.items() if name not in _NOT_THE_SETTING}
    text = json.dumps(setting, sort_keys=True, default=str)
    return {
        **traits,
        "game": run.condition["game"],
        "reasoning": run.condition["reasoning"],
        "group_size": run.condition["group_size"],
        "framing": run.condition["framing"],
        "condition": hashlib.blake2b(text.encode(), digest_size=6).hexdigest(),
        FAILED: run.metrics.get(FAILED, 0.0),
        **_measures({name: run.metrics.get(name, math.nan) for name in _GIVEN}),
    }


def _measures(given: Mapping[str, float]) -> dict[str, float]:
    """Cooperation, efficiency and the paper's proximity, each from its opposite if only that is given."""
    measures = {}
    for name, distance in _DISTANCES.items():
        measures[name] = 1.0 - given[distance] if math.isnan(given[name]) else given[name]
    proximity = given["pareto_proximity"]
    return {**measures, "pareto_proximity": 1.0 - measures["cooperation"] if math.isnan(proximity) else proximity}


def _row_of_line(line: Line, traits: KnownModel, where: str) -> dict[str, Any]:
    for name, allowed in _ALLOWED.items():
        if line[name] not in allowed:
            raise UsageError(f"{where}: {name} must be one of {', '.join(allowed)}, not '{line[name]}'")
    return {
        **{name: line[name] for name in ("model", "game", "reasoning", "framing", "condition")},
        **{name: getattr(traits, name) for name in _TRAITS},
        **{name: number(line, name, where) for name in ("group_size", FAILED)},
        **_measures({name: number(line, name, where) if name in line else math.nan for name in _GIVEN}),
    }
