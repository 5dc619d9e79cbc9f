"""Strategies to measure with: many small classes of the kinds that models write, made from a few patterns."""

from __future__ import annotations

_HEAD = '''"""Strategies for measurements."""

import math
import random

import numpy as np

from emergent_llm.common import Action, C, D, PlayerHistory
from emergent_llm.games import CollectiveRiskDescription, CommonPoolDescription, PublicGoodsDescription
from emergent_llm.players import BaseStrategy
'''

_CLASS = """

class Strategy_{attitude}_{number}(BaseStrategy):
    def __init__(self, game_description):
        self.game_description = game_description
        self.others = max(1, game_description.n_players - 1)
        self.rounds = game_description.n_rounds
        self.bar = {bar}
        self.memory = 0

    def __call__(self, history: PlayerHistory) -> Action:
{body}
"""

_FIRST = "        if history.round_number == 0:\n            return {first}\n"
_BODIES = (
    # Constant, or a look at the last round.
    "        return {first}\n",
    _FIRST + "        return C if history.opponent_cooperators[-1] >= self.bar * self.others else D\n",
    """        t = history.round_number
        if t == 0 or t == self.rounds - 1:
            return {first}
        rate = history.opponent_cooperators[-1] / self.others
        return C if rate >= self.bar else D
""",
    """        if history.round_number == 0:
            return {first}
        last = int(history.opponent_cooperators[-1])
        if self.memory > 0:
            self.memory -= 1
            return D
        if last < self.bar * self.others:
            self.memory = 2
            return D
        return C
""",
    # The whole history.
    """        if history.round_number == 0:
            return {first}
        total = int(np.sum(history.opponent_cooperators))
        return C if total >= self.bar * self.others * history.round_number else D
""",
    """        if history.round_number < 2:
            return {first}
        recent = history.opponent_cooperators[-3:]
        mean = sum(recent) / (len(recent) * self.others)
        trend = recent[-1] - recent[0]
        return C if mean + 0.1 * trend / self.others >= self.bar else D
""",
    """        if history.round_number == 0:
            return {first}
        streak = 0
        for i in range(history.round_number - 1, -1, -1):
            if history.opponent_cooperators[i] < self.bar * self.others:
                break
            streak += 1
        return C if streak >= 1 or history.my_actions[-1] and streak else D
""",
    """        if history.round_number == 0:
            return {first}
        stay = bool(history.my_actions[-1])
        pleased = history.my_payoffs[-1] >= self.bar * 2
        return C if stay == bool(pleased) else D
""",
    # Chance.
    """        if history.round_number == 0:
            return {first}
        rate = history.opponent_cooperators[-1] / self.others
        return C if random.random() < rate * self.bar else D
""",
)
_WEIGHTS = (2, 4, 5, 3, 2, 2, 2, 1, 2)


def strategies(count: int, attitudes: tuple[str, ...] = ("COLLECTIVE", "EXPLOITATIVE")) -> str:
    """Return a file with `count` strategies of each attitude, in the published form."""
    order = [body for body, weight in zip(_BODIES, _WEIGHTS, strict=True) for _ in range(weight)]
    parts = [_HEAD]
    for attitude in attitudes:
        kind = attitude == "COLLECTIVE"
        for number in range(1, count + 1):
            body = order[number * 7 % len(order)].format(first="C" if kind else "D")
            bar = round((0.2 if kind else 0.5) + 0.4 * (number % 11) / 11, 3)
            parts.append(_CLASS.format(attitude=attitude, number=number, bar=bar, body=body))
    return "".join(parts)
