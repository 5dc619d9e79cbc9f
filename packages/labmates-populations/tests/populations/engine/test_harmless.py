"""Which classes are shown to be harmless by their text, and that they do together what they do alone."""

from __future__ import annotations

import ast
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labmates_populations.engine.kernel.harmless import harmless
from labmates_populations.engine.kernel.names import CALLS, CONSTANTS, DRAWS, TYPES, harmless_names, table_name
from labmates_populations.engine.kernel.source import read_source
from labmates_populations.engine.kernel.syntax import UnfitError
from labmates_populations.engine.kernel.ways import COMPILED
from labmates_populations.engine.workers import Batch, Workers
from labmates_populations.repeated import make_repeated
from tests.populations.engine.attacks import ATTACKS, attack
from tests.support.random_programs import random_bodies
from tests.support.strategies import HEAD, strategy

UNFIT = {
    "a generator that waits": "return C if sum(x async for x in [1, 2]) else D",
    "text of a thing": "return C if str(history) else D",
    "a formatted text": "x = f'{history}'\nreturn C",
    "format by another name": "look = str.format\nlook('{0}', 1)\nreturn C",
    "a hidden attribute": "history.my_actions.base\nreturn C",
    "an array over memory": "np.ndarray((1,), dtype=object, buffer=np.zeros(1))\nreturn C",
    "an array of objects": "np.zeros(1, dtype=object)\nreturn C",
    "arrays through map": "list(map(np.ndarray, [(1,)]))\nreturn C",
    "itself as a value": "x = [self]\nreturn C",
    "its method as a value": "x = self.__call__\nreturn C",
    "a class": "class A: pass\nreturn C",
    "an import": "import math\nreturn C",
    "a set": "x = {self.n, 1}\nreturn C",
    "an address": "return C if id(history) % 2 else D",
    "a handler of everything at the end": "while True:\n    try:\n        pass\n    finally:\n        continue",
    "an attribute of a module": "np.mean.n = 1\nreturn C",
    "an attribute of an action": "C.n = 1\nreturn C",
    "a seed of numpy": "np.random.seed(1)\nreturn C",
    "a default that can change": "def f(x=[]): return x\nreturn C",
    "a keyword of numpy": "np.sum(np.ones(2), out=np.ones(1))\nreturn C",
    "another thing as itself": "self = C\nself.n = 1\nreturn C",
    "another thing as itself in a loop": "for self in [C]: self.n = 1\nreturn C",
    "another thing as itself in a list": "[0 for self in [C]]\nreturn C",
    "another thing as itself by an error": "try: pass\nexcept ValueError as self: self.n = 1\nreturn C",
    "another thing as itself in a function": "def f():\n    self = C\n    self.n = 1\nf()\nreturn C",
    "an array of objects by its place": "np.zeros(1, 'O')\nreturn C",
    "an array of objects by a list": "np.zeros(*[1, 'O'])\nreturn C",
    "an array of texts": "np.array([history]).astype(str)\nreturn C",
    "an array that is written": "np.add(1, 2, np.zeros(1))\nreturn C",
    "a sum of objects": "history.my_actions.sum(0, 'O')\nreturn C",
    "a name of the interpreter": "return C if __name__ else D",
    "a function of the rewritten code": "return C if power(2, 3) else D",
    "a set of itself": "x = set()\nx.add(self)\nreturn C",
    "an attribute of a function with a name": "f = lambda: 0\nf.n = 1\nreturn C",
    "its class": "x = self.__class__\nreturn C",
    "a function of numpy as a value": "f = np.zeros\nreturn C",
    "a function of numpy by another name": "f = max\nmax = np.zeros\nreturn C",
    "what is imported and something else": "np = C\nreturn C",
    "the list of the class behind its own": "del self.OFTEN\nself.OFTEN.append(1)\nreturn C",
    "its class by a variable": "Strategy_SELFISH_1 = 1\nreturn C",
    "an action of more than a number": "Action('A', ['a', 'b'])\nreturn C",
    "a handler of everything": "try:\n    pass\nexcept:\n    pass\nreturn C",
    "a method of arrays as a value": "f = history.my_actions.astype\nreturn C",
    "an attribute of its function": "x = self.__call__.__globals__\nreturn C",
}
FIT = {
    "its own attributes": "self.n = getattr(self, 'n', 0) + 1\nreturn C if self.n % 2 else D",
    "arrays": "return C if np.mean(history.opponent_cooperators[-2:] >= 1) > 0.5 else D",
    "lists": "x = [int(n) for n in history.opponent_cooperators.tolist()]\nx.sort()\nreturn C if sum(x) % 3 else D",
    "functions": "def rate(i, base=2): return history.opponent_cooperators[i] / base\n"
    "return C if history.round_number and rate(-1, base=3) > 0.3 else D",
    "errors": "try:\n    return C if history.opponent_cooperators[-1] else D\nexcept IndexError:\n    return D",
    "names that hide builtins": "len = history.round_number\nreturn C if len > 2 else D",
    "keys": "return C if max([1, 2], key=lambda x: -x) == 1 else D",
    "a generator that is consumed": "return C if all(n > 0 for n in history.opponent_cooperators) else D",
    "chance": "return C if random.random() < 0.5 else D",
    "a shorter history": "h = PlayerHistory(my_actions=history.my_actions[1:], my_payoffs=history.my_payoffs[1:],\n"
    "                  opponent_cooperators=history.opponent_cooperators[1:])\n"
    "return C if h.round_number % 2 or sum(h.opponent_cooperators) > 3 else D",
    "histories by places": "x = history.opponent_cooperators\nh = PlayerHistory(x > 1, x / 2, x)\n"
    "h.my_payoffs[:1] = 1\nreturn C",
    "sums along an axis": "x = np.array([[0.1, 0.2], [history.round_number, 0.3]])\n"
    "y = np.sum(x, axis=0) * np.mean(x, axis=1) + np.sum(x, 1) * np.mean(x, 0) + np.sum(x > 0) * np.mean(x)\n"
    "return C if np.sum(y) % 1 > 0.5 else D",
    "sums along no axis": "return C if np.mean(history.my_actions, axis=1) > 0 else D",
    "means of nothing": "return C if np.mean(history.my_actions[:0]) != np.sum(history.my_actions[:0]) else D",
    "what may have a list": "x = history.opponent_cooperators\n"
    "return C if sum(x.tolist() if hasattr(x, 'tolist') else x) % 2 else D",
    "words": "self.mode = 'kind' if history.round_number < 3 else 'hard'\nreturn C if self.mode in {'kind'} else D",
    "its own error": "raise ValueError('no')",
    "no answer": "return history.round_number",
    "division by nothing": "return C if history.opponent_cooperators.sum() / np.float64(0) > 0 else D",
    "a set of numbers": "seen = set(history.my_payoffs.tolist())\nfor n in history.opponent_cooperators: seen.add(n)\n"
    "seen.update([0, 1.0])\nreturn C if len(seen) % 2 and max(seen) in seen | {9} or sum(seen) > 5 else D",
    "a set of constants": "x = {1, 2, 2}\nx.add(history.round_number)\nreturn C if len(x) == 3 else D",
    "one of a few numbers": "n = self.game_description.n_players\n"
    "return C if history.round_number in {n - 2, n, 'a'} else D",
    "functions with a name": "rate = lambda n, base=2: n / base\nreturn C if rate(history.round_number) >= 1 else D",
    "one of two functions": "if history.round_number % 2:\n    def rate(): return 0\n"
    "else:\n    def rate(): return 1\nreturn C if rate() else D",
    "numbers that a generator unpacks": "a, b = (n * 2 for n in range(2))\n"
    "return C if history.round_number > b - a else D",
    "a number too few to unpack": "a, b = (n for n in history.opponent_cooperators[-1:])\nreturn C",
    "its name": "return C if self.__class__.__name__ == type(self).__name__ and len(type(self).__name__) > 5 else D",
    "an action by its number": "return Action(int(history.my_actions[-1])) if history.round_number else C",
    "an unknown action": "return Action(history.round_number)",
    "a part of an array": "last = slice(-2, None)\nreturn C if history.opponent_cooperators[last].sum() > 2 else D",
    "places of an array": "return C if len(np.flatnonzero(history.opponent_cooperators > 1)) % 2 else D",
    "a generator of random numbers that nothing reads": "self.r = random.Random()\n"
    "return C if random.random() < 0.5 else D",
    "a generator of random numbers that is read": "self.r = random.Random()\nreturn C if self.r.random() < 0.5 else D",
    "a generator of random numbers with a seed": "r = random.Random(7)\nx = [1, 2, 3]\nr.shuffle(x)\n"
    "return C if x[history.round_number % 3] > 1 else D",
    "functions as values": "f = [len, lambda x: sum(x)]\nself.f = f\n"
    "return C if self.f[history.round_number % 2](history.my_actions.tolist()) % 2 else D",
    "its method as a value": "f = self.some\nreturn C if f(history.round_number) else D",
    "a value that can't be called": "f = [1]\nf[0]()\nreturn C",
    "a generator that is kept": "x = (i for i in range(3))\nnext(x)\nreturn C if next(x) == 1 else D",
    "a history without payoffs": "PlayerHistory(history.my_actions, history.my_actions)\nreturn C",
    "a key of a dict": "d = {0: history.round_number, 1: 2}\nreturn C if max(d, key=d.get) else D",
    "items by their names": "d = {}\nd.update(start=1, n=2)\nreturn C if d == {'start': 1, 'n': 2} else D",
    "one of some cases": "match history.round_number:\n    case 0 | 2:\n        return C\n"
    "    case _:\n        return D",
    "an error by any name": "try:\n    [][1]\nexcept BaseException as error:\n    return C\nreturn D",
    "constants of the class": "self.OFTEN.append(len(self.OFTEN))\nself.TABLE['a'] += 1\n"
    "return C if sum(self.OFTEN) % 3 and self.TABLE['a'] > 2 and type(self).LEAST == self.LEAST else D",
    "a hash": "return C if hash((history.round_number, 2.5, 'a')) % 2 else D",
    "a seed": "random.seed(history.round_number)\nreturn C if random.random() < 0.5 else D",
    "a seed of what was drawn": "random.seed()\nreturn C if random.random() < 0.5 else D",
    "an invalid seed": "random.seed([history.round_number])\nreturn C",
    "integers that overflow": "x = np.int64(2) ** 62\nreturn C if x * 4 == 0 else D",
}


ALONE = "f'{1}'\n"
"""What does not fit."""
MORE = """
    LEAST = (1, -math.inf)
    OFTEN = [1]
    TABLE = {"a": 1, "b": [2]}

    def some(self, number):
        return number % 2
"""
"""What follows each body."""


def _compiled(text: str) -> list[bool]:
    """Whether each strategy of a file is compiled."""
    return [source.found.way == COMPILED for source in read_source(text, "test.py")]


@pytest.mark.parametrize("body", UNFIT.values(), ids=UNFIT)
def test_what_could_reach_an_object_does_not_fit(body: str) -> None:
    assert _compiled(HEAD + strategy(body) + MORE) == [False]


@pytest.mark.parametrize(
    "member",
    ["x = 1 / 0", "x = -'a'", "x = ('a', -None)", "def f(self, n=1 / 0): return n", "def f(self, n=~'a'): return n",
     "class Mode(Enum): mro = 1"],
)  # fmt: skip
def test_what_fails_while_the_class_is_made_does_not_fit(member: str) -> None:
    assert _compiled(f"{HEAD}{strategy('return C')}    {member}\n") == [False]


@pytest.mark.parametrize(
    "member", ["x = 1 / 3", "x = -2 * 3 + 0.5", "x = (1, ('a', not 0))", "class Mode(Enum): a = 1"]
)
def test_constants_that_can_be_computed_fit(member: str) -> None:
    assert _compiled(f"{HEAD}{strategy('return C')}    {member}\n") == [True]


@pytest.mark.parametrize("body", FIT.values(), ids=FIT)
def test_usual_code_fits(body: str) -> None:
    assert _compiled(HEAD + strategy(body) + MORE) == [True]


def test_no_attack_that_needs_an_object_fits() -> None:
    compiled = _compiled(HEAD + "".join(attack(n, body) for n, body in enumerate(ATTACKS.values())))
    own = {"state: a list of the class", "chance: a generator without a seed"}  # each player has its own
    fits = [name for name, is_compiled in zip(ATTACKS, compiled, strict=True) if is_compiled and name not in own]
    assert not [name for name in fits if name.startswith(("escape:", "state:", "chance: seeds numpy", "chance: a "))]
    assert any(name.startswith("exhaustion:") for name in fits)


def test_compiled_code_sees_nothing_but_what_is_listed() -> None:
    names = harmless_names()
    assert names["__builtins__"].keys() == {"__build_class__"}
    assert not {"open", "__import__", "vars", "dir", "object", "iter", "str.format"} & names.keys()
    listed = {*CALLS, *TYPES, *CONSTANTS, "enum.Enum", *(f"random.{name}" for name in (*DRAWS, "seed", "Random"))}
    for module in ("numpy", "math", "random", "enum"):
        found = {f"{module}.{name}" for name in vars(names[table_name(module)]) if not name.startswith("__")}
        assert found <= listed
        assert all(table_name(name) in names for name in found)


@pytest.mark.parametrize("name", ["modulo", "power", "numpy", "added"])
def test_a_variable_does_not_take_the_place_of_what_is_replaced(name: str) -> None:
    body = f"{name} = lambda *x: 0\nx = set()\nx.add(2)\n"
    body += "return C if len(x) + 5 % 3 + 2 ** len(x) + np.sum([1]) == 6 else D"
    with Workers(processes=1) as workers:
        [found] = workers.load("test.py", HEAD + strategy(body))
        assert _compiled(HEAD + strategy(body) + MORE) == [True]
        [result] = workers.play([Batch(make_repeated("public-goods", 3, 2), np.full((1, 3), found.index), seed=0)])
    assert not result.errors
    assert result.actions.all()


@pytest.mark.parametrize("body", ["x = ['%s', None]\nreturn C if x[0] % 1 else D",
                                  "return C if np.array(['%s', None]) % zip() else D"])  # fmt: skip
def test_a_text_that_would_show_an_address_is_not_made(body: str) -> None:
    with Workers(processes=1) as workers:
        [found] = workers.load("test.py", HEAD + strategy(body))
        assert _compiled(HEAD + strategy(body) + MORE) == [True]
        [result] = workers.play([Batch(make_repeated("public-goods", 3, 2), np.full((1, 3), found.index), seed=0)])
    assert result.errors[found.index].what == "TypeError: a text can't be formatted here"


def test_a_set_and_a_hash_hold_nothing_that_is_ordered_by_addresses() -> None:
    bodies = ["x = set([history])", "x = set()\nx.add((1, history))", "x = set()\nx.update([self.game_description])",
              "x = set([float('nan')])", "x = hash((0, math.nan))", "x = hash(history)"]  # fmt: skip
    with Workers(processes=1) as workers:
        loaded = workers.load(
            "test.py", HEAD + "".join(strategy(body, name=f"Strategy_SELFISH_{n}") for n, body in enumerate(bodies))
        )
        results = workers.play(
            [Batch(make_repeated("public-goods", 3, 2), np.full((1, 3), one.index), seed=0) for one in loaded]
        )
    for one, body, result in zip(loaded, bodies, results, strict=True):
        assert _compiled(HEAD + strategy(body) + MORE) == [True]
        assert result.errors[one.index].what == (
            "TypeError: only numbers, texts, None and tuples of them have a hash here, and can be in a set"
        )


@pytest.mark.parametrize("before", ["", ALONE], ids=["compiled", "alone"])
def test_the_number_of_a_player_is_that_of_its_class(before: str) -> None:
    number = zlib.crc32(b"Strategy_SELFISH_7")
    body = f"{before}return C if id(self) == {number} and hash(id(self)) == {number} else D"
    with Workers(processes=1) as workers:
        [found] = workers.load("test.py", HEAD + strategy(body, name="Strategy_SELFISH_7"))
        assert _compiled(HEAD + strategy(body) + MORE) == [not before]
        [result] = workers.play([Batch(make_repeated("public-goods", 3, 2), np.full((1, 3), found.index), seed=0)])
    assert not result.errors
    assert result.actions.all()


@pytest.mark.parametrize("kind", ["bool", "int64", "float64"])
def test_the_mean_is_numpys_own_to_the_bit(kind: str) -> None:
    chance = np.random.default_rng(0)
    for size in (1, 2, 7, 8, 9, 130, 1000):
        values: NDArray[Any] = (chance.random(size) * 3).astype(kind)
        assert CALLS["numpy.mean"](values) == np.mean(values)
        assert type(CALLS["numpy.mean"](values)) is type(np.mean(values))


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("class A(dict):", "base class"),
        ("class A:\n    __slots__ = ()", "line 2: a constant __slots__"),
        ("class C:\n    x = 1", "C has two meanings"),
        ("class sum:\n    x = 1", "sum has two meanings"),
        ("class A:\n    f = [1]\n    def f(self): pass", "line 2: a constant f"),
        ("class A:\n    x = [f]", "line 2: a class holds more than functions and constants"),
        ("class A:\n    @classmethod\n    def f(cls): pass", "another thing is called"),
        ("class A:\n    @cache\n    def f(self): pass", "line 3: a method of this kind can't be compiled"),
        ("class A:\n    def __eq__(self, other): return True", "line 2: a method of this kind can't be compiled"),
    ],
)
def test_a_class_that_may_be_more_than_a_strategy_does_not_fit(head: str, reason: str) -> None:
    [node] = ast.parse(f"{head}\n    def __call__(self, history):\n        return 1").body
    assert isinstance(node, ast.ClassDef)
    with pytest.raises(UnfitError, match=reason):
        harmless(ast.parse("from labmates.strategies import C").body, node, paper=False)


@pytest.mark.parametrize("line", ["X = []", "X = f()", "__builtins__ = 1", "del C", "def f(): pass", "np = 1"])
def test_a_file_of_more_than_imports_and_constants_does_not_fit(line: str) -> None:
    *before, node = ast.parse(
        f"import numpy as np\n{line}\nclass A:\n    def __call__(self, history):\n        return f"
    ).body
    assert isinstance(node, ast.ClassDef)
    with pytest.raises(UnfitError):
        harmless(before, node, paper=False)


def test_static_methods_do_what_they_do_in_a_process_of_their_own() -> None:
    methods = "\n    @staticmethod\n    def most(x, y=2):\n        return x if x > y else y\n"
    body = "return C if self.most(history.round_number) + self.most(1, y=0) == 4 else D"
    _assert_same_alone(body, methods)


def test_enumerations_do_what_they_do_in_a_process_of_their_own() -> None:
    methods = "\n    class Mode(Enum):\n        KIND = 1\n        HARD = 'b'\n"
    body = "self.mode = self.Mode.HARD if history.round_number in (2, 3) else self.Mode.KIND\n"
    body += (
        "return C if self.mode == self.Mode.HARD and self.Mode.HARD.value == 'b' and self.mode in {self.mode} else D"
    )
    _assert_same_alone(body, methods)


@pytest.mark.parametrize(
    ("more", "body"),
    [
        ("def f(self): pass", "return C"),
        ("x = Mode", "return C"),
        ("", "x = self.Mode\n        return C"),
        ("", "self.Mode = 1\n        return C"),
        ("", "self.Mode.KIND.n = 1\n        return C"),
        ("", "x = getattr(self, 'Mode')\n        return C"),
        ("", "return C if self.Mode(1) else D"),
        ("", "return C if self.Mode.HARD else D"),
    ],
)
def test_an_enumeration_that_is_more_or_is_a_value_does_not_fit(more: str, body: str) -> None:
    text = f"class Mode(Enum):\n        KIND = 1\n        {more}\n    def __call__(self, history):\n        {body}\n"
    assert _compiled(f"{HEAD}\nclass Strategy_SELFISH_1(BaseStrategy):\n    {text}") == [False]


def _assert_same_alone(body: str, methods: str) -> None:
    """Play a strategy, whose moves do not depend on others, compiled and alone."""
    alone = f"{ALONE}{body}"
    text = HEAD + "".join(strategy(one, name=f"Strategy_SELFISH_{n}") + methods for n, one in enumerate((body, alone)))
    assert _compiled(text) == [True, False]
    with Workers(processes=1) as workers:
        workers.load("test.py", text)
        [result] = workers.play([Batch(make_repeated("public-goods", 3, 6), np.array([[0, 1, 1]]), seed=0)])
    assert not result.errors
    assert result.actions[0].any()
    assert not result.actions[0].all()
    assert (result.actions[0] == result.actions[0][:, :1]).all()


def test_compiled_strategies_do_what_they_do_in_a_process_of_their_own() -> None:
    _assert_same_in_both([*((body, MORE) for body in FIT.values()), *random_bodies(4, seed=1)])


@pytest.mark.slow("packages/labmates-populations/tests/populations/engine/test_harmless.py")
def test_sixty_random_programs_do_what_they_do_in_a_process_of_their_own() -> None:
    _assert_same_in_both(random_bodies(60, seed=1))


def _assert_same_in_both(bodies: Sequence[tuple[str, str]]) -> None:
    """Play strategies compiled and in processes, with the same opponents and random numbers."""
    game = make_repeated("collective-risk", 4, 6)
    others = np.random.default_rng(0).random((3, game.n_rounds, 3)) < 0.5
    alone = [(f"{ALONE}{body}", methods) for body, methods in bodies]
    text = HEAD + "".join(
        strategy(body, name=f"Strategy_SELFISH_{number}", init="self.k = 1\nself.kept = [1]") + methods
        for number, (body, methods) in enumerate([*bodies, *alone])
    )
    with Workers(processes=1) as workers:
        loaded = workers.load("test.py", text)
        assert [one.problems for one in loaded] == [()] * len(loaded)
        batches = [Batch(game, np.full((3, 1), one.index), seed=5, opponents=others) for one in loaded]
        results = workers.play(batches)
    for number, (name, _) in enumerate(bodies):
        compiled, own = results[number], results[number + len(bodies)]
        assert np.array_equal(compiled.actions, own.actions), name
        told = [[(one.count, one.round, one.what) for one in result.errors.values()] for result in (compiled, own)]
        assert told[0] == told[1], name
