"""``labmates mechanisms check``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labmates.mechanisms.registry import make_mechanisms
from labmates.workflows.dilemmas.catalog import MechanismParams, table_named
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.command import Command
from labmates_author.commands.shown import checked

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


def check(_lab: Lab, params: MechanismParams) -> Iterator[Result]:
    """Check a mechanism, or nested ones (contract+repetition). The exit code is 1 if there are problems."""
    from labmates_author.mechanisms import check_mechanism, untested

    parts = make_mechanisms(params.name, params.terms)
    games = {table.name: table.game() for table in map(table_named, params.games)} or None
    yield Result((), verdict=list(untested(parts, games or {})))
    yield checked(params.name, check_mechanism(parts, games))


CHECK = Command(check, MechanismParams, example="labmates mechanisms check my-mechanism --game prisoners")
