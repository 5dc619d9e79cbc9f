"""A straightforward engine to compare with: an object per player, and fresh arrays for each decision.

It is our own stand-in for the published program's approach, of which only such facts are used: a game object holds
arrays of all rounds, each player's history is built anew each round (views of the own columns, a mask and a sum over
the opponents), answers are checked, and nothing is isolated.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.games.repeated import RepeatedGame
from labmates.workflows.populations.engine.kernel import interface
from labmates.workflows.populations.engine.kernel.engine import describe


def load(text: str) -> list[type[Any]]:
    """Load a file of strategies as a module, with the published names; for our own code alone."""
    import sys

    for name in ("common", "games", "players"):
        module = types.ModuleType(f"emergent_llm.{name}")
        module.__dict__.update(vars(interface))
        sys.modules[f"emergent_llm.{name}"] = module
    sys.modules.setdefault("emergent_llm", types.ModuleType("emergent_llm"))
    names: dict[str, Any] = {"__name__": "strategies"}
    exec(compile(text, "strategies", "exec"), names)
    return [one for name, one in names.items() if name.startswith("Strategy_")]


@dataclass
class _History:
    my_actions: NDArray[np.bool_]
    my_payoffs: NDArray[np.float64]
    opponent_cooperators: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.my_actions.flags.writeable = False
        self.my_payoffs.flags.writeable = False
        self.opponent_cooperators.flags.writeable = False

    @property
    def round_number(self) -> int:
        return len(self.my_actions)


class _Player:
    def __init__(self, strategy: type[Any], game: RepeatedGame) -> None:
        self.decide = strategy(describe(game))
        self.errors = 0

    def __call__(self, history: _History) -> interface.Action:
        try:
            answer = self.decide(history)
            if not isinstance(answer, interface.Action):
                raise TypeError(f"{type(answer).__name__} is no action")
            return answer
        except Exception:
            self.errors += 1
            return interface.D


def play(strategies: list[type[Any]], game: RepeatedGame) -> NDArray[np.float64]:
    """Play one game and return its payoffs, ``(rounds, players)``."""
    n = game.n_players
    players = [_Player(one, game) for one in strategies]
    actions, payoffs = np.zeros((game.n_rounds, n), dtype=bool), np.zeros((game.n_rounds, n))
    for t in range(game.n_rounds):
        answers = []
        for i, player in enumerate(players):
            others = np.ones(n, dtype=bool)
            others[i] = False
            cooperators = actions[:t][:, others].sum(axis=1).astype(np.int64)
            answers.append(player(_History(actions[:t, i], payoffs[:t, i], cooperators)))
        actions[t] = [bool(answer) for answer in answers]
        payoffs[t] = game.payoffs(actions[t : t + 1], None)[0]
    return payoffs
