"""``labmates organisations``: list, show, draw, check and create organisations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from pydantic import Field

from labmates.agents.organisation_files import ORGANISATIONS, copy_organisation, find_organisation, source_of
from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


class NamedParams(Params):
    """Choice of an organisation."""

    name: str = Field(description="A name, or a YAML file.", json_schema_extra={"argument": True})


class NewParams(Params):
    """The parameters of a new organisation."""

    name: str = Field(description="Name of the new organisation.", json_schema_extra={"argument": True})
    like: str = Field("decentralised", description="Organisation to copy.")
    folder: Path | None = Field(
        None, description="Folder to write to. [default: NAME]", json_schema_extra={"folder": True}
    )


class SizedParams(NamedParams):
    """Choice of an organisation, and of its size."""

    team_size: int | None = Field(None, ge=2, le=16, description="Seats per team; by default the organisation's.")


class DrawParams(SizedParams):
    """The parameters of a drawing."""

    format: Literal["mermaid", "svg"] = Field("mermaid", description="Format of the drawing.")


class CheckParams(SizedParams):
    """The parameters of a check."""

    task: str = Field("anomaly", description="Science task of the two runs.")
    baseline: str = Field("scripted:diligent", description="Scripted model of all agents.")


def listing(_lab: Lab, _params: Params) -> Iterator[Result]:
    """List the organisations of the science lab, or show, draw, check or create one."""
    for name in ORGANISATIONS:
        text = find_organisation(name).description
        row = {"name": name, "description": text, "package": ORGANISATIONS.package(name)}
        yield Result((), verdict=[f"{name:<15}{text}"], objects=[row])


def show(_lab: Lab, params: NamedParams) -> Iterator[Result]:
    """Show the file of an organisation, with its prompts."""
    find_organisation(params.name)
    yield Result((), document="\n".join(f"# {name}\n{text}" for name, text in source_of(params.name).items()))


def draw(_lab: Lab, params: DrawParams) -> Iterator[Result]:
    """Draw the phases, seats and channels of an organisation, as Mermaid text or an SVG file."""
    from labmates.workflows.science.organisation_drawing import mermaid, svg

    organisation = find_organisation(params.name)
    sized = organisation.model_copy(update={"size": params.team_size or organisation.size})
    yield Result((), document=(svg if params.format == "svg" else mermaid)(sized))


def new(_lab: Lab, params: NewParams) -> Iterator[Result]:
    """Write the file and the prompts of a new working organisation, for you to change."""
    file = copy_organisation(params.like, params.name, params.folder or Path(params.name))
    steps = (f"labmates organisations check {file}", f"labmates run science --task ecology --organisation {file}")
    yield Result((), verdict=[f"wrote {file}", "Next:", *(f"  {step}" for step in steps)])


def check(lab: Lab, params: CheckParams) -> Iterator[Result]:
    """Check an organisation in two offline runs with a scripted model; neither is stored.

    The exit code is 1 if a rule is broken.
    """
    from labmates.workflows.science.condition import ScienceCondition
    from labmates.workflows.science.organisation_check import check_organisation

    if not params.baseline.startswith("scripted:"):
        raise UsageError(f"--baseline: '{params.baseline}' is not a scripted model; see: labmates models")
    find_organisation(params.name)
    values = {"task": params.task, "difficulty": "easy", "model": params.baseline, "organisation": params.name}
    size = {} if params.team_size is None else {"team_size": params.team_size}
    condition = cast(ScienceCondition, lab.condition("science", {**values, **size}))
    rules = lab.finish(check_organisation(condition))
    for rule in rules:
        row = {"rule": rule.name, "holds": not rule.fault, "about": rule.about, "fault": rule.fault or None}
        line = f"{'error' if rule.fault else 'ok':<7}{rule.name:<10}{rule.fault or rule.about}"
        yield Result((), verdict=[line], objects=[row])
    if broken := [rule.name for rule in rules if rule.fault]:
        yield Result((), objects=[], fault=f"{params.name}: broken rules: {', '.join(broken)}")


COMMAND = Command(
    listing,
    example="labmates organisations",
    objects="per organisation",
    commands={
        "show": Command(show, NamedParams, example="labmates organisations show pipeline"),
        "draw": Command(draw, DrawParams, example="labmates organisations draw hybrid --format svg > hybrid.svg"),
        "check": Command(check, CheckParams, example="labmates organisations check solo", objects="per rule"),
        "new": Command(new, NewParams, example="labmates organisations new mine --like hybrid"),
    },
)
