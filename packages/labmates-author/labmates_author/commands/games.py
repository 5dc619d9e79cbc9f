"""``labmates games check``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labmates.games.registry import make_game
from labmates.workflows.games.catalog import GameParams
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.command import Command
from labmates_author.commands.shown import checked

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


def check(_lab: Lab, params: GameParams) -> Iterator[Result]:
    """Check a game, such as your own. The exit code is 1 if there are problems."""
    from labmates_author.games import check_game

    yield checked(params.name, check_game(make_game(params.name, params.rules)))


CHECK = Command(check, GameParams, example="labmates games check my-game")
