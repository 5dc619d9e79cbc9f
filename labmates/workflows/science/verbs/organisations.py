"""``labmates organisations``: list, show and draw organisations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.agents.organisation_files import ORGANISATIONS, find_organisation, source_of
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Named, catalogue
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


class SizedParams(Named):
    """Choice of an organisation, and of its size."""

    team_size: int | None = Field(None, ge=2, le=16, description="Seats per team; by default the organisation's.")


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


ORGANISATIONS_COMMAND = catalogue(
    "List the organisations of the science lab, or show or draw one.",
    ORGANISATIONS,
    lambda name: {"title": find_organisation(name).description},
    {
        "show": Command(show, Named, example="labmates organisations show pipeline"),
        "draw": Command(draw, SizedParams, example="labmates organisations draw hybrid"),
    },
    example="labmates organisations show hybrid",
    objects="per organisation",
)
