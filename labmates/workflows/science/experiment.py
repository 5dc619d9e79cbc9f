"""The science lab as an experiment; code for executing runs is imported when a run starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from labmates.records.run import WORKED
from labmates.registry import lazy
from labmates.stats.domains import AT_MOST_ONE, COUNT, SHARE
from labmates.workflows.protocol.experiment import Estimate, Experiment, Metric
from labmates.workflows.science.lab.condition import ALONE, TEAM_FIELDS, ScienceCondition
from labmates.workflows.science.lab.evidence import SHARED

if TYPE_CHECKING:
    from labmates.records.events import ScoreEvent

SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "skill": ("verified", "skill"),
    "accuracy": ("verified", "accuracy"),
    "provenance": ("verified", "provenance"),
    "completeness": ("heuristic", "completeness"),
    "heuristic_quality": ("heuristic", "heuristic_quality"),
}
"""Judge and judge's metric of each run metric."""
READABLE: Final = "readable"
"""1 for a run whose report states readable findings, else 0."""
IDEAL: Final = "ideal"
"""The accuracy that an ideal analysis has on the run's data."""
PROMISES: Final = "promises"
PROMISES_KEPT: Final = "promises_kept"
"""The number of promises found by a judge, and the share of kept ones."""
COORDINATION = (
    Metric("coordination_tokens", "share of tokens spent on coordination", SHARE),
    Metric("coordination_credits", "share of credits spent on coordination", SHARE),
    Metric("messages", "messages sent", COUNT),
    Metric("messages_used", "messages that a receiver used", COUNT),
    Metric("hand_overs", "plans, messages, reports and artifacts that reached another seat, by receiver", COUNT),
    Metric("hand_overs_used", "hand-overs that their receiver used", COUNT),
    Metric("redundancy", "share of computed quantities that several seats computed", SHARE, "lower"),
    Metric("idle_seats", "seats without code, artifact or findings", COUNT, "lower"),
    Metric("requests_asked", "attempted requests of agents", COUNT),
    Metric("requests_answered", "requests whose phase ended", COUNT),
)
"""Measures of coordination (`labmates.workflows.science.lab.coordination`)."""


def skill_of_nothing(metrics: Mapping[str, float]) -> float | None:
    """The skill of accuracy 0 in a run; None if its prior is unknown."""
    accuracy, skill = metrics.get("accuracy"), metrics.get("skill")
    if accuracy is None or skill is None or skill >= 1 or accuracy >= 1:
        return None
    # With the prior p, skill is (accuracy - p) / (1 - p).
    return 1 - (1 - skill) / (1 - accuracy)


METRICS = (
    Metric(
        "skill",
        "accuracy above a guess: 1 for the truth, 0 for a guess",
        AT_MOST_ONE,
        "higher",
        0.06,
        True,
        floor=skill_of_nothing,
    ),
    Metric("accuracy", "findings against the truth; 0 without readable findings", SHARE, "higher", 0.05, True, "skill"),
    Metric(IDEAL, "accuracy of an ideal analysis of the same data, which knows the true model", SHARE),
    Metric("provenance", "share of the stated findings that the run's code computed", SHARE, "higher", headline=True),
    Metric("completeness", "share of what the task asks for", SHARE, "higher", 0.24, True),
    Metric(WORKED, "1 if code or tools of your own ran, or agents of your own took part", SHARE, "higher"),
    Metric(READABLE, "1 if the report states readable findings", SHARE, "higher", headline=True),
    Metric("heuristic_quality", "the cooperative-profiles paper's rule on the words of a text", SHARE, "higher", 0.10),
    Metric("artifacts_missing", "artifacts not written", COUNT, "lower"),
    Metric("phases", "phases that ended", COUNT),
    Metric("requests", "requests between teams", COUNT),
    Metric("tool_errors", "tool calls that failed", COUNT, "lower"),
    Metric("failed_reply_rate", "share of failed replies", SHARE, "lower"),
    *COORDINATION,
    Metric(PROMISES, "promises that seats stated, where a judge counts them", COUNT),
    Metric(PROMISES_KEPT, "share of promises that were kept, where a judge finds them", SHARE, "higher"),
)
"""Scores of the report (absent where unscored), then counts.

Spreads: cooperative-profiles paper, table 2; that of skill is accuracy's above a prior of 0.2.
"""


def judged_metrics(scores: Iterable[ScoreEvent]) -> dict[str, float]:
    """The newest metrics of a run from judges' scores, without failed judgements.

    By intention to treat: a run without a paper or readable findings has accuracy 0.
    """
    values: dict[tuple[str, str], float] = {}
    metrics: dict[str, float] = {}
    for score in scores:
        if score.value is not None:
            values[score.judge, score.metric] = score.value
        if score.metric == PROMISES_KEPT and not score.failed:
            promises = score.details.get("promises", [])
            metrics[PROMISES] = len(promises)
            metrics |= {} if score.value is None else {PROMISES_KEPT: score.value}
        if isinstance(score.details.get(IDEAL), float):
            metrics[IDEAL] = score.details[IDEAL]
        if score.readable is not None:
            metrics[READABLE] = float(score.readable)
    return {name: values[source] for name, source in SOURCES.items() if source in values} | metrics


def described(condition: Mapping[str, Any]) -> dict[str, Any]:
    """A condition without what has no effect: teamwork of one agent alone, and the arm of shared evidence."""
    idle = {"solo", *(["arm"] if condition.get("evidence") == SHARED else [])}
    idle |= set(TEAM_FIELDS) if condition.get("team_size") == 1 else set()
    organisation = ALONE if condition.get("solo") else "pipeline"  # in records of earlier versions
    return {name: value for name, value in {"organisation": organisation, **condition}.items() if name not in idle}


def estimate(condition: ScienceCondition) -> Estimate:
    """Expected resources of a run.

    Tokens are the medians of the cooperative-profiles paper for teams of two (section 4.1), limited by the pool; the
    numbers of calls and seconds are measured on such runs here.
    """
    price = condition.prices.of(condition.model)
    share = 1.0 if condition.solo else condition.team_size / 2
    share = min(share, condition.pool / max(1, price.cost(_INPUT, _OUTPUT)))
    return Estimate(_CALLS * share, _INPUT * share, _OUTPUT * share, _SECONDS * share)


_INPUT, _OUTPUT, _CALLS, _SECONDS = 101_118, 29_654, 60, 260

SCIENCE = Experiment(
    "science",
    ScienceCondition,
    lazy("labmates.workflows.science.graph:graph"),
    lazy("labmates.workflows.science.run:outcome"),
    METRICS,
    start=lazy("labmates.workflows.science.lab.state:start"),
    context=lazy("labmates.workflows.science.run:opened"),
    example="labmates run science --task ecology --model scripted:diligent --budget 0.50 --replicates 2",
    estimate=estimate,
    needs_sandbox=True,
    salted=True,
    report=lazy("labmates.workflows.science.run:report_of"),
    judged=judged_metrics,
    page=lazy("labmates.workflows.science.analyses.page:sections"),
    described=described,
    usable=READABLE,
    tables=lazy("labmates.workflows.science.analyses.shown:tables"),
)
