"""Strategies of the library axelrod as players, ``scripted:axelrod/TitForTat`` and so on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from labmates.agents.players.base import LIBRARY, Player, player
from labmates.games.iterated.library import check_playable, library_action, library_names, unknown_strategy
from labmates.games.iterated.match import Action, Payoffs, Round


def library_player(name: str) -> type[Player]:
    """The player that follows the strategy `name`.

    Raises
    ------
    UsageError
        If the library has none of that name.
    MissingExtraError
        If the library is not installed.
    """
    if name not in library_names():
        raise unknown_strategy(name)
    return player(
        f"{LIBRARY}{name}", f"Plays as the strategy {name} of the library axelrod does.", partial(_choose, name)
    )


def _choose(name: str, rounds: Sequence[Round], payoffs: Payoffs, length: float, seed: int) -> Action:
    return library_action(name, rounds, payoffs=payoffs, length=length, seed=seed)


def check_player(baseline: str, payoffs: Payoffs) -> None:
    """Check that a scripted player can play the iterated prisoner's dilemma with these payoffs.

    Raises
    ------
    UsageError
        If it is one of the library's that can't.
    """
    if baseline.startswith(LIBRARY):
        check_playable(baseline.removeprefix(LIBRARY), payoffs)
