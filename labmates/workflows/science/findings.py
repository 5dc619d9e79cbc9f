"""Findings as the teams of the lab state them: checked against the task, recorded, and shown to later teams."""

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
from labmates.workflows.science.context import LabContext
from labmates.workflows.science.state import Phase, Report, Statement

MOST_FAULTS = 8
"""Maximum number of faults reported for one statement."""


# Making a schema takes longer than a model call's whole overhead, and the runs of a study have the same one.
_parameters = cache(findings_parameters)


def findings_form(task: Task[Any, Any]) -> FindingsForm:
    """Instructions for stating the findings of a task.

    Nothing of a statement is recorded unless all of it is valid; a number written as text is mended and told.
    """
    model: type[BaseModel] = task.findings

    def check(values: Mapping[str, Any]) -> Stated:
        read = check_findings(values, model)
        if read.problems or read.findings is None:
            raise ToolError(_refusal(read.problems, model))
        stated = read.findings.model_dump(mode="json", exclude_none=True)
        repaired = [repair.as_json() for repair in read.repaired]
        return Stated(stated, tuple(repaired), _receipt(stated, [str(repair) for repair in read.repaired], model))

    return FindingsForm(_parameters(model), check)


def paper_faults(paper: str, task: Task[Any, Any]) -> str:
    """Reasons why findings can't be read in full from a paper; empty if they can."""
    return "; ".join(read_findings(paper, task.findings).problems[:MOST_FAULTS])


def keep_findings(
    ctx: LabContext, phase: Phase, agent: str, before: int, stated: Sequence[Statement], place: str = "findings"
) -> list[int]:
    """Record what an agent stated, unless the record holds it from before the run was resumed; return the bodies.

    Parameters
    ----------
    before
        How often the team stated findings before.
    place
        The step within the phase.
    """
    for version, statement in enumerate(stated, before + 1):
        where = {"step": f"{phase['team']}/{phase['number']}/{place}/{version}", "team": phase["team"], "agent": agent}
        ctx.recorder.once(FindingsEvent(**where, version=version, **statement))
    return [statement["findings"] for statement in stated]


def statement(bodies: Bodies, stated: Stated) -> Statement:
    """A statement with its values stored as a body."""
    return Statement(findings=bodies.keep(dict(stated.values)), repaired=[dict(one) for one in stated.repaired])


def findings_json(values: object) -> str:
    """Stated findings as compact JSON, one field a line."""
    if not isinstance(values, dict) or not values:
        return "{}"
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return "{" + ",\n ".join(lines) + "}"


def stated_texts(stated: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Findings of each team, as in `findings_json`; a value that the next team repeated appears there alone.

    Parameters
    ----------
    stated
        Findings by team, in the order of the teams.
    """
    texts = {}
    for place, (team, values) in enumerate(stated.items()):
        after = next(islice(stated.items(), place + 1, None), None)
        same = [name for name, value in values.items() if after and after[1].get(name) == value]
        changed = {name: value for name, value in values.items() if name not in same}
        remark = f"\nThe same as the {after[0]} team's: {', '.join(same)}." if after and same else ""
        texts[team] = findings_json(changed) + remark
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
    """The merged findings of all reports that state some, with the tool or as a block of their text; at most one."""
    bodies, model = ctx.recorder.bodies, ctx.task.findings
    stated = []
    for report in reports:
        if report["findings"]:
            stated.append(model.model_validate(bodies[report["findings"][-1]]))
        elif report["versions"] and (read := read_findings(bodies.text(report["versions"][-1]), model).findings):
            stated.append(read)
    if not stated:
        return []
    return [
        Statement(findings=bodies.keep(merge_findings(stated).model_dump(mode="json", exclude_none=True)), repaired=[])
    ]


def joined_reports(texts: Mapping[str, str]) -> str:
    """One paper out of the reports of several researchers, by seat."""
    return "\n\n".join(f"# Report of {seat}\n\n{text.strip()}" for seat, text in texts.items()) + "\n"
