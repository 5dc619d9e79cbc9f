"""``labmates organisations new``, ``check`` and ``draw``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import Field

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import find_organisation, source_of
from labmates.errors import UsageError, explaining, telling
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Named
from labmates.workflows.protocol.command import Command
from labmates_author.commands.shown import NewParams, verdict

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


def new(_lab: Lab, params: NewOrganisationParams) -> Iterator[Result]:
    """Write the file and the prompts of a new working organisation, for you to change."""
    file = copy_organisation(params.like, params.name, Path(params.folder or params.name))
    run = f"labmates run science --task ecology --model scripted:diligent --organisation {file}"
    steps = (f"labmates organisations check {file}", run)
    yield Result((), verdict=[f"wrote {file}", "Next:", *(f"  {step}" for step in steps)])


def draw(_lab: Lab, params: SizedParams) -> Iterator[Result]:
    """Draw the phases, seats and channels of an organisation as Mermaid text."""
    from labmates_author.drawing import mermaid

    organisation = find_organisation(params.name)
    sized = organisation.model_copy(update={"size": params.team_size or organisation.size})
    yield Result((), document=mermaid(sized))


def check(lab: Lab, params: CheckParams) -> Iterator[Result]:
    """Check an organisation in two offline runs with a scripted model; neither is stored.

    The exit code is 1 if a rule is broken.
    """
    from labmates.workflows.science.lab.condition import ScienceCondition
    from labmates_author.organisations import check_organisation

    if not params.baseline.startswith("scripted:"):
        raise UsageError(f"--baseline: '{params.baseline}' is not a scripted model; see: labmates models")
    find_organisation(params.name)
    values = {"task": params.task, "difficulty": "easy", "model": params.baseline, "organisation": params.name}
    size = {} if params.team_size is None else {"team_size": params.team_size}
    condition = cast(ScienceCondition, lab.condition("science", {**values, **size}))
    yield verdict(params.name, lab.finish(check_organisation(condition)), organisation=params.name)


def copy_organisation(like: str, name: str, folder: Path) -> Path:
    """Copy an organisation under another name into a new folder; returns its file.

    Raises
    ------
    UsageError
        If the organisation is unknown, the name is invalid, or the folder is not empty or not writable.
    """
    with telling(f"can't write to '{folder}'"), explaining():
        if folder.exists() and any(folder.iterdir()):
            raise UsageError(f"the folder '{folder}' is not empty; choose another with --folder")
        (_, text), *prompts = source_of(like).items()
        renamed = re.sub(r"^name: .*$", f"name: {name}", text, count=1, flags=re.MULTILINE)
        Organisation.model_validate({**find_organisation(like).model_dump(), "name": name})
        for inner, content in ((f"{name}.yaml", renamed), *prompts):
            (folder / inner).parent.mkdir(parents=True, exist_ok=True)
            (folder / inner).write_text(content, encoding="utf-8")
    return folder / f"{name}.yaml"


NEW = Command(new, NewOrganisationParams, example="labmates organisations new mine --like hybrid")
DRAW = Command(draw, SizedParams, example="labmates organisations draw hybrid")
CHECK = Command(check, CheckParams, example="labmates organisations check solo", objects="")
