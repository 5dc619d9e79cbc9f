"""Findings stated by the teams of the lab: checked, recorded, and shown to later teams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from pydantic import BaseModel

from labmates.agents.findings import FindingsForm, Stated
from labmates.agents.tools import ToolError
from labmates.records.bodies import Bodies
from labmates.records.events import FindingsEvent
from labmates.tasks.base import Task
from labmates.tasks.findings import check_findings, read_findings
from labmates.tasks.merging import merge_findings
from labmates.tasks.schema import field_lines, findings_parameters
from labmates.workflows.science.lab.context import LabContext
from labmates.workflows.science.lab.state import Phase, Report, Statement

MOST_FAULTS = 8
"""Most faults reported for one statement."""


def findings_form(task: Task[Any, Any]) -> FindingsForm:
    """The form of a task's findings.

    A statement is recorded only if all of it is valid; numbers written as text are repaired and reported.
    """
    model: type[BaseModel] = task.findings
    return _form(model)


# A schema takes longer to make than a model call's whole overhead, and the runs of a study share it.
@cache
def _form(model: type[BaseModel]) -> FindingsForm:

    def check(values: Mapping[str, Any]) -> Stated:
        read = check_findings(values, model)
        if read.problems or read.findings is None:
            raise ToolError(_refusal(read.problems, model))
        stated = read.findings.model_dump(mode="json", exclude_none=True)
        repaired = [repair.as_json() for repair in read.repaired]
        return Stated(stated, tuple(repaired), _receipt(stated, [str(repair) for repair in read.repaired], model))

    return FindingsForm(findings_parameters(model), check)


def paper_faults(paper: str, task: Task[Any, Any]) -> str:
    """Problems of the findings in a paper; empty if there are none."""
    return "; ".join(read_findings(paper, task.findings).problems[:MOST_FAULTS])


def keep_findings(
    ctx: LabContext, phase: Phase, agent: str, before: int, stated: Sequence[Statement], place: str = "findings"
) -> list[int]:
    """Record an agent's statements unless a resumed run's record holds them; returns their bodies.

    Parameters
    ----------
    before
        Number of the team's earlier statements.
    place
        The step within the phase.
    """
    for version, statement in enumerate(stated, before + 1):
        where = {"step": f"{phase['team']}/{phase['number']}/{place}/{version}", "team": phase["team"], "agent": agent}
        ctx.recorder.once(FindingsEvent(**where, version=version, **statement))
    return [statement["findings"] for statement in stated]


def statement(bodies: Bodies, stated: Stated) -> Statement:
    """A statement with its values stored as a body."""
    return Statement(findings=bodies.keep(dict(stated.values)), repaired=list(map(dict, stated.repaired)))


def findings_json(values: object) -> str:
    """Stated findings as compact JSON, one field a line."""
    if not isinstance(values, dict) or not values:
        return "{}"
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return "{" + ",\n ".join(lines) + "}"


def stated_texts(stated: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The findings of each team as text, from findings in the order of the teams.

    A value repeated by the next team appears only there.
    """
    texts = {}
    for place, (team, values) in enumerate(stated.items()):
        after = next(islice(stated.items(), place + 1, None), None)
        same = [name for name, value in values.items() if after and after[1].get(name) == value]
        changed = {name: value for name, value in values.items() if name not in same}
        repeated = [f"The same as the {after[0]} team's: {', '.join(same)}."] if after and same else []
        texts[team] = "\n".join([*([findings_json(changed)] if changed or not repeated else []), *repeated])
    return texts


def _refusal(problems: Sequence[str], model: type[BaseModel]) -> str:
    named = dict.fromkeys(match[1] for problem in problems if (match := re.match(r"field '(\w+)'", problem)))
    allowed = [line for name in named if name in model.model_fields for line in field_lines(name, model)]
    if any(problem.startswith("unknown") for problem in problems):
        allowed.append(f"The fields are {', '.join(model.model_fields)}.")
    return "\n".join(
        [
            "nothing was recorded, since this is not valid:",
            *(f"- {problem}" for problem in problems[:MOST_FAULTS]),
            "What is allowed:",
            *allowed,
            "Call state_findings again with all findings; leave out what you can't state.",
        ]
    )


def _receipt(stated: Mapping[str, Any], repaired: Sequence[str], model: type[BaseModel]) -> str:
    left = [name for name in model.model_fields if name not in stated]
    lines = [f"Recorded: {len(stated)} of {len(model.model_fields)} findings."]
    if left:
        lines.append(f"Not stated: {', '.join(left)}.")
    if repaired:
        lines.append(f"Mended: {'; '.join(repaired[:MOST_FAULTS])}.")
    return " ".join([*lines, "Another call of state_findings replaces all of them."])


JOINED = "the reports of all members, whose findings are merged by a fixed rule"


def merged_findings(ctx: LabContext, reports: Iterable[Report]) -> list[Statement]:
    """At most one statement: the merged findings of all reports, stated with the tool or in their text."""
    bodies, model = ctx.recorder.bodies, ctx.task.findings
    stated = []
    for report in reports:
        if report["findings"]:
            stated.append(model.model_validate(bodies[report["findings"][-1]]))
        elif report["versions"]:
            read = read_findings(bodies.text(report["versions"][-1]["content"]), model).findings
            stated += [read] if read else []
    if not stated:
        return []
    return [
        Statement(findings=bodies.keep(merge_findings(stated).model_dump(mode="json", exclude_none=True)), repaired=[])
    ]


def joined_reports(texts: Mapping[str, str]) -> str:
    """One paper of several researchers' reports, by seat."""
    return "\n\n".join(f"# Report of {seat}\n\n{text.strip()}" for seat, text in texts.items()) + "\n"
