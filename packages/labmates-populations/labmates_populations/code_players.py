"""Strategies written as code as players of iterated prisoner's dilemmas, ``scripted:code/FILE.py:CLASS``.

They play against chat models and strategies of the axelrod library, in a confined process as in populations. They get
the same information on the match as a model; where the full match is not representable, they get a shorter one.
"""

from __future__ import annotations

import atexit
import hashlib
import math
import re
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np

from labmates.agents.players.base import Player, StrategyError, player
from labmates.errors import UsageError
from labmates.games.iterated.match import Action, Payoffs, Round
from labmates_populations.engine.attitudes import falls_back_to_cooperation
from labmates_populations.engine.library import read_text
from labmates_populations.engine.workers import Batch, Loaded, Workers
from labmates_populations.repeated import MOST_ROUNDS, ByCount

CODE: Final = "code/"
"""How the names of these players begin."""
_UNKNOWN_END = 200
"""Rounds announced to a strategy when the end is unknown: the maximum of a match under repetition."""


def code_player(name: str) -> type[Player]:
    """The player that follows a strategy, ``FILE.py:CLASS``; records append ``@`` and a digest of the file.

    Raises
    ------
    UsageError
        If the class is not in the file, or the file's digest differs.
    """
    given, _, digest = name.partition("@")
    file, colon, strategy = given.rpartition(":")
    if not colon or not file or not strategy.isidentifier():
        raise UsageError(f"a strategy is named scripted:{CODE}FILE.py:CLASS, not 'scripted:{CODE}{name}'")
    text = read_text(Path(file))
    actual = hashlib.sha256(text.encode()).hexdigest()[:12]
    if digest not in ("", actual):
        raise UsageError(f"{file} has changed: its digest is {actual}, but scripted:{CODE}{name} names {digest}")
    if not re.search(rf"^class {strategy}\b", text, re.MULTILINE):
        raise UsageError(f"{file} has no class '{strategy}'")
    about = f"Plays the strategy {strategy} of {file}."
    return player(f"{CODE}{given}@{actual}", about, partial(_choose, file, text, strategy))


@cache
def _workers() -> Workers:
    workers = Workers(processes=1)
    atexit.register(workers.close)
    return workers


@cache
def _loaded(file: str, text: str) -> dict[str, Loaded]:
    return {loaded.name: loaded for loaded in _workers().load(file, text)}


def _choose(
    file: str, text: str, strategy: str, rounds: Sequence[Round], payoffs: Payoffs, length: float, seed: int
) -> Action:
    """The next move: the strategy decides in all rounds anew, with its moves replaced by the recorded ones."""
    loaded = _loaded(file, text).get(strategy)
    if loaded is None:
        raise StrategyError(f"{strategy} is not a strategy")
    if loaded.problems:
        raise StrategyError(loaded.problems[0])
    announced = max(_UNKNOWN_END, len(rounds) + 1) if math.isinf(length) else int(length)
    cooperate, defect = (payoffs.sucker, payoffs.reward), (payoffs.punishment, payoffs.temptation)
    game = ByCount(2, min(announced, MOST_ROUNDS), cooperate=cooperate, defect=defect)
    played = np.array([[own == "C", other == "C"] for own, other in rounds], dtype=bool).reshape(1, -1, 2)
    others = np.concatenate([played[:, :, 1:], np.zeros((1, 1, 1), bool)], axis=1)
    falls_back = frozenset({loaded.index} if falls_back_to_cooperation(loaded.attitude) else ())
    batch = Batch(
        game, np.array([[loaded.index]]), seed, cooperate=falls_back, opponents=others, given=played[:, :, :1]
    )
    [result] = _workers().play([batch])
    if loaded.index in result.errors:
        raise StrategyError(result.errors[loaded.index].what)
    return "C" if result.actions[0, len(rounds), 0] else "D"
