"""``labmates organisations``: list and show organisations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labmates.agents.organisation_files import ORGANISATIONS, find_organisation, source_of
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Named, catalogue
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


def show(_lab: Lab, params: Named) -> Iterator[Result]:
    """Show the file of an organisation, with its prompts."""
    find_organisation(params.name)
    yield Result((), document="\n".join(f"# {name}\n{text}" for name, text in source_of(params.name).items()))


ORGANISATIONS_COMMAND = catalogue(
    "List the organisations of the science lab, or show one.",
    ORGANISATIONS,
    lambda name: {"title": find_organisation(name).description},
    {"show": Command(show, Named, example="labmates organisations show pipeline")},
    example="labmates organisations show hybrid",
    objects="per organisation",
)
