"""``labmates demo``: an offline run of the lab, in under a minute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.errors import telling
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab

DIAGRAM = "data → model → eval → writing"


class DemoParams(Params):
    """The parameters of the demo."""

    task: str = Field("ecology", description="The science task (see: labmates tasks).")
    seed: int = Field(0, ge=0, description="Seed of the run.")
    reports: Path = Field(
        Path("labmates-reports"),
        description="Folder for the report.",
        json_schema_extra={"folder": True},
    )


def demo(lab: Lab, params: DemoParams) -> Iterator[Result]:
    """Run one science task with a scripted team, offline.

    Four teams of scripted agents analyse a synthetic data set with known truth under one budget, and write a report;
    two judges score it. No model is called and no key is needed: the agents are the baseline scripted:diligent.
    """
    from labmates.agents.organisation_parts import REPORT
    from labmates.records.reading import newest_artifact

    condition = lab.condition("science", {"task": params.task, "model": "scripted:diligent"})
    with telling(f"can't write reports to '{params.reports}'"):
        params.reports.mkdir(parents=True, exist_ok=True)
    summary = f"Task {params.task}, four teams of scripted:diligent ({DIAGRAM}), one pool of credits."
    yield Result((), verdict=[summary])
    run = lab.run(condition, seed=params.seed)
    report = newest_artifact(lab.store, run.id, REPORT)
    if report is not None:
        path = params.reports / f"{run.id}.md"
        path.write_text(report, encoding="utf-8", errors="replace")
        yield Result((), verdict=[f"The report is in {path}"])


DEMO = Command(demo, DemoParams, example="labmates demo", has_store=True)
