"""``labmates organisations``: list, show, draw, check and create organisations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import Field

from labmates.agents.organisation_files import ORGANISATIONS, copy_organisation, find_organisation, source_of
from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Named, NewParams, catalogue, verdict
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


class NewOrganisationParams(NewParams):
    """The parameters of a new organisation."""

    like: str = Field("decentralised", description="Organisation to copy.")


class SizedParams(Named):
    """Choice of an organisation, and of its size."""

    team_size: int | None = Field(None, ge=2, le=16, description="Seats per team; by default the organisation's.")


class CheckParams(SizedParams):
    """The parameters of a check."""

    task: str = Field("anomaly", description="Science task of the two runs.")
    baseline: str = Field("scripted:diligent", description="Scripted model of all agents.")


def show(_lab: Lab, params: Named) -> Iterator[Result]:
    """Show the file of an organisation, with its prompts."""
    find_organisation(params.name)
    yield Result((), document="\n".join(f"# {name}\n{text}" for name, text in source_of(params.name).items()))


def draw(_lab: Lab, params: SizedParams) -> Iterator[Result]:
    """Draw the phases, seats and channels of an organisation as Mermaid text."""
    from labmates.workflows.science.verbs.drawing import mermaid

    organisation = find_organisation(params.name)
    sized = organisation.model_copy(update={"size": params.team_size or organisation.size})
    yield Result((), document=mermaid(sized))


def new(_lab: Lab, params: NewOrganisationParams) -> Iterator[Result]:
    """Write the file and the prompts of a new working organisation, for you to change."""
    file = copy_organisation(params.like, params.name, Path(params.folder or params.name))
    run = f"labmates run science --task ecology --model scripted:diligent --organisation {file}"
    steps = (f"labmates organisations check {file}", run)
    yield Result((), verdict=[f"wrote {file}", "Next:", *(f"  {step}" for step in steps)])


def check(lab: Lab, params: CheckParams) -> Iterator[Result]:
    """Check an organisation in two offline runs with a scripted model; neither is stored.

    The exit code is 1 if a rule is broken.
    """
    from labmates.workflows.science.lab.condition import ScienceCondition
    from labmates.workflows.science.verbs.check import check_organisation

    if not params.baseline.startswith("scripted:"):
        raise UsageError(f"--baseline: '{params.baseline}' is not a scripted model; see: labmates models")
    find_organisation(params.name)
    values = {"task": params.task, "difficulty": "easy", "model": params.baseline, "organisation": params.name}
    size = {} if params.team_size is None else {"team_size": params.team_size}
    condition = cast(ScienceCondition, lab.condition("science", {**values, **size}))
    rules = lab.finish(check_organisation(condition))
    passed = not any(rule["status"] == "error" for rule in rules)
    yield verdict(params.name, rules, passed=passed, organisation=params.name)


ORGANISATIONS_COMMAND = catalogue(
    "List the organisations of the science lab, or show, draw, check or create one.",
    ORGANISATIONS,
    lambda name: {"title": find_organisation(name).description},
    {
        "show": Command(show, Named, example="labmates organisations show pipeline"),
        "draw": Command(draw, SizedParams, example="labmates organisations draw hybrid"),
        "check": Command(check, CheckParams, example="labmates organisations check solo", objects=""),
        "new": Command(new, NewOrganisationParams, example="labmates organisations new mine --like hybrid"),
    },
    example="labmates organisations show hybrid",
    objects="per organisation",
)
