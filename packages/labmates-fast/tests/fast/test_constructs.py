"""That constructs of ordinary modern Python are the same on the machine and in Python, with constants of classes."""

from __future__ import annotations

from textwrap import dedent, indent

import numpy as np
import pytest

from labmates_fast.programs import FAST
from labmates_populations.engine.checks import opponents
from labmates_populations.engine.kernel.source import read_source
from labmates_populations.engine.workers import Batch, Workers
from labmates_populations.repeated import make_repeated
from tests.fast.test_machine import _assert_same, _played, _read, _source
from tests.support.strategies import HEAD

BODIES = {
    "counts of truths": """
        n = np.count_nonzero(history.my_actions) + np.count_nonzero(history.my_payoffs > 1) / 4
        x = 1 + np.count_nonzero([0, 2, 3][: history.round_number])
        return C if n / x % 1 < 0.5 else D
    """,
    "items of a list or a dict that change": """
        x, d = [1, history.round_number], {}
        for n in history.opponent_cooperators:
            d[int(n)] = d.get(int(n), 0)
            d[int(n)] += 1.5
            x[0] *= 2
            x[-1] -= d[int(n)]
        return C if (x[0] + x[1]) % 3 > 1 else D
    """,
    "what dicts are made of": """
        d = {n: n * n for n in range(history.round_number) if n % 3}
        e = {(n, m): n - m for n in d for m in (1, 2)}
        s = 0
        for k, v in d.items(): s += k * v
        for v in e.values(): s -= v
        for k in e: s += k[0] - 2 * k[1]
        for k in e.keys(): s += e[k]
        for n, (k, v) in enumerate(d.items()): s += n * k - v
        for p in d.items(): s += p[0] + p[1]
        for a, b in zip(d, d.values()): s += a * b
        n = sum(d.values()) + len(list(d)) + max(list(d.values()) + [0])
        n += sum(v for k, v in d.items() if v > k) + sum(d)
        return C if (s + n + len(tuple(e)) + sum(sorted(d))) % 3 else D
    """,
    "a dict whose items change": """
        d = {n: n for n in history.opponent_cooperators.tolist()}
        for k in d: d[k] += 1
        for k, v in d.items(): d[k] = v * 2 + d[max(d)]
        return C if sum(d.values()) % 3 else D
    """,
    "defaults of a dict": """
        self.d = getattr(self, 'd', {})
        self.d.setdefault(history.round_number % 2, []).append(3)
        n = self.d.setdefault('n', 7)
        return C if (len(self.d[0]) + n + len(self.d)) % 3 else D
    """,
    "the best by a key": """
        x = [int(n) for n in history.opponent_cooperators]
        a = max(x, key=lambda n: -n * n + 3 * n, default=-1)
        b = min(range(4), key=lambda n: (n - 2) ** 2)
        d = {'a': 2, 'b': history.round_number, 'c': 4}
        c = max(d, key=lambda k: d[k])
        k, v = min(d.items(), key=lambda p: p[1])
        e = max(x, default=0)
        f = min((n for n in x if n > 1), default=9)
        g = 0
        return C if (a + b + len(x) + (c == 'b') + (k == 'a') + v + e + f + g) % 3 else D
    """,
    "the best by several keys": """
        d = {1: 3, 2: history.round_number % 4, 3: 2.0}
        best = max(d, key=lambda k: (d[k], -k))
        x = (1, 2.5) < (1, history.round_number / 2)
        y = [1, 'a'] == [1.0, 'a'] and (C, None, 2) != (C, None) and not (1,) > (1, 0)
        z = (history.my_payoffs.sum(), 1) >= (2, 0)
        return C if (best + x + y + z) % 2 else D
    """,
    "what a function makes of each": """
        a = sum(map(int, history.opponent_cooperators)) + max(map(abs, [-3, history.round_number]))
        b = [n for n in map(lambda x, y: x - y, history.my_payoffs, history.opponent_cooperators)]
        c, d = map(float, (history.round_number, 2))
        e = list(map(lambda x, y: x * y, history.my_payoffs, history.opponent_cooperators))
        f = 0
        for n in map(bool, history.my_actions): f += n
        return C if (a + len(b) + c - d + sum(e) + f) % 2 > 1 else D
    """,
    "pairs in a list": """
        x = [(i, int(n)) for i, n in enumerate(history.opponent_cooperators)]
        y = [p for p in x if p not in x[::-1][:2] and (p[1], p[0]) in x]
        return C if ((0, 1.0) in x) + len(y) in (1, 2) and (1, C) not in [(1, D), (1, C, 0)] else D
    """,
    "an array of numbers in order": """
        x = np.arange(history.round_number)
        y = np.arange(2, 2 + len(x))[::-1]
        return C if (x * y).sum() % 3 and len(np.arange(3, 1)) == 0 else D
    """,
    "differences and weighted means": """
        if history.round_number < 2: return C
        x = np.diff(history.opponent_cooperators)
        y = np.average(history.my_payoffs, weights=np.arange(1, history.round_number + 1))
        z = np.average(history.my_payoffs / 3, weights=[0.5] * history.round_number)
        return C if x.sum() + y + z % 1 > 1.2 else D
    """,
    "items that are chosen by truths": """
        mine, others = history.my_actions, history.opponent_cooperators
        if not mine.any() or mine.all(): return C if history.round_number % 2 else D
        x = others[mine].mean() - others[~mine].mean()
        y = history.my_payoffs[others > 1]
        return C if x + y.sum() % 2 + mine[others <= 1].sum() > 0.7 else D
    """,
    "sequences that are joined": """
        x = [1] + [history.round_number] * 2 + [0.5] * (history.round_number - 4)
        y = (C, D) * 2 + (D,)
        x = x + x
        self.l = (getattr(self, 'l', []) + [len(x)])[-3:]
        return y[int(sum(x) + sum(self.l)) % len(y)]
    """,
    "sorted numbers": """
        x = sorted(history.opponent_cooperators)
        y = sorted([2, 0.5, True, history.round_number, 1.0], reverse=True)
        z = sorted(n / 3 for n in x)
        return C if sum(i * n for i, n in enumerate(y)) % 2 > 1 or (x[-1:] or [0])[0] + sum(z[:2]) > 2 else D
    """,
    "the rest of what is unpacked": """
        *a, b = [1, 2, history.round_number]
        c, *d = (b, 4, 5)
        e, *f, g = [n * 2 for n in a]
        for h, *i in [(1, 2, 3), (b, 4)]: g += h + sum(i)
        if history.round_number:
            *_, last = history.opponent_cooperators
            g += last
        return C if (b + c + sum(d) + e + len(f) + g) % 3 else D
    """,
    "what is listed of several": """
        x = [3, 1, history.round_number]
        y = list(zip(x, range(3)))
        z = list(range(history.round_number)) + [i * a for i, a in list(enumerate(x))]
        n = sum(range(4)) + max(range(2, 5))
        for a, b in zip(range(9), x): n += a * b
        return C if (sum(a - b for a, b in y) + sum(z) + n) % 3 else D
    """,
    "numbers within limits": """
        x = np.clip(history.round_number / 3 - 1, 0.25, 1) + np.clip(history.round_number, 2, 5)
        y = np.abs(history.opponent_cooperators - 2).sum()
        y += np.abs(-1.5 * history.round_number) + np.abs(history.my_payoffs - 1).sum()
        return C if (x + y) % 2 > 1 else D
    """,
    "several loops in one": """
        x = [i * j for i in range(history.round_number) for j in (1, 2, 3) if i > j]
        n = sum(i - j for i, j in [(a, b) for a in x for b in x[:2]] if i > 1)
        y = any(i == j for i in x for j in (3, 8))
        return C if (n + len(x) + y) % 3 else D
    """,
    "quotients with a remainder": """
        a, b = divmod(7 * history.round_number, 4)
        x = divmod(history.round_number / 2, -1.5)
        return C if (a + 2 * b + x[0] * x[1]) % 3 > 1 else D
    """,
    "choices from what there is": """
        x = [C, D, C][: history.round_number + 1]
        a = random.choice(x)
        b = random.uniform(-1, history.round_number)
        c = random.randint(-2, 3) + random.randrange(5)
        d = random.choice(history.my_payoffs) if history.round_number else 0
        return a if b + c + d > 1 else D
    """,
    "exponentials": """
        x = math.exp(-history.round_number / 3) + 1 / (1 + math.exp(sum(history.my_payoffs) - 2))
        return C if (x + math.log(history.round_number + 2.5)) * 1e12 % 1 > 0.5 else D
    """,
    "what is reversed while lists change": """
        self.x = getattr(self, 'x', [0])
        self.x[0] += 1
        n = 0
        for i, a in enumerate(reversed(history.opponent_cooperators[-3:])): n += i * a
        for a in reversed([b for b in self.x]): n += a
        return C if n % 3 else D
    """,
}
LEFT = {
    "a dict that grows while it is read": """
        d = {0: 1}
        for k in d:
            if history.round_number > 3: d[k + 1] = 2
        return C
    """,
    "a dict that grows at the end": """
        d = {0: 1}
        for k, v in d.items():
            d[v] = 3
        return C
    """,
    "a list without keys": """
        x = [1, 2]
        s = 0
        for k in x.keys(): s += k
        return C if s else D
    """,
    "a list without values": """
        x = [(1, 2)]
        return C if sum(x.values()) else D
    """,
    "a list without a default": """
        x = [1, 2]
        return C if x.setdefault(0, 3) else D
    """,
    "the best of nothing": "return C if max(history.my_payoffs[1:], key=lambda n: -n) else D",
    "too few for the rest": """
        a, *b, c = history.my_actions[:history.round_number]
        return C if a else D
    """,
    "differences of truths": "return C if np.diff(history.my_actions).sum() % 2 else D",
    "weights of nothing": "return C if np.average(history.my_payoffs, weights=history.my_payoffs * 0) else D",
    "truths of another length": "return C if history.my_payoffs[history.my_actions[1:]].sum() > 1 else D",
    "places of an array": "return C if history.my_payoffs[np.arange(history.round_number)].sum() > 1 else D",
    "a list that joins itself": """
        x = y = [1]
        x += [history.round_number]
        return C if sum(y) % 2 else D
    """,
    "an item that joins a list": """
        d = {1: [1]}
        y = d[1]
        d[1] += [history.round_number]
        return C if sum(y) % 2 else D
    """,
    "an array in a list that changes": """
        d = [history.my_payoffs * 1]
        y = d[0]
        d[0] += 1
        return C if sum(y) > 2 else D
    """,
    "a pair in an array": "return C if (1, 2) in history.my_payoffs else D",
    "a pair beside numbers": "return C if (1, history.round_number) in [1, (1, 2)] else D",
    "pairs of different things": "return C if (1, 'a') < (1, 'b') else D",
    "texts in order": "return C if sorted(['b', 'a'])[0] == 'a' else D",
    "choices from nothing": "return random.choice([C][history.round_number:])",
    "no width to draw from": "return C if random.randrange(history.round_number - 2) else D",
    "an exponential without end": "return C if math.exp(history.round_number * 300) > 2 else D",
    "a logarithm of nothing": "return C if math.log(history.round_number) > 1 else D",
    "an array of floats in order": "return C if np.arange(history.round_number / 2).sum() > 1 else D",
    "a long list": """
        x = [0] * 300000
        return C if len(x) > 5 else D
    """,
}
OTHER = {
    "a map that is read twice": """
        x = map(int, [1, 2])
        return C if sum(x) == 3 and sum(x) == 0 else D
    """,
    "a reversed list that changes": """
        x = [1, 2, 3]
        s = 0
        for i in reversed(x):
            x[0] = 4
            s += i
        return C if s == 9 else D
    """,
    "a default that is drawn first": """
        return C if max([random.random()], default=random.random()) > 0.5 else D
    """,
    "items that change beside others": """
        d = {0: 1, 1: 2}
        s = 0
        for a, b in zip([1, 2], d.values()):
            d[1] = 5
            s += b
        return C if s == 6 else D
    """,
}
CLASSES = {
    "constants of the file": """
        def __call__(self, history):
            return C if history.round_number % LIMIT * RATES[1] > RATES[0] else D
    """,
    "a choice between constants": """
        HARD = 'hard'
        def __call__(self, history):
            match history.round_number % 5:
                case 0 | 1: return C
                case 2 if history.round_number > 4: return C
                case _: return D
    """,
    "an option of the constructor": """
        def __init__(self, game_description, rate=0.5, last=3):
            self.game_description = game_description
            self.rate, self.last = rate, last
        def __call__(self, history):
            return C if history.round_number * self.rate < self.last else D
    """,
    "a dict as a key": """
        VALUES = {'a': 1, 'b': 3}
        def __init__(self, game_description):
            self.game_description = game_description
            self.d = {'x': 1, 'y': 2}
        def __call__(self, history):
            self.d['x'] += 1
            return C if max(self.d, key=self.d.get) == 'y' or min(self.VALUES, key=self.VALUES.get) == 'b' else D
    """,
    "lists and dicts": """
        LOW, HIGH = 0.25, 0.75
        PLAN = [C, D, D]
        TABLE = {'a': (1, C), 'b': (2, D), ('c', 1): LOW}
        def __call__(self, history):
            t = history.round_number
            n, move = self.TABLE['a' if t % 2 else 'b']
            if ('c', 1) in self.TABLE and self.TABLE.get(t, n) > self.HIGH + 1: return move
            return self.PLAN[t % len(self.PLAN)]
    """,
    "a list that each player changes": """
        seen = []
        COUNTS = {'c': 0}
        def __call__(self, history):
            self.seen.append(history.round_number)
            self.COUNTS['c'] += 2
            return C if (len(self.seen) + self.COUNTS['c']) % 4 else D
    """,
    "a container under another name": """
        START = [1, 2]
        def __init__(self, game_description):
            self.game_description = game_description
            self.mine = self.START
        def __call__(self, history):
            self.mine.append(1)
            return C if len(self.START) % 3 else D
    """,
    "properties": """
        BASE = 2
        @property
        def late(self): return self.n > self.BASE
        def __init__(self, game_description):
            self.game_description, self.n = game_description, 0
        def __call__(self, history):
            self.n += 1
            return D if self.late else C
    """,
    "constants by the class": """
        RATE = 0.3
        def __call__(self, history):
            return C if type(self).RATE + self.__class__.RATE + NAME.RATE > 0.8 and history.round_number % 3 else D
    """,
    "attributes by name": """
        def __init__(self, game_description):
            self.n, self.k = (getattr(game_description, x) for x in ('n_players', 'n_rounds'))
        def __call__(self, history):
            return C if history.round_number * self.n % 5 < self.k / 4 else D
    """,
    "an attribute that begins in the class": """
        count = 0
        last = None
        def __call__(self, history):
            self.count += 1
            was, self.last = self.last, self.count % 3
            return C if was else D
    """,
}


def _classes() -> str:
    names = [f"Strategy_SELFISH_{number}" for number in range(1, len(CLASSES) + 1)]
    classes = [
        f"\nclass {name}(BaseStrategy):\n{indent(dedent(text).replace('NAME', name), ' ' * 4)}"
        for name, text in zip(names, CLASSES.values(), strict=True)
    ]
    return HEAD + "LIMIT, RATES = 3, (0.5, 2)\n" + "".join(classes)


@pytest.mark.parametrize("game", ["public-goods", "common-pool"])
def test_the_machine_plays_modern_code_as_python_does(game: str) -> None:
    bodies = BODIES | LEFT | OTHER
    _assert_same(_source([*bodies.values()]), [*bodies], game)
    _assert_same(_classes(), [*CLASSES], game)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_modern_code_has_instructions(body: str) -> None:
    [source] = _read([body])
    assert source.program


def test_modern_code_is_not_left_to_python() -> None:
    results = _played(_source([*BODIES.values(), LEFT["a long list"]]), native=True)
    left = {name for name, one in zip(BODIES, results, strict=False) if one.own_seconds > 0}
    assert not left
    assert results[-1].own_seconds > 0


@pytest.mark.parametrize("body", OTHER.values(), ids=OTHER)
def test_what_the_machine_would_do_otherwise_has_no_instructions(body: str) -> None:
    [source] = _read([body])
    assert (source.compiled, source.program) == (True, b"")


def test_classes_with_constants_have_instructions() -> None:
    assert all(source.program for source in read_source(_classes(), "test.py", FAST))


def test_constants_of_a_class_are_those_of_plain_python() -> None:
    made = make_repeated("public-goods", 4, 9)
    others = opponents(made)
    with Workers(processes=1, native=False) as workers:
        own = "\n        f'{1}'"  # outside the subset: these play in processes of their own
        text = _classes().replace("def __call__(self, history):", f"def __call__(self, history):{own}")
        loaded = [*workers.load("a.py", _classes()), *workers.load("b.py", text)]
        assert {one.way for one in loaded[: len(CLASSES)]} == {"machine"}  # which does not take part
        assert {one.way for one in loaded[len(CLASSES) :]} == {"process"}
        batches = [Batch(made, np.full((len(others), 1), one.index), seed=5, opponents=others) for one in loaded]
        played = workers.play(batches)
    for name, ours, theirs in zip(CLASSES, played, played[len(CLASSES) :], strict=False):
        assert np.array_equal(ours.actions, theirs.actions), name
        assert not theirs.errors, name
