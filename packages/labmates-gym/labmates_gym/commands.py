"""``labmates gym list``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.stats.tables import Column, Table
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates_gym.catalog import Split, environments

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


class ListParams(Params):
    """Parameters of the list."""

    split: Split | None = Field(None, description="Split: train, framing or game; by default all.")


def list_(_lab: Lab, params: ListParams) -> Iterator[Result]:
    """List the environments with their split, for training or held out by framing or by game."""
    rows = [{"environment": listed.name, "split": listed.split} for listed in environments(params.split)]
    objects = [
        {**row, "kind": listed.kind, "condition": listed.condition}
        for row, listed in zip(rows, environments(params.split), strict=True)
    ]
    table = Table("environments", "Environments", [Column("environment"), Column("split")], rows)
    yield Result((table,), objects=objects)


GYM = Command(
    example="labmates gym list --split framing",
    commands={
        "list": Command(list_, ListParams, example="labmates gym list --split framing", objects="per environment"),
    },
)
