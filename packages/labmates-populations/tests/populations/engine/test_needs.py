"""A strategy plays with what it needs of its file, as if the whole file were executed."""

from __future__ import annotations

import numpy as np
import pytest

from labmates_populations.engine.kernel.source import read_source
from labmates_populations.engine.kernel.ways import COMPILED
from labmates_populations.engine.workers import Batch, Workers
from labmates_populations.repeated import make_repeated
from tests.support.strategies import HEAD, strategy

HELPERS = """
from collections import namedtuple

Pair = namedtuple("Pair", "a b")
LEVELS = [x / 10 for x in range(3)]


@dataclass
class Memory:
    pair: Pair = None


def levels():
    return LEVELS
"""

ACTING = {
    "a decorator": "KNOWN = []\ndef kept(f):\n    KNOWN.append(f)\n    return f\n@kept\ndef f(): pass",
    "a call": "KNOWN = []\ndef note():\n    KNOWN.append(1)\n    return 1\nX = note()",
    "a call by another": "KNOWN = []\ndef note(_):\n    KNOWN.append(1)\nX = list(map(note, [1]))",
    "a call for a default": "KNOWN = []\nnote = KNOWN.append\ndef f(x=note(1)): pass",
    "a call in a class": "KNOWN = []\ndef note():\n    KNOWN.append(1)\nclass A:\n    x = note()",
    "a method of a value": "KNOWN = [0, 1]\nFIRST = KNOWN.pop()",
    "a base that counts": "KNOWN = []\nclass A:\n    def __init_subclass__(cls): KNOWN.append(1)\nclass B(A): pass",
    "a loop": "KNOWN = []\nfor x in [1]:\n    KNOWN.append(x)",
}
"""Code that leaves one item in a list, which nothing that a strategy names does."""

INHERITED = f"""{HEAD}
class Shared(BaseStrategy):
    least = 1

    def __init__(self, game_description):
        super().__init__(game_description)
        self.others = game_description.n_players - 1

    def share(self, history):
        return history.opponent_cooperators[-1] / self.others


class Level(Shared):
    def __call__(self, history):
        return C if not history.round_number or self.share(history) >= self.least else D


class Strategy_COLLECTIVE_1(Level):
    pass


class Strategy_COLLECTIVE_2(Strategy_COLLECTIVE_1):
    def __call__(self, history):
        return super().__call__(history).flip()


class Strategy_COLLECTIVE_3(Shared):
    least = 0.5

    def __call__(self, history):
        return C if history.round_number % 2 else D
"""


def _moves(workers: Workers, text: str, name: str, rounds: int = 4) -> list[list[bool]]:
    """The moves of a group of all strategies of a file."""
    loaded = workers.load(name, text)
    assert [one.problems for one in loaded] == [()] * len(loaded)
    groups = np.array([[one.index for one in loaded]])
    [result] = workers.play([Batch(make_repeated("collective-risk", len(loaded), rounds), groups, seed=0)])
    assert result.errors == {}
    found: list[list[bool]] = result.actions[0].T.tolist()
    return found


def test_helpers_of_others_keep_no_strategy_from_being_compiled() -> None:
    helped = strategy("return C if levels() and Memory() else D", name="Strategy_SELFISH_2")
    first, second = read_source(HEAD + HELPERS + strategy("return C") + helped, "test.py")
    assert first.found.way == COMPILED
    assert second.found.why.endswith("needs more of its file than imports and constants")
    assert len(second.code) > len(first.code)
    [shown] = read_source(HEAD + strategy("return C if f'{1}' else D"), "test.py")
    assert shown.found.why == "line 18: an f-string"


def test_an_import_that_is_not_allowed_keeps_only_those_from_playing_that_need_it() -> None:
    text = HEAD + "import os\n" + strategy("return C") + strategy("os\nreturn C", name="Strategy_SELFISH_2")
    first, second = read_source(text, "test.py")
    assert first.playable
    [problem] = second.found.problems
    assert problem.startswith("line 12: imports 'os'; allowed are abc, bisect, ")


@pytest.mark.parametrize("head", ACTING.values(), ids=ACTING)
def test_what_acts_on_what_a_strategy_needs_is_kept(workers: Workers, head: str) -> None:
    text = f"{HEAD}{head}\n{strategy('return C if len(KNOWN) == 1 else D')}"
    two = text + strategy("return D", name="Strategy_SELFISH_2")
    assert _moves(workers, two, f"acting{list(ACTING.values()).index(head)}.py") == [[True] * 4, [False] * 4]


def test_draws_of_the_file_come_before_those_of_its_strategies(workers: Workers) -> None:
    drawing = strategy("return C if random.random() < 0.5 else D") + strategy("return D", name="Strategy_SELFISH_2")
    heads = {"none": "X = []\nX.append(1)", "unused": "X = random.random()", "loop": "for x in [1]: random.random()"}
    moves = {name: _moves(workers, f"{HEAD}{head}{drawing}", f"{name}.py", 40)[0] for name, head in heads.items()}
    assert moves["unused"] == moves["loop"] != moves["none"]


def test_strategies_inherit_from_classes_of_their_file(workers: Workers) -> None:
    # The first cooperates after all others did, the second does the opposite, the third alternates.
    assert _moves(workers, INHERITED, "inherited.py") == [
        [True, False, True, False],
        [False, True, True, True],
        [False, True, False, True],
    ]
