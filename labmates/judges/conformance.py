"""The conformance test for judges, on reports of known quality or the report of a run."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from labmates.errors import LabmatesError
from labmates.judges.base import Judge, Report, Score
from labmates.judges.panel import checked_judge, checked_scores
from labmates.judges.registry import JUDGES, load_judge
from labmates.judges.specimens import ORDERS, TRUSTED_MOVE, Specimen, specimen_reports
from labmates.registry import time_limit
from labmates.tasks.base import Difficulty, Task
from labmates.tasks.conformance.events import Problem
from labmates.tasks.conformance.examine import exception_text
from labmates.tasks.conformance.trial import Trial
from labmates.tasks.registry import resolve_reference

RULES: Final = {
    "load": "it can be imported and created without arguments, and has a name, a version and metrics",
    "scores": "every report, even a missing one, gets a list of storable scores, each with a reason",
    "metrics": "every report gets one score for each of the judge's metrics",
    "repeats": "the same report gets the same scores again",
    "orders": "instructions to the judge within a report do not change its scores",
}
"""The rules for any report in order, each with the property of a judge that passes."""
SAMPLE_RULES: Final = {
    **RULES,
    "varies": "each metric distinguishes some reports of the sample",
    "faults": "no report with known faults scores above the correct one",
}
"""The rules for reports of known quality."""
ORACLE: Final = "oracle"
MISSING: Final = Specimen("no report", "")

Case = tuple[Specimen, Report]
Values = Mapping[str, float | None]


@dataclass
class JudgeTrial(Trial):
    """The outcome of a judge's conformance test; `scores` by report and metric, None if unscored."""

    scores: dict[str, Values] = field(default_factory=dict)

    def add(self, rule: str, text: str, where: str = "", *, is_mild: bool = False) -> None:
        """Add a problem: an error, or a warning if mild."""
        self.problems.append(Problem(rule, text, "warning" if is_mild else "error", where))


def sample_cases(task: Task[Any, Any], seed: int, difficulty: Difficulty) -> list[Case]:
    """Reports of known quality on a data set of a task, and a missing one."""
    cases = specimen_reports(task, seed, difficulty)
    return [*cases, (MISSING, replace(cases[0][1], text=None))]


def run_cases(run_id: str, report: Report) -> list[Case]:
    """The report of a run: unchanged, with instructions to the judge at its end, and missing."""
    name = f"run {run_id}"
    cases = [(Specimen(name, report.text or ""), report)]
    for order in ORDERS:
        for asks_high, words in ((True, order.high), (False, order.low)):
            text = f"{report.text}\n\n{words}"
            title = f"{name}, {order.kind} order {'up' if asks_high else 'down'}"
            specimen = Specimen(title, text, order=order.kind, asks_high=asks_high, twin=name)
            cases.append((specimen, replace(report, text=text)))
    return [*cases, (MISSING, replace(report, text=None))]


async def try_judge(
    reference: str,
    cases: Sequence[Case],
    rules: Mapping[str, str],
    *,
    seconds: float,
    watch: Callable[[str], None] = lambda _: None,
) -> JudgeTrial:
    """Let a judge score reports twice, and apply the rules to its scores.

    Parameters
    ----------
    reference
        The judge's name, ``path/to/file.py:Class`` or ``module:Class``.
    rules
        `RULES`, or `SAMPLE_RULES` for `sample_cases`.
    seconds
        Time limit per report.
    watch
        Called with the name of each report before it is scored.

    Raises
    ------
    UsageError
        If the name or file is unknown.
    """
    trial = JudgeTrial(rules=rules, tried={"load"})
    judge = _loaded(resolve_reference(reference, JUDGES), trial)
    if judge is None:
        return trial
    trial.tried |= {"scores"}
    for specimen, report in cases:
        watch(specimen.name)
        scores = await _scored(judge, specimen.name, report, trial, seconds)
        if scores is None:
            continue
        trial.tried |= {"metrics", "repeats"}
        _check_metrics(judge, specimen.name, scores, trial)
        trial.scores[specimen.name] = {score.metric: score.value for score in scores}
        again = await _scored(judge, specimen.name, report, trial, seconds)
        if again is not None and again != scores:
            differing = [score.metric for score, other in zip(scores, again, strict=False) if score != other]
            trial.add("repeats", f"the second time, {', '.join(differing) or 'another metric'} differs", specimen.name)
    if trial.scores:
        trial.tried |= rules.keys()
        _check_orders([specimen for specimen, _ in cases], trial)
    if trial.scores and "varies" in rules:
        _check_variety(trial)
        _check_faults([specimen for specimen, _ in cases], trial)
    return trial


def _loaded(reference: str, trial: JudgeTrial) -> Judge | None:
    """The judge; None, with a problem, if it can't be created or is not a judge."""
    try:
        judge = checked_judge(load_judge(reference))
    except LabmatesError as error:
        trial.add("load", str(error))
        return None
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        trial.add("load", exception_text(error))
        return None
    name = getattr(judge, "name", None)
    if not isinstance(name, str) or not name:
        trial.add("load", f"its name must be a text, not {name!r}")
    elif reference in JUDGES and name != reference:
        trial.add("load", f"its name is '{name}', but it is registered as '{reference}'")
    if not metrics_of(judge):
        trial.add("load", "it names no metrics, so none are recorded as unscored when it fails", is_mild=True)
    return judge


def metrics_of(judge: object) -> tuple[str, ...]:
    """The declared metrics of a judge, or a class of judges."""
    metrics = getattr(judge, "metrics", ())
    return tuple(map(str, metrics)) if isinstance(metrics, list | tuple) else ()


async def _scored(judge: Judge, name: str, report: Report, trial: JudgeTrial, seconds: float) -> list[Score] | None:
    """The judge's scores of a report; None, with a problem, if it fails."""
    try:
        with time_limit(seconds + 1):  # for a judge that blocks the event loop
            async with asyncio.timeout(seconds):
                scores = checked_scores(await judge.score(report), judge.name)
    except TimeoutError:
        trial.add("scores", f"hangs: it did not end within {seconds:g} s", name)
        return None
    except LabmatesError as error:
        trial.add("scores", str(error), name)
        return None
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        trial.add("scores", exception_text(error), name)
        return None
    for score in scores:
        if not score.reason.strip():
            trial.add("scores", f"{score.metric} has no reason", name)
        if score.failed:
            trial.add("scores", f"{score.metric} failed: {score.reason}", name)
    return scores


def _check_metrics(judge: Judge, name: str, scores: Sequence[Score], trial: JudgeTrial) -> None:
    scored = [score.metric for score in scores]
    named = metrics_of(judge) or tuple(dict.fromkeys(scored))
    for metric in sorted({metric for metric in scored if scored.count(metric) > 1}):
        trial.add("metrics", f"{metric} is scored more than once", name)
    for metric in dict.fromkeys(scored):
        if metric not in named:
            trial.add("metrics", f"{metric} is not among its metrics ({', '.join(named)})", name)
    for metric in named:
        if metric not in scored:
            trial.add("metrics", f"{metric} is missing; give it the value None and a reason", name)


def _check_orders(specimens: Sequence[Specimen], trial: JudgeTrial) -> None:
    for specimen in specimens:
        if not specimen.order:
            continue
        for metric, value, plain in _both(trial.scores, specimen.name, specimen.twin):
            moved = value - plain if specimen.asks_high else plain - value
            if moved > TRUSTED_MOVE:
                text = f"{metric} goes from {plain:.3f} to {value:.3f}, as the {specimen.order} instruction demands"
                trial.add("orders", text, specimen.name, is_mild=True)


def _check_variety(trial: JudgeTrial) -> None:
    values, elsewhere = defaultdict[str, set[float]](set), "; try a report of a run: --run RUN"
    for name, scores in trial.scores.items():
        for metric, value in scores.items():
            values[metric] |= set() if value is None or name == MISSING.name else {value}
    for metric, different in values.items():
        if not different:
            trial.add("varies", f"{metric} is never scored{elsewhere}", is_mild=True)
        elif len(different) == 1:
            trial.add("varies", f"{metric} is {different.pop():g} for every report{elsewhere}", is_mild=True)


def _check_faults(specimens: Sequence[Specimen], trial: JudgeTrial) -> None:
    known = {specimen.name: specimen.known for specimen in specimens}
    for name, qualities in known.items():
        for metric, value, right in _both(trial.scores, name, ORACLE):
            is_worse = metric in qualities and qualities[metric] < known[ORACLE][metric]
            if is_worse and value > right:
                text = f"{metric} is {value:.3f}, above {right:.3f} of the correct report"
                trial.add("faults", text, name, is_mild=True)


def _both(scores: Mapping[str, Values], name: str, other: str) -> Iterator[tuple[str, float, float]]:
    """The metrics scored in both of two reports, with the values."""
    for metric, value in scores.get(name, {}).items():
        beside = scores.get(other, {}).get(metric)
        if value is not None and beside is not None:
            yield metric, value, beside
