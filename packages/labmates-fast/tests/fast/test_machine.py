"""That the machine does what Python does, to the bit, and what it can't do is left to Python."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence

import numpy as np
import pytest

from labmates_fast.machine.layout import BUDGET
from labmates_fast.machine.numbers import rounded
from labmates_fast.programs import FAST
from labmates_populations.engine.checks import check_strategies, opponents
from labmates_populations.engine.kernel.engine import terms_of
from labmates_populations.engine.kernel.source import Source, read_source
from labmates_populations.engine.kernel.ways import COMPILED
from labmates_populations.engine.workers import Batch, Result, Workers
from labmates_populations.machine import installed_machine
from labmates_populations.repeated import make_repeated
from tests.populations.engine.test_compiler import FIT
from tests.support.random_programs import random_bodies
from tests.support.strategies import HEAD, strategy

BODIES = {
    "loops": "n = 0\nfor i in range(history.round_number, 0, -2):\n    if i % 3 == 0: continue\n    n += i\n"
    "    if n > 40: break\nelse:\n    n += 1\nwhile n > 7: n -= 7\nreturn C if n > 3 else D",
    "sequences": "x = [int(n) for n in history.opponent_cooperators[-3:]]\nx.append(history.round_number)\n"
    "y = list(reversed(x))\nreturn C if max(y) - min(x) + x[-1] > y[0] + len(x) else D",
    "pairs": "s = 0\nfor i, (a) in enumerate(history.my_actions): s += i * int(a)\n"
    "for a, b in zip(history.my_payoffs, history.opponent_cooperators): s += a * b\nreturn C if s % 2 > 1 else D",
    "arrays": "both = history.opponent_cooperators + history.my_actions\nrates = both / len([1, 2, 3, 4])\n"
    "return C if len(rates) and np.mean(rates[-4:]) >= np.std(rates) + np.var(both) / 8 else D",
    "sums of floats": "x = history.my_payoffs * 0.1\nreturn C if sum(x) > np.sum(x) or np.sum(x) % 1 > 0.5 else D",
    "comparisons of arrays": "many = history.opponent_cooperators >= 2\n"
    "return C if np.any(many[-2:]) and not np.all(many) and (~many).sum() != 3 else D",
    "numbers that become arrays": "x = y = z = 2\nx += history.opponent_cooperators\ny = y * history.my_payoffs\n"
    "z = history.opponent_cooperators - z\nx = x * 2\nreturn C if x.sum() - y.sum() + z.sum() > 3 else D",
    "lists that are kept": "self.seen = getattr(self, 'seen', [])\n"
    "self.seen.append(history.my_actions[-1] if history.round_number else C)\n"
    "return C if sum(1 for one in self.seen[-5:] if one) in (0, 2, 3) else D",
    "methods": "def rate(x, base=2):\n    if x > base: return x / base\n    return 0.25\n"
    "return C if rate(history.round_number) + rate(3, base=history.round_number + 1) > 1.3 else D",
    "actions": "last = C if history.round_number % 3 else D\n"
    "return last if history.my_actions[-1:] is None or last is D or last == C else D",
    "random": "return C if random.random() < 0.5 else D",
    "random choices": "return C if random.randint(1, 6) + random.choice([0, 1, 5]) > 5 else D",
    "random now and then": "if history.round_number % 2: return C\nreturn C if random.random() < 0.3 else D",
    "numbers that are rounded": "n = history.round_number / 4\n"
    "return C if round(n) + math.ceil(n) - math.floor(n) + int(-n) > 1 else D",
    "numbers of a type": "x = history.round_number / 2 if history.round_number % 3 else history.round_number\n"
    "y = history.opponent_cooperators[-1] if history.round_number else True\n"
    "n = isinstance(x, int) + 2 * isinstance(x, (int, float)) + 4 * isinstance(y, (int, np.integer))\n"
    "return C if n in (2, 3, 7) and not isinstance(y, bool) and isinstance(history.my_payoffs, np.ndarray) else D",
    "binomials": "n = history.round_number\nx = sum(math.comb(8, i) * (n / 9) ** i for i in range(n))\n"
    "return C if x % 1 > 0.5 or math.comb(n, 5) == 6 else D",
    "large binomials": "p = history.round_number / 8\nx = sum(\n"
    "    math.comb(63, 31 - i) * p ** (31 - i) * (1 - p) ** (32 + i) for i in range(32))\n"
    "y = 1e18 / math.comb(61, 30) + float(math.comb(60, 29)) + np.mean([p, 0.3]) * math.comb(62, 29)\n"
    "return C if x % 1e-15 > 5e-16 or y % 1000 > 500 else D",
    "almost the same": "x = sum(history.my_payoffs) / 3\n"
    "return C if math.isclose(x, 2) or math.isclose(x * 3, 1.5, rel_tol=0.1, abs_tol=0.2) else D",
    "medians": "if not history.round_number: return D\n"
    "return C if np.median(history.my_payoffs) > np.median(history.opponent_cooperators) else D",
    "lists that give items back": "self.last = getattr(self, 'last', [])\nself.last.append(history.round_number)\n"
    "x = self.last.pop(0) if len(self.last) > 4 else -1\ny = self.last.pop() if len(self.last) == 3 else 2\n"
    "return C if (x + y + len(self.last)) % 3 else D",
    "sums in place of what is called": "def more(x):\n    return x / 3\nn = 0.5\n"
    "for i in range(history.round_number): n += more(i)\nself.n = 1\nself.n += more(n)\n"
    "return C if (n + self.n) % 1 > 0.4 else D",
    "copies of arrays": "x = np.array(history.opponent_cooperators, dtype=float)\ny = np.asarray(history.my_actions)\n"
    "return C if np.sum(np.array(x)) % 4 > 1 or y[-1:].all() else D",
    "powers of negative numbers": "x = -0.5 - history.round_number\nreturn C if x ** 3 + x ** 2 + x ** -1 < 7 else D",
    "infinity": "x = float('inf')\nfor n in history.my_payoffs: x = min(x, n)\n"
    "return C if x > 1 or x == float('-inf') else D",
    "arrays that have lists": "x = history.opponent_cooperators[-2:]\n"
    "y = [int(n) for n in x.tolist()] if hasattr(x, 'tolist') else list(x)\nn = sum(y) + 2 * hasattr(y, 'tolist')\n"
    "return C if n % 3 and not hasattr(n, 'tolist') and hasattr(sum(x), 'tolist') == (len(x) > 0) else D",
    "a pair of a variable that is unpacked at once": "t, n = (0, 0), 0\nfor i in range(3):\n    t = (i, i + 1)\n"
    "    a, b = t\n    n += t[0] + b\nreturn C if (n + history.round_number) % 2 else D",
    "a pair of an argument that is unpacked at once": "def total(t):\n    a, b = t\n    return t[0] + a + b\n"
    "return C if total((history.round_number, 2)) % 4 else D",
    "pairs that are put into items": "def pair(n): return (n, n + 1)\na = [0, 0, 0]\n"
    "a[history.round_number % 3], b = pair(5)\n(c, d), e = pair(1), pair(3)[1]\n"
    "return C if a[1] + b + c - d + e == 14 else D",
    "functions of branches": "if history.round_number > 3:\n    def some(n): return n\n    return C if some(1) else D\n"
    "else:\n    def some(n): return n - 1\n    return C if some(1) else D",
    "places and pairs": "n = 0\nfor i, (a, b) in enumerate([(history.round_number, 6), (2, 1)]): n += i * a + b\n"
    "return C if n % 4 < 2 else D",
    "quotients that are large": "x = (1e20 + history.round_number) // 3.0\n"
    "return C if x > 0 and (-9007199254740992 / 3) // 1e-300 < x else D",
    "what is reversed": "x = [history.round_number, 3, 1]\nn = 0\nfor i, a in enumerate(reversed(x)): n += i * a\n"
    "for i in reversed(range(history.round_number)): n = 2 * n + i\n"
    "for i in reversed(range(2, int(history.my_payoffs.sum()))): n -= i\n"
    "return C if (n + list(reversed(x))[0] + sum(reversed(history.opponent_cooperators))) % 3 else D",
    "a range that is drawn and reversed": "n = 0\n"
    "for i in reversed(range(random.randint(0, 3), random.randint(2, 9))): n = n * 2 + i\nreturn C if n % 3 else D",
    "no stock": "return C if hasattr(self.game_description, 'capacity') else D",
}
SEARCHES = {
    "a search that remembers": "def best(stock, left, known):\n    key = (round(stock, 4), left)\n"
    "    if key in known: return known[key]\n    if left == 0: return 0.0\n"
    "    one = stock / 9 + best(stock * 0.8, left - 1, known)\n"
    "    two = stock / 7 + best(stock * 0.7, left - 1, known)\n    known[key] = max(one, two)\n    return known[key]\n"
    "known = {}\nx = best(50 + history.round_number / 3, 9, known)\n"
    "return C if x * 1e4 % 1 > 0.5 or len(known) % 3 == 0 else D",
    "functions that call each other": "def even(n): return True if n == 0 else odd(n - 1)\n"
    "def odd(n):\n    if n > 0: return even(n - 1)\n    return False\n"
    "return C if even(history.round_number + 3) else D",
    "calls in the arguments of calls": "def less(n, by=2):\n    if n > 40: return n - by\n"
    "    return less(less(n + 7, by=by + 1), 3)\nn = [less(history.round_number * 2), less(1)]\n"
    "return C if (less(3) * 5 + sum(n) + less(less(2))) % 4 > 1 else D",
    "calls that return nothing": "def fill(found, n):\n    if n > 0:\n        found.append(n)\n"
    "        fill(found, n - 2)\n        if n == 3: return len(found)\nfound = []\n"
    "x = fill(found, history.round_number)\nreturn C if (len(found) + (1 if x is None else x)) % 3 else D",
    "variables of those who call": "base = history.round_number\ndef down(n):\n    here = n * base\n"
    "    below = [down(n - i) for i in range(1, 3) if n - i >= 0]\n    return here + sum(below) - base * len(below)\n"
    "def both(n): return down(n) + base\nreturn C if (down(6) + both(3) + down(2)) % 7 > 2 else D",
    "a search within a search": "def outer(n):\n    def inner(m): return 1 if m <= 0 else inner(m - 1) + n\n"
    "    return 2 if n <= 0 else inner(n) + outer(n - 1) * inner(2)\n"
    "return C if outer(history.round_number // 2) % 7 > 2 else D",
    "dicts": "x = {}\nfor n in history.opponent_cooperators: x[n] = x.get(n, 0) + 1\n"
    "y = dict()\ny[None], y['no'], y[C], y[-0.0], y[True], y[(2, C)] = 1, 2, 4, 8, 16, 32\n"
    "n = y.get(0, 64) + y[1.0] + y[(2.0, C)] + y.get('yes', 128) + y[C] + (y.get(D) is None) + len(y)\n"
    "return C if x and (n + x.get(2, 5) + len(x) + (3 in x) + ('no' not in y)) % 5 > 2 else D",
    "dicts that grow": "x = {0: -1, (1, 2): 3}\nfor i in range(60 + history.round_number): x[i / 4] = i % 7\n"
    "n = 0\nfor i in range(99):\n    if i in x: n += x[i] * i\nreturn C if n % 5 > 2 and len(x) > 60 else D",
    "keys that are equal": "t = (1, history.round_number)\nx = {t: 3, (1, -0.0): 5}\n"
    "x[t] = x[t] + x.get((True, float(history.round_number)), 0)\nt = (t[1], t[0])\n"
    "return C if (x.get(t, 1) + x[(1.0, history.round_number)] + len(x)) % 4 > 1 else D",
    "sequences that are unpacked": "(a, b), c = [history.round_number, 3], sum(history.opponent_cooperators)\n"
    "a, b = b, a\nc, d = (c, a) if c > b else (a, c)\nreturn C if (2 * a + b + 5 * c + d) % 3 else D",
    "pairs that are returned": "n = history.round_number\ndef pair(x, y): return (y + n, x)\n"
    "def either(x):\n    if x > 3: return (x, 1)\n    low = x - 1\n    return (low, 2)\n"
    "a, b = pair(n, 2)\na, b = pair(b, a)\nb, a = pair(a, pair(b, 1)[0])\nc, d = either(n)\n"
    "(c, d), e = pair((c, d), 1), n\nreturn C if (2 * a + 3 * b + d[0] + 5 * d[1] + c + e) % 3 else D",
    "results that go where they were read": "n = history.round_number\ndef more(x):\n    for i in range(9):\n"
    "        if i * i > x: return x + i\n    return -x\nx = more(n)\nx = more(x) + x\nx = [x, more(x)]\n"
    "def down(m):\n    if m <= 0: return n\n    k = m\n    m = down(m - 2)\n    m = m + k\n    return m\n"
    "n = down(n)\nreturn C if (x[0] + 2 * x[1] + n) % 3 else D",
    "calls that end without a value": "found = []\ndef note(n):\n    if n < 1: return\n    found.append(n)\n"
    "    note(n - 1)\nx = note(history.round_number)\nreturn C if x is None and len(found) % 2 else D",
    "what changes while it is read": "x = [1, 2, history.round_number]\ndef cut(): return x.pop()\n"
    "y = (x[0], cut(), len(x), cut() if len(x) > 1 else 7)\nx[len(x) - 1] = y[1]\n"
    "return C if 1 < y[1] + y[3] != 4 or not x[0] <= 3 else D",
    "numbers with some digits": "x = round(history.round_number / 7, 3) + round(np.mean([1.25, 2.005]), 2)\n"
    "y = round(2.675, 2) + round(-0.125, ndigits=2) + round(True, 1) + round(1e15 / 3, 0) + round(7, 2)\n"
    "return C if (x + y) * 1000 % 1 > 0.5 and round(-0.004, 2) == 0 else D",
}
LEFT = {
    "a division by zero": "return C if 1 / (history.round_number - 3) > 0 else D",
    "a large integer": "return C if (7 ** history.round_number) ** 5 % 10 > 4 else D",
    "a large integer that is compared": "return C if math.comb(62, 31) > history.round_number / 2 else D",
    "the type of a large integer": "return C if isinstance(math.comb(62, 31), int) else D",
    "large integers alone": "return C if math.comb(62, 31) / math.comb(60, 30) > 3 else D",
    "no such item": "return C if history.opponent_cooperators[-3] else D",
    "an unset variable": "if history.round_number > 2: x = 1\nreturn C if x else D",
    "an unset variable of a function": "def some(n):\n    y = n + 1\n    if n > 1: x = y\n    return x\n"
    "n = history.round_number\nz = some(n + 2)\nreturn C if some(n) + z > 5 else D",
    "a variable of a function that is read early": "def some(n):\n    z = [x for i in (1, 2) if n < 3]\n    x = n\n"
    "    return len(z) + x\nn = history.round_number\nreturn C if some(5) + some(n) > 5 else D",
    "a variable of a routine that is read early": "def some(n, m):\n    y = n + 1\n    if m > 2: x = y\n"
    "    if n > 0: some(n - 1, m + 1)\n    return x\nreturn C if some(2, history.round_number) else D",
    "an unset attribute": "if history.round_number < 2: self.x = 1\nif history.round_number > 4: del self.x\n"
    "return C if self.x else D",
    "an error that is caught": "try:\n    return C if history.my_payoffs[3] > 1 else D\n"
    "except IndexError:\n    return C",
    "no action": "return history.my_actions[-1] if history.round_number else C",
    "a history that is kept": "self.h = history\nreturn C if self.h.round_number % 2 else D",
    "an array that is kept": "self.a = history.my_payoffs * 2\nreturn C if self.a.sum() > 3 else D",
    "an array of two names that changes": "x = history.my_payoffs * 2\ny = x[-3:]\ny += 1\n"
    "return C if x.sum() % 3 > 1.2 else D",
    "an array that can't change": "x = history.my_payoffs\nx += 1\nreturn C if x.sum() > 3 else D",
    "a method that lists don't have": "x = [1, history.round_number]\nreturn C if x.sum() > 3 else D",
    "an array of another type": "x = history.opponent_cooperators * 1\nx += 0.5\nreturn C if x.sum() > 3 else D",
    "the identity of integers": "x = 1000 + history.round_number\ny = 1000 + history.round_number\nx = y is x\n"
    "return C if x else D",
    "a list in itself": "x = []\nx.append(x)\nreturn C if x else D",
    "too many turns": "n = 0\nfor i in range(300):\n    for j in range(100): n += 1\nreturn C if n % 7 else D",
    "a power of a numpy integer": "if history.round_number < 1: return C\n"
    "n = history.opponent_cooperators.sum() + 10\nreturn C if n ** 2.5 == int(n) ** 2.5 and 0.9 ** n < 0.5 else D",
    "a truth as the place in an array": "if history.round_number < 2: return C\n"
    "return C if history.my_payoffs[history.round_number > 1] > 1 else D",
    "a numpy integer that is truncated": "if history.round_number < 1: return C\n"
    "return C if math.trunc(history.opponent_cooperators[-1]) > 1 else D",
    "a range of actions backwards": "if history.round_number < 1: return C\nn = 0\n"
    "for i in reversed(range(history.my_actions[-1])): n += 1\nreturn C if n else D",
    "zeros of both signs": "return C if np.max([-0.0, 0.0]) == 0 and 1 / np.min([0.0, -0.0]) > 0 else D",
    "actions that are squared": "x = history.my_actions ** 2 + 200\nreturn C if x.sum() > 3 else D",
    "what is equal to nothing": "x = float('inf') - float('inf')\nreturn C if x in [1, x] else D",
    "a key that is not a number": "x = {}\nx[float('inf') - float('inf')] = 1\nreturn C if len(x) else D",
    "a key that has no hash": "x = {}\nif history.round_number > 2: x[[1]] = 2\nreturn C if [2] in x else D",
    "no such key": "x = {1: 2}\nreturn C if x[history.round_number] else D",
    "the keys of a dict": "x = {3: 2, 4: 1}\nn = 0\nfor key in x: n += key * x[key]\nreturn C if n % 3 else D",
    "a dict that is kept": "self.seen = getattr(self, 'seen', {})\nself.seen[history.round_number // 2] = 1\n"
    "return C if len(self.seen) % 2 else D",
    "a dict of a decision that is kept": "def some(n): return {1: n} if n > 3 else some(n + 1)\nself.last = some(2)\n"
    "return C if self.last[1] == 4 else D",
    "recursion without an end": "def more(n): return more(n + 1)\ntry:\n    return C if more(0) else D\n"
    "except RuntimeError:\n    return C",
    "deep recursion": "def more(n): return 0 if n == 0 else 1 + more(n - 1)\nreturn C if more(300) == 300 else D",
    "numbers with many digits": "return C if round(history.round_number / 7, 25) == round(1e300, 3) / 1e300 else D",
    "tens": "return C if round(history.round_number * 7.0, -1) == 10 else D",
    "too few to unpack": "a, b = history.my_actions[:history.round_number]\nreturn C if a == b else D",
    "a comparison of what is not set": "if history.round_number > 2: x = 1\nreturn C if x < 2 else D",
    "arrays that are compared": "return C if history.my_payoffs > 1 else D",
    "a comparison of None": "return C if None < history.round_number else D",
}
UNLOWERED = {
    "a function that may not be defined": "if history.round_number > 3:\n    def some(n): return n\n"
    "return C if some(1) else D",
    "a function that another one hides": "def some(n): return n\ndef other(n):\n    if n > 3:\n"
    "        def some(n): return 1 - n\n    return some(n)\nreturn C if other(history.round_number) else D",
    "a routine of a function that may not be defined": "def down(n): return some(1) if n <= 0 else down(n - 1)\n"
    "if history.round_number % 2:\n    def some(n): return n\n    x = down(2)\nreturn C if down(3) else D",
    "a comprehension that hides what it goes through": "n = 3\nx = [9, 9, 9, 9, 9]\n"
    "return C if sum(n for n in range(n)) == 3 else D",
    "a list that its items hide": "x = [1, history.round_number]\ny = [x for x in x]\nreturn C if sum(y) % 3 else D",
    "arguments that are drawn in another order": "def less(a, b): return a - b\n"
    "return C if less(b=random.random(), a=random.random()) > 0 else D",
    "an argument that is given twice": "def less(a, b=1): return a - b\nreturn C if less(1, a=2) > 0 else D",
    "an argument too many": "def same(a): return a\nreturn C if same(1, 2) else D",
    "a reversed range with another argument": "for i in reversed(range(3), strict=True): pass\nreturn C",
    "an item at the place that is counted": "x = [0, 0, 0]\nfor i, x[i] in enumerate([5, 6, 7]): pass\n"
    "return C if x == [5, 6, 7] else D",
    "a place that its item hides": "for x, x in enumerate([5, 6]): pass\nreturn C if x == 6 else D",
    "a reversed list as a truth": "x = reversed([])\nreturn C if x else D",
    "a reversed list that changes": "x = [1, 2, 3]\ns = 0\nfor i in reversed(x):\n    x[0] = 4\n    s += i\n"
    "return C if s == 9 else D",
    "a reversed list that is read twice": "x = reversed([1, 2])\nreturn C if sum(x) == 3 and sum(x) == 0 else D",
    "tolerances that are drawn in another order": "return C if math.isclose("
    "0.3, 0.8, abs_tol=random.random(), rel_tol=random.random() / 9) else D",
    "an item at no whole place": "x = [1, 2]\nreturn C if x.pop(0.0) else D",
}
"""What has no instructions, because the machine would do it in another order."""


NAMED = {
    "actions": ["rock", "paper", "scissors"],
    "table": np.random.default_rng(3).integers(-3, 9, (3, 10)).tolist(),
    "noise": 0.1,
}
BY_ACTION = {
    "the best reply": "if history.round_number == 0: return 0\n"
    "return (int(np.argmax(history.opponent_counts[-1])) + 1) % len(self.game_description.actions)",
    "the place of the least": "return np.argmin(history.opponent_counts[0]) if len(history.opponent_counts) else 2",
    "single counts": "n = 0\nfor row in history.opponent_counts: n += row[0] - 2 * row[-1]\nreturn int(n) % 3",
    "a list of counts": "x = [int(row.sum()) for row in history.opponent_counts]\n"
    "x = x + [1] if False else x\nreturn (len(x) + max([sum(x), 0])) % 3",
    "own actions": "x = history.my_actions\nreturn x[-1] if len(x) > 1 and x[-1] != x[-2] else int(x.sum() + 1) % 3",
    "payoffs": "return 0 if history.round_number < 2 or history.my_payoffs[-1] > np.mean(history.my_payoffs) else 1",
    "names that are kept": "self.n = getattr(self, 'n', self.game_description.actions)\nreturn len(self.n) - 1",
    "random": "return random.randint(0, 2)",
    "a list that is kept": "self.x = getattr(self, 'x', [])\nself.x.append(history.round_number)\n"
    "return (len(self.x) + sum(self.x)) % 3",
    "no cooperators": "return 2 if hasattr(history, 'opponent_cooperators') else 1",
    "is nothing": "return 1 if history.opponent_counts is None or self.game_description.actions is None else 2",
}
LEFT_BY_ACTION = {
    "an action of another kind of game": "return C",
    "a number that is no action": "return history.round_number",
    "a truth": "return history.round_number > 3",
    "a name": "return 1 if self.game_description.actions[0] == 'rock' else 2",
    "a sum of all counts": "return int(history.opponent_counts.sum()) % 3",
    "a sum by action": "return int(np.argmax(np.sum(history.opponent_counts, axis=0))) if history.round_number else 1",
    "a column": "return int(sum(history.opponent_counts[:, 1])) % 3",
    "the latest rows": "return len(history.opponent_counts[-2:]) % 3",
    "a row that is not there": "return 0 if history.opponent_counts[5][0] else 1",
    "the type of the counts": "return 2 if isinstance(history.opponent_counts, np.ndarray) else 0",
    "counts that are kept": "self.c = history.opponent_counts\nreturn len(self.c) % 3",
    "counts as a truth": "return 2 if history.opponent_counts[:1].any() else 0",
    "cooperators": "return int(history.opponent_cooperators[-1])",
    "counts that are compared": "return 1 if (history.opponent_counts == 2).any() else 0",
    "no place": "return int(np.argmax([])) if history.round_number else 0",
}


def _source(bodies: Sequence[str]) -> str:
    return HEAD + "".join(strategy(body, name=f"Strategy_SELFISH_{n}") for n, body in enumerate(bodies, 1))


def _read(bodies: Sequence[str]) -> list[Source]:
    return read_source(_source(bodies), "test.py", FAST)


def _played(text: str, *, native: bool, game: str = "public-goods", rounds: int = 9) -> list[Result]:
    made = make_repeated(game, 4, rounds, NAMED if game == "by-action" else None)
    with Workers(processes=1, native=native) as workers:
        loaded = workers.load("test.py", text)
        assert [one.problems for one in loaded] == [()] * len(loaded)
        others = opponents(made)
        groups = [np.full((len(others), 1), one.index) for one in loaded]
        return workers.play([Batch(made, one, seed=5, opponents=others) for one in groups])


def _assert_same(text: str, names: Sequence[str], game: str = "public-goods") -> None:
    by_machine, by_python = (_played(text, native=native, game=game) for native in (True, False))
    for name, ours, theirs in zip(names, by_machine, by_python, strict=True):
        assert np.array_equal(ours.actions, theirs.actions), name
        assert ours.errors == theirs.errors, name


@pytest.mark.parametrize("game", ["public-goods", "common-pool"])
def test_the_machine_plays_as_python_does(game: str) -> None:
    bodies = BODIES | SEARCHES | LEFT | UNLOWERED | FIT
    _assert_same(_source([*bodies.values()]), [*bodies], game)


def test_the_machine_leaves_the_papers_form_to_python() -> None:
    text = HEAD + strategy("return C if history is None else D", arguments="state, history")
    [source] = read_source(text, "test.py", FAST)
    assert (source.program, source.found.way) == (b"", COMPILED)
    _assert_same(text, ["no history"], "common-pool")


def test_the_machine_plays_random_programs_as_python_does() -> None:
    bodies = random_bodies(250, seed=1)
    init = "self.k = 1\nself.kept = [1]"
    text = HEAD + "".join(
        strategy(body, name=f"Strategy_SELFISH_{n}", init=init) + methods for n, (body, methods) in enumerate(bodies, 1)
    )
    assert sum(bool(source.program) for source in read_source(text, "test.py", FAST)) > 180
    _assert_same(text, [body for body, _ in bodies])


def test_the_machine_plays_games_of_named_actions_as_python_does() -> None:
    bodies = BY_ACTION | LEFT_BY_ACTION
    _assert_same(_source([*bodies.values()]), [*bodies], "by-action")


def test_the_machine_goes_on_with_players_of_named_actions() -> None:
    game = make_repeated("by-action", 4, 9, NAMED)
    sources = _read([*BY_ACTION.values()])
    assert all(source.program for source in sources)
    strategies = np.repeat(np.arange(len(sources)), 4)
    programs = FAST.load()
    assert programs is not None
    programs.learn([source.program for source in sources])
    players = programs.players(
        terms_of(game), strategies, np.ones(len(strategies), bool), 5, np.arange(len(sources)), 4
    )
    assert players.counts.shape == (len(strategies), 9, 3)
    for t in range(9):
        chosen = np.full(len(strategies), 7, np.uint8)
        players.decide(t, chosen, None)
        assert chosen.max() <= 2
        groups = chosen.reshape(-1, 4)
        players.actions[:, t], players.payoffs[:, t] = chosen, game.payoffs(groups, None).reshape(-1)
        players.counts[:, t] = game.others(groups, groups).reshape(-1, 3)
    assert players.playing.all()


def test_a_match_is_the_same_without_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make_repeated("common-pool", 4, 12)
    groups = np.random.default_rng(0).integers(len(BODIES), size=(200, 4))
    played = []
    for place in (installed_machine(), ""):
        monkeypatch.setattr("labmates_populations.engine.workers.installed_machine", lambda place=place: place)
        with Workers(processes=1, native=True) as workers:
            workers.load("test.py", _source([*BODIES.values()]))
            [result] = workers.play([Batch(game, groups, seed=3)])
            assert any(source.program for source in workers._sources) == bool(place)
        assert (result.own_seconds > 0) == (not place), "the machine plays them all, or Python"
        played.append(result)
    assert np.array_equal(played[0].actions, played[1].actions)
    assert played[0].errors == played[1].errors


def test_the_machine_can_be_loaded_between_two_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [
        Batch(make_repeated("public-goods", 4, 9), np.zeros((8, 4), np.int64), seed, anew=True) for seed in (0, 1)
    ]
    played = []
    for worth in (400, 1 << 60):
        monkeypatch.setattr("labmates_populations.engine.workers._WORTH_LOADING", worth)
        with Workers(processes=2) as workers:
            workers.load("test.py", _source([BODIES["random"]]))
            played += [[one.actions for one in workers.play(batches[:number])] for number in (1, 2)]
            assert (workers._native is not None) == (worth == 400)
    for one, other in zip(played[0] + played[1], played[2] + played[3], strict=True):
        assert (one == other).all()


def test_binomials_are_not_left_to_python() -> None:
    results = _played(
        _source([BODIES["binomials"], BODIES["large binomials"], LEFT["large integers alone"]]), native=True
    )
    assert [one.own_seconds > 0 for one in results] == [False, False, True]


def test_searches_are_not_left_to_python() -> None:
    results = _played(_source([*SEARCHES.values(), LEFT["deep recursion"]]), native=True)
    assert [one.own_seconds > 0 for one in results] == [False] * len(SEARCHES) + [True]


WITHOUT_END = {
    "in time": "def count(n): return 1 if n == 0 else count(n - 1) + count(n - 1)\nreturn C if count(50) else D",
    "in memory": "def more(n): return [n] if n == 0 else [more(n - 1), more(n - 1)]\nreturn C if more(24) else D",
    "in depth": "n = 0\nfor i in range(30000): n += i\ndef more(n): return more(n + 1)\nreturn C if more(0) else D",
}


@pytest.mark.parametrize("body", WITHOUT_END.values(), ids=WITHOUT_END)
def test_a_search_without_an_end_is_tried_once(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    limit = 30_000_000
    monkeypatch.setattr("labmates_fast.programs.ROUTINES_LIMIT", limit)
    sources = _read([body, SEARCHES["a search that remembers"]])
    programs = FAST.load()
    assert programs is not None
    programs.learn([source.program for source in sources])
    batch = terms_of(make_repeated("public-goods", 4, 9)), np.array([0, 1, 0, 0]), np.ones(4, bool), 5, np.arange(1), 4
    players = programs.players(*batch)
    players.decide(0, np.zeros(4, np.uint8), None)
    assert players.playing.tolist() == [False, True, False, False]
    budgets = players._memory[players._players[:, BUDGET]]
    assert budgets[0] <= 0 < limit - 1_000_000 < budgets[1] < limit
    assert programs.players(*batch).playing.tolist() == [False, True, False, False]


@pytest.mark.parametrize("body", UNLOWERED.values(), ids=UNLOWERED)
def test_what_the_machine_would_do_in_another_order_has_none(body: str) -> None:
    [source] = _read([body])
    assert (source.compiled, source.program) == (True, b"")


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_usual_code_has_instructions(body: str) -> None:
    [source] = _read([body])
    assert source.program


def test_numbers_are_rounded_as_python_and_numpy_do() -> None:
    chance = random.Random(2)
    compared = 0
    for _ in range(40_000):
        digits, whole = chance.choice([0, 1, 2, 3, 4, 6, 10, 12, 22]), 2 * chance.randrange(-(10**6), 10**6) + 1
        near = whole / 2 / 10.0**digits  # halfway between two decimal numbers, or nearly
        any_bits = struct.unpack("<d", chance.randbytes(8))[0]
        exact = whole / 2.0 ** chance.randrange(1, 12)
        for number in (near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf), any_bits, exact, -0.0):
            for kind, exactly in ((float, True), (np.float64, False)):
                done, ours = rounded(number, digits, exactly)
                compared += done
                theirs = float(round(kind(number), digits)) if done else ours
                assert struct.pack("<d", ours) == struct.pack("<d", theirs), (number, digits, kind)
    assert compared > 300_000
    assert not any(rounded(number, 2, True)[0] for number in (math.inf, math.nan, 2.0**52, -1e300))


def test_no_operator_differs_from_pythons() -> None:
    chance = random.Random(0)
    bodies = [_comparison(chance) for _ in range(300)]
    assert all(source.program for source in _read(bodies))
    _assert_same(_source(bodies), bodies)


def _comparison(chance: random.Random) -> str:
    return f"x = {_number(chance, 4)}\ny = {_number(chance, 4)}\nreturn C if x {chance.choice(_COMPARISONS)} y else D"


_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_ATOMS = (
    "history.round_number", "history.my_actions[-1]", "history.my_payoffs[-1]", "history.opponent_cooperators[-1]",
    "True", "False", "2", "-3", "0", "0.5", "-1.25", "1e300", "math.inf", "self.game_description.k",
    "np.sum(history.opponent_cooperators)", "np.mean(history.my_payoffs)", "sum(history.my_actions)",
    "len(history.my_actions)", "history.my_payoffs[:2].max()",
)  # fmt: skip
_FORMS = ("({} + {})", "({} - {})", "({} * {})", "({} / {})", "({} // {})", "({} % {})", "({} < {})", "max({}, {})",
          "min({}, {})", "abs({})", "int({})", "float({})", "bool({})", "-{}", "(not {})", "({} and {})", "({} or {})",
          "({} if {} else 2)", "({} == {})", "({} ** 2)", "math.ceil({})", "round({}, 2)")  # fmt: skip


def _number(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(_ATOMS)
    form = chance.choice(_FORMS)
    return form.format(*(_number(chance, depth - 1) for _ in range(form.count("{}"))))


def test_random_numbers_are_those_of_python() -> None:
    body = "x = [random.random() for i in range(200)]\nreturn C if sum(x) * 1000 % 1 < 0.5 else D"
    _assert_same(_source([body] * 3), ["random"] * 3)


def test_checks_by_the_machine_give_the_verdicts_of_python() -> None:
    bodies = [
        "return C if history.round_number < 3 else D",
        "return C if random.random() < 0.5 else D",
        "return C if history.my_payoffs[-1] > 0 else D",
        "return C if 1 / (history.round_number - 4) else D",
        "while history.round_number > 2: pass\nreturn C",
        "return C if history.round_number < 19 else None",
    ]
    code = HEAD + "".join(strategy(body, name=f"Strategy_SELFISH_{place}") for place, body in enumerate(bodies))
    verdicts = []
    for native in (True, False):
        with Workers(processes=1, seconds=0.2, native=native) as workers:
            checked = check_strategies(workers, "collective-risk", workers.load("test.py", code))
        verdicts.append([(one.problems, one.deterministic) for one in checked])
    assert verdicts[0] == verdicts[1]
    assert [bool(problems) for problems, _ in verdicts[0]] == [False, False, True, True, True, True]
