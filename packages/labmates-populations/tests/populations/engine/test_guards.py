"""Ordinary Python plays in one process for each strategy, in which no player reaches anything of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import labmates.strategies
from labmates_populations.engine.kernel.exposed import EXPOSED
from labmates_populations.engine.kernel.names import MODULES, interfaces
from labmates_populations.engine.kernel.source import read_source
from labmates_populations.engine.kernel.ways import PROCESS
from labmates_populations.engine.workers import Batch, Errors, Workers
from labmates_populations.repeated import make_repeated
from tests.support.strategies import HEAD, strategy

IMPORTS = """
import bisect
import collections.abc
import copy
import fractions
import functools
import heapq
import itertools
import operator
import statistics
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from functools import lru_cache
from typing import NamedTuple, Optional
"""
ROUNDS = 4
ORDINARILY = "X = []\nX.append(1)"
"""Code before a class that is not compiled."""

ORDINARY: dict[str, tuple[str, str, str]] = {
    "a constant of the file": ("LIMIT = 3", "return C if LIMIT == 3 else D", ""),
    "a list of the file": ("SEEN = []", "SEEN.append(1)\nreturn C if len(SEEN) == history.round_number + 1 else D", ""),
    "a global": ("n = 0", "global n\nn += 1\nreturn C if n == history.round_number + 1 else D", ""),
    "a function of the file": ("def double(x: int) -> int:\n    return 2 * x", "return C if double(2) == 4 else D", ""),
    "a main program": ("if __name__ == '__main__':\n    print(1)", "return C", ""),
    "a class of data": (
        "@dataclass(frozen=False)\nclass Memory:\n    base: int = 0\n    more: Optional[int] = None",
        "m = Memory()\nm.base += 2\nreturn C if m.base == 2 and m.more is None else D", "",
    ),
    "a dict of the class": ("", "return C if self.WEIGHTS['a'] == 1 else D", "WEIGHTS = {'a': 1}"),
    "two names at once": ("", "return C if self.A < self.B else D", "A, B = 1, 2"),
    "actions of the class": ("", "return self.MOVES[0]", "MOVES = [C, D]"),
    "a property": ("", "return C if self.data == 3 else D", "@property\ndef data(self):\n    return 3"),
    "a method of the class": ("", "return C if self.made() == 'Strategy_SELFISH_1' else D",
                              "@classmethod\ndef made(cls):\n    return cls.__name__"),
    "a private method": ("", "return self.__decide()", "def __decide(self):\n    return C"),
    "a kept value": ("", "return C if self.f(2) == 4 else D",
                     "@lru_cache(maxsize=None)\ndef f(self, n):\n    return 2 * n"),
    "names that mean something elsewhere": (
        "", "self.base, self.flags, self.state = 1, 2, [3]\nself.state += [self.base]\n"
        "return C if self.state == [3, 1] and self.flags == 2 else D", "",
    ),
    "attributes by name": (
        "", "setattr(self, 'n_3', 1)\nreturn C if getattr(self, f'n_{3}') and hasattr(self, 'n_3') and \\\n"
        "    getattr(self, 'data', 5) == 5 and not hasattr(self, 'base') else D", ""),
    "an attribute that nothing has": (
        "", "try:\n    history.my_score + self.game_description.n\nexcept AttributeError:\n    return C", ""),
    "what is instead of it": ("", "return C if getattr(self.game_description, 'n_agents', 4) == 4 else D", ""),
    "a base by its class": ("", "super(Strategy_SELFISH_1, self).__init__(self.game_description)\nreturn C", ""),
    "its own type": ("", "return C if type(self).__name__ == self.__class__.__name__ and type(1) is int else D", ""),
    "an enumeration of the file": ("class Mode(Enum):\n    A = 1\n    B = 2",
                                   "return C if Mode(2) is Mode.B and Mode.A.value == 1 else D", ""),
    "a named tuple": ("Point = namedtuple('Point', 'x base')\nclass Other(NamedTuple):\n    z: int = 4",
                      "p = Point(1, 2)\nreturn C if p.x + Other().z == 5 else D", ""),
    "a match": ("", "match history.round_number:\n    case 0 | 1:\n        return C\n    case _: return C", ""),
    "a finally": ("", "try:\n    x = 1\nfinally:\n    self.x = 2\nreturn C if self.x > x else D", ""),
    "settings of errors": ("", "with np.errstate(divide='ignore'):\n    x = np.float64(1) / 0\n"
                           "return C if np.isinf(x) else D", ""),
    "types of arrays": ("Row = NDArray[np.bool_]", "return C if isinstance(history.my_actions, np.ndarray) else D", ""),
    "arguments by position": ("", "f = lambda *values: sum(values)\nreturn C if f(*[1, 2]) == 3 else D", ""),
    "a module within": ("", "import math as m\nreturn C if m.floor(2.5) == 2 else D", ""),
    "text with a percent sign": ("", "key = '%d:%d' % (1, 2)\nreturn C if key == '1:2' else D", ""),
    "a formatted text": ("", "return C if '{:.1f} {}'.format(1.25, 'a.b') in ('1.2 a.b', '1.3 a.b') else D", ""),
    "a text to be formatted": (
        "", "self.n, self.v = 3, [1, 2]\nt = '{0.n} {1.v[1]} {m}'\n"
        "return C if t.format(self, self, m=1) == '3 2 1' and '{x}'.format_map({'x': 1}) == '1' and \\\n"
        "    t.replace('{m}', '{mapped}').format(self, self, mapped=1) == '3 2 1' else D", "",
    ),
    "where there is something to divide by": (
        "", "a, b = np.ones(2), np.array([0.0, 2.0])\n"
        "q = np.divide(a, b, out=np.zeros_like(a), where=b != 0)\n"
        "return C if q.tolist() == [0, 0.5] and np.sum(a, where=b > 0) == 1 == b.sum(where=b > 0) / 2 else D", "",
    ),
    "arguments of any name": (
        "def f(x, where=0, like=1):\n    return x + where + like",
        "o = {'where': 2}\nreturn C if f(1, **o) == 4 and f(1, like=3) == 4 and dict(**{'a': 1})['a'] == 1 else D", "",
    ),
    "an array written by a function": ("", "x = np.zeros(2)\nnp.add([1, 2], 1, out=x)\nreturn C if x[1] == 3 else D",
                                       ""),
    "an end": ("class A:\n    def __del__(self):\n        self.x = 1", "a = A()\ndel a\nreturn C", ""),
    "a special method without a meaning": ("", "return C", "def __last_round__(self):\n    return 1 / 0"),
    "names with a meaning elsewhere": (
        "__all__ = ['a']\n__version__ = '1'", "for __, x in [(1, 2)]:\n    x = __\n"
        "return C if x == 1 and __class__.__name__ == type(self).__name__ else D", "",
    ),
    "its own property": (
        "class Twice:\n    def __set_name__(self, owner, name):\n        self.n = name\n"
        "    def __get__(self, thing, owner=None):\n        return self.n * 2", "return C if self.a == 'aa' else D",
        "a = Twice()",
    ),
    "a decorator": (
        "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def g(*a):\n        return 2 * f(*a)\n"
        "    return g\n@twice\ndef one(x):\n    return x",
        "return C if one(2) == 4 and one.__name__ == 'one' else D", "",
    ),
    "other kinds of enumerations": (
        "from enum import Flag, StrEnum\nclass F(Flag):\n    A = 1\n    B = 2\nclass S(StrEnum):\n    A = 'a'",
        "return C if F.A in (F.A | F.B) and S('a') is S.A else D", "",
    ),
    "its own types": (
        "from typing import Generic, TypeVar\nfrom collections import UserDict\nT = TypeVar('T')\n"
        "class Box(Generic[T]):\n    x = 1\nclass Kept(UserDict):\n    pass",
        "k = Kept(a=1)\nk.data['b'] = 2\nreturn C if Box[int]().x == 1 and len(k) == 2 else D", "",
    ),
    "attributes by a method": (
        "class Settings(dict):\n    def __getattr__(self, name):\n        return self[name]",
        "s = Settings({'patience': 3, '__array_interface__': {'data': (0, False)}})\n"
        "return C if s.patience == 3 and np.array(s).dtype == object else D", "",
    ),
    "an abstract class": (
        "from abc import ABC, abstractmethod\nclass Rule(ABC):\n    @abstractmethod\n    def apply(self, x): ...\n"
        "class Twice(Rule):\n    def apply(self, x):\n        return 2 * x",
        "return C if Twice().apply(2) == 4 else D", "",
    ),
    "contexts": (
        "import contextlib, warnings\n@contextlib.contextmanager\ndef kept(x):\n    yield x + 1",
        "with contextlib.suppress(KeyError), warnings.catch_warnings(), kept(1) as two:\n"
        "    warnings.simplefilter('ignore')\n    {}[two]\nreturn C if two == 2 else D", "",
    ),
    "a generator that ends": ("", "return C if next((x for x in [1] if x > 1), None) is None else D", ""),
}  # fmt: skip
"""The code before the class, its decision and more of the class; it cooperates."""

REFUSED = {
    "an address": "class A:\n    __array_interface__ = {}\nreturn C",
    "a method for an address": "class A:\n    def __array__(self): return 1\nreturn C",
    "a method for any attribute": "class A:\n    def __getattribute__(self, name): return 1\nreturn C",
    "another name than it seems": "class A:\n    def __getattr__(a, /, b, c=''): return 1\nreturn C",
    "what comes before its method": "class A:\n    @str\n    def __getattr__(self, name): return 1\nreturn C",
    "another class of classes": "class A(metaclass=Enum): pass\nreturn C",
    "what is behind a class": "super(Enum, self)\nreturn C",
    "the operating system's chance": "from random import SystemRandom\nreturn C",
    "a pattern": "match history:\n    case object(_record=x): return C\nreturn D",
    "a guard": "guarded_own = type(self)\nreturn C",
    "another class": "__class__ = Enum\nreturn C",
    "what a pattern reads": "class A:\n    __match_args__ = ('base',)\nreturn C",
}
"""Told before anything of it runs."""

DENIED = {
    "a private part of a module": "random._os\nreturn C",
    "a module that is not listed": "np.testing\nreturn C",
    "the base of an array": "history.my_actions.base\nreturn C",
    "the data of an array": "history.my_actions.data\nreturn C",
    "what its history is made of": "history._record\nreturn C",
    "the bases of a class": "class A(Enum): pass\nA.mro()\nreturn C",
    "the bases of a class under another name": "class A(Enum): pass\nclass B:\n    def mro(self): pass\nA.mro()\n"
    "return C",
    "a frame": "(x for x in [1]).gi_frame\nreturn C",
    "a text's attributes": "return C if str.format('{0.x}', self) else D",
    "attributes in a text": "return C if '{0.base}'.format(history.my_actions) else D",
    "attributes in another text": "t = '{0.__class__}'\nreturn C if t.format(self) else D",
    "attributes in a text for a map": "t = '{x.base}'\nreturn C if t.format_map({'x': history.my_actions}) else D",
    "memory that is not written": "np.add(1, 2, where=False)\nreturn C",
    "memory that is not written, by a tuple": "np.add(1, 2, where=False, out=(None,))\nreturn C",
    "memory that is not written, by a dict": "np.add(1, 2, **{'where': False})\nreturn C",
    "memory that is not written, later": "functools.partial(np.add, where=False)(1, 2)\nreturn C",
    "unwritten memory, by its own function": "np.frompyfunc(abs, 1, 1)([1], where=False)\nreturn C",
    "memory around an array": "np.pad([1], 3, mode='empty')\nreturn C",
    "a note on a polynomial": "np.polynomial.Polynomial.domain[0] = 5\nreturn C",
    "a note on a polynomial made writable": "np.polynomial.Polynomial.domain.flags['WRITEABLE'] = True\nreturn C",
    "a note by a wrapper": "functools.wraps(self.__call__)(Counter)\nreturn C",
    "a note on a masked value": "np.ma.masked_array([1], [1])[0].fill(3)\nreturn C",
    "the base of a masked array": "np.ma.array(history.my_actions).base\nreturn C",
    "chance of all": "statistics.NormalDist().samples(1)\nreturn C",
    "a note on a function": "np.mean.note = 1\nreturn C",
    "a note on an action": "C.note = 1\nreturn C",
    "a note by name": "setattr(np.mean, 'note', 1)\nreturn C",
    "a note on a type": "Enum.note = 1\nreturn C",
    "a note by the base": "BaseStrategy.__init__(np.mean, 1)\nreturn C",
    "a note by a decorator": "dataclass(Counter)\nreturn C",
    "a note by another method": "self.note = 1\nPlayerHistory.note\nreturn C",
    "a note on an abstract class": "class A:\n    def register(self): pass\ncollections.abc.Sequence.register(int)\n"
    "return C",
    "the base by a getter": "operator.attrgetter('base')(history.my_actions)\nreturn C",
    "the base behind another": "operator.attrgetter('my_actions.base')(history)\nreturn C",
    "a method by its name": "operator.methodcaller('__reduce__')(history)\nreturn C",
    "what it is made of, by a copy": "copy.copy(history)._record\nreturn C",
    "what is behind a function, by a copy of a method": "class Named:\n    __name__ = '__globals__'\n"
    "def f(x): pass\nfunctools.wraps(Named())(f)\ncopy.copy(f.__get__(f))['C']\nreturn C",
    "the description": "self.game_description.k = 2\nreturn C",
    "the base by name": "getattr(history.my_actions, 'ba' + 'se')\nreturn C",
    "what it is made of": "getattr(self, '__di' + 'ct__')\nreturn C",
    "the type of an array": "type(history.my_actions)((2,))\nreturn C",
    "the type of a function": "type(lambda: 0)\nreturn C",
    "a type": "type('A', (), {})\nreturn C",
    "an enumeration of anything": "Enum('A', {'__array_interface__': {}})\nreturn C",
    "settings of numpy": "np.seterr(over='raise')\nreturn C",
    "a builtin that is not listed": "return C if compiled else D",
}
"""Refused when it happens."""


def _file(head: str, body: str, more: str) -> str:
    members = "".join(f"    {line}\n" for line in more.splitlines())
    return f"{HEAD}{IMPORTS}{head}\n{strategy(body)}{members}"


def _played(texts: list[str]) -> tuple[list[np.ndarray[Any, Any]], list[Errors | None]]:
    """The moves of three players of each file's strategy, and its errors."""
    with Workers(processes=1) as workers:
        loaded = [workers.load("test.py", text)[0] for text in texts]
        assert [one.problems for one in loaded] == [()] * len(loaded)
        groups = np.array([[one.index] * 3 for one in loaded])
        numbers = np.zeros(len(groups), np.int64)  # on which random numbers depend
        [result] = workers.play([Batch(make_repeated("public-goods", 3, ROUNDS), groups, seed=5, numbers=numbers)])
    return [*result.actions], [result.errors.get(one.index) for one in loaded]


def _ways(texts: list[str]) -> list[tuple[str, str]]:
    return [(found.way, found.why) for text in texts for found in (read_source(text, "test.py")[0].found,)]


def test_ordinary_code_plays_in_one_process_and_does_what_it_does_alone() -> None:
    texts = [_file(*parts) for parts in ORDINARY.values()]
    moves, errors = _played(texts)
    assert {name: error for name, error in zip(ORDINARY, errors, strict=True) if error} == {}
    assert [name for name, move in zip(ORDINARY, moves, strict=True) if not move.all()] == []


def test_what_the_base_class_keeps_of_the_game_can_be_read_in_one_process() -> None:
    text = f"""{HEAD}{IMPORTS}
class Strategy_SELFISH_1(BaseStrategy):
    def __init__(self, description):
        super().__init__(description)
        self.rounds = Counter()

    def __call__(self, history):
        self.rounds[history.round_number] += 1
        return C if len(self.rounds) < self.game_description.n_rounds else D
"""
    assert [way for way, _ in _ways([text])] == [PROCESS]
    [moves], [error] = _played([text])
    assert not error
    assert moves.sum(axis=0).tolist() == [ROUNDS - 1] * 3


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_could_reach_another_player_is_a_problem_with_its_line(body: str) -> None:
    [source] = read_source(_file("", body, ""), "test.py")
    assert [problem for problem in source.found.problems if problem.startswith("line ")]
    assert not source.code


def test_what_is_only_seen_when_it_happens_is_refused_then() -> None:
    texts = [_file("import collections", body, "") for body in DENIED.values()]
    assert {way for way, _ in _ways(texts)} == {PROCESS}
    moves, errors = _played(texts)
    assert [name for name, error in zip(DENIED, errors, strict=True) if not error] == []
    assert not np.array(moves).any()


def test_chance_is_the_same_whether_compiled_or_not_and_in_another_session() -> None:
    bodies = [
        "return C if random.random() < 0.5 else D",
        "random.seed(history.round_number)\nreturn random.choice([C, D])",
        "return C if random.Random().random() < 0.5 else D",
        "random.seed()\nreturn C if random.random() < 0.5 else D",
        "return C if np.random.rand() < 0.5 else D",
        "return C if np.random.default_rng().random() < 0.5 else D",
        "return C if np.random.default_rng(history.round_number).choice([0, 1]) else D",
        "return C if np.random.RandomState(history.round_number).choice([0, 1]) else D",
        "return C if np.random.Generator(np.random.PCG64()).random() < 0.5 else D",
        "np.random.seed()\nreturn C if np.random.randint(2) else D",
    ]
    texts = [_file(head, body, "") for body in bodies for head in ("", ORDINARILY)]
    assert [way for way, _ in _ways(texts)][:4] == ["compiled", PROCESS] * 2
    assert {way for way, _ in _ways(texts[1::2])} == {PROCESS}
    (moves, errors), (again, _) = _played(texts), _played(texts)
    assert errors == [None] * len(texts)
    assert np.array_equal(moves, again)
    for body, one, other in zip(bodies, moves[::2], moves[1::2], strict=True):
        assert np.array_equal(one, other), body
    assert not np.array_equal(moves[0][:, 0], moves[0][:, 1]), "each player draws its own"


def test_a_process_that_ends_costs_its_own_strategy_alone(workers: Workers) -> None:
    hanging = _file(ORDINARILY, "if history.round_number == 1: sum(range(10 ** 14))\nreturn C", "")
    [bad], [good] = workers.load("bad.py", hanging), workers.load("good.py", _file(ORDINARILY, "return C", ""))
    groups = np.array([[bad.index, bad.index, good.index]] * 2)  # whose players see the same
    [result] = workers.play([Batch(make_repeated("public-goods", 3, ROUNDS), groups, seed=0)])
    assert result.actions[:, :, 2].all()
    assert result.actions[:, 0].all()
    assert not result.actions[:, 1:, :2].any()
    assert list(result.errors) == [bad.index]
    assert (result.errors[bad.index].count, result.errors[bad.index].fatal) == (4 * (ROUNDS - 1), True)


EXPRESSIONS = (
    "Counter('aab').most_common(1)[0][0] == 'a'", "Counter([1, 1, 2])[1] == 2", "deque([1, 2], maxlen=1)[0] == 2",
    "defaultdict(list)['a'] == []", "OrderedDict([(1, 2)])[1] == 2", "statistics.mode([1, 1, 2]) == 1",
    "statistics.median([1, 2, 9]) == 2", "statistics.fmean([1, 2]) == 1.5", "statistics.pstdev([1, 1]) == 0",
    "statistics.quantiles([1, 2, 3]) == [1.0, 2.0, 3.0]", "len(set([None, 1])) == 2", "None in {None: 1}",
    "'%.2f' % 0.5 == '0.50'", "f'{0.5:.2f}' == '0.50'", "functools.reduce(max, [1, 3, 2]) == 3",
    "list(itertools.chain([1], [2])) == [1, 2]", "list(itertools.accumulate([1, 2])) == [1, 3]",
    "heapq.nlargest(1, [1, 3]) == [3]", "bisect.bisect_left([1, 2], 2) == 1",
    "np.lib.stride_tricks.sliding_window_view([1, 2], 1).sum() == 3",
    "math.comb(4, 2) == 6", "math.isclose(math.tau, 2 * math.pi)", "np.polyfit([0, 1], [0, 2], 1).round(6)[0] == 2",
    "np.polyval([1, 0], 3) == 3", "np.median([1, 2, 9]) == 2", "np.percentile([1, 2, 3], 50) == 2",
    "np.mean(np.array([[1, 2], [3, 4]]), axis=0).tolist() == [2, 3]", "np.corrcoef([1, 2, 3], [1, 2, 3])[0, 1] > 0.99",
    "np.convolve([1, 2], [1])[1] == 2", "np.unique([1, 1, 2]).size == 2", "np.linalg.norm([3, 4]) == 5",
    "np.linalg.solve(np.eye(2), [1, 2])[1] == 2", "np.add.reduce([1, 2]) == 3", "np.histogram([1, 2])[0].sum() == 2",
    "np.interp(0.5, [0, 1], [0, 2]) == 1", "np.select([True], [1]) == 1", "np.empty(3).shape == (3,)",
    "np.random.default_rng(1).choice([3, 3]) == 3", "np.random.default_rng(1).integers(2, 3) == 2",
    "np.random.RandomState(1).permutation(2).sum() == 1", "np.random.choice([4]) == 4", "np.random.randint(1, 2) == 1",
    "random.Random(1).choice([5]) == 5", "random.choices([6], k=2) == [6, 6]", "random.sample([1, 2], 2)[0] in (1, 2)",
    "np.array([1.0, np.nan]).any()", "np.nanmean([1, np.nan]) == 1", "np.isin(1, [1, 2]).all()",
    "np.lexsort([[2, 1]])[0] == 1", "np.einsum('i,i', [1, 2], [1, 2]) == 5", "np.gradient([1, 2])[0] == 1",
    "str(np.arange(2)) == '[0 1]'", "repr(Action.C) == 'C'", "np.var([1, 1]) == 0 and np.cov([1, 2]) == 0.5",
    "sorted(['b', 'a'], key=str.lower)[0] == 'a'", "max([1, -2], key=abs) == -2", "bool(np.bool_(True))",
    "sum(x for x in range(3)) == 3", "np.vectorize(abs)([-1])[0] == 1",
    "np.apply_along_axis(sum, 0, [[1], [2]])[0] == 3", "np.r_[1, 2].size == 2", "np.ix_([0], [0])[0].size == 1",
    "np.rollaxis(np.ones((1, 2)), 1).shape == (2, 1)", "np.unravel_index(1, (2, 2))[1] == 1", "np.True_",
    "np.fromiter((x for x in [1, 2]), float).sum() == 3", "np.ndim([1]) == 1", "np.dtype(float).kind == 'f'",
    "statistics.NormalDist(0, 1).cdf(0) == 0.5", "np.random.Generator(np.random.PCG64(1)).integers(2, 3) == 2",
    "np.fft.fft([1, 1])[0] == 2", "np.polynomial.Polynomial([1, 2])(1) == 3", "np.char.upper('a') == 'A'",
    "np.strings.upper('a') == 'A'", "np.ma.masked_array([1], [0]).sum() == 1",
    "np.polynomial.polynomial.polyval(2, [1, 1]) == 3", "np.poly1d([1, 0])(3) == 3",
    "max([0, 1], key=[3, 4].__getitem__) == 1", "operator.itemgetter(1)([1, 2]) == 2", "operator.mul(2, 3) == 6",
    "operator.attrgetter('n_players', 'n_rounds')(self.game_description) == (3, 4)",
    "operator.methodcaller('count', 1)([1, 1]) == 2", "copy.deepcopy([[1]]) == [[1]] == copy.copy([[1]])",
    "fractions.Fraction(2, 4).denominator == 2", "isinstance([], collections.abc.Sequence)",
    "statistics.linear_regression([0, 1], [1, 3]).slope == 2", "np.unique_counts([1, 1]).counts[0] == 2",
    "statistics.linear_regression([0, 1], [1, 3]).intercept == 1", "np.unique_inverse([5]).inverse_indices.sum() == 0",
    "np.unique_all([5]).values[0] == 5 and np.unique_all([5]).indices[0] == 0", "np.linalg.svd(np.eye(2)).S[0] == 1",
    "np.linalg.eigh(np.eye(2)).eigenvalues[0] == 1", "np.linalg.eig(np.eye(2)).eigenvectors[0, 0] == 1",
    "np.linalg.svd(np.eye(2)).U.shape == np.linalg.svd(np.eye(2)).Vh.shape", "np.linalg.slogdet([[1]]).logabsdet == 0",
    "np.linalg.slogdet(np.eye(2)).sign == 1", "np.linalg.qr(np.eye(2)).Q.shape == np.linalg.qr(np.eye(2)).R.shape",
)  # fmt: skip


def test_what_modules_offer_works_as_anywhere_else() -> None:
    assert {*EXPOSED, "random", "numpy.random"} >= {one for one in MODULES if not one.startswith(("labm", "emergent"))}
    texts = [_file(ORDINARILY, f"return C if {one} else D", "") for one in EXPRESSIONS]
    assert {way for way, _ in _ways(texts)} == {PROCESS}
    moves, errors = _played(texts)
    assert {one: error.what for one, error in zip(EXPRESSIONS, errors, strict=True) if error} == {}
    assert [one for one, move in zip(EXPRESSIONS, moves, strict=True) if not move.all()] == []


def test_the_module_of_strategies_can_be_imported_with_the_names_it_has_in_their_code() -> None:
    inside = vars(interfaces(labmates.strategies.BaseStrategy, paper=False)["labmates.strategies"])
    names = {name for name in inside if not name.startswith("__")}
    assert names == {*labmates.strategies.__all__}
    assert all(getattr(labmates.strategies, name) is inside[name] for name in names)
