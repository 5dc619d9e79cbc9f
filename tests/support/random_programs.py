"""Random strategies that are compiled: each has to play as in a process of its own."""

from __future__ import annotations

import contextlib
import random
import re
import textwrap

_GRAMMAR = {
    "n": [  # a number
        "x", "y", "z", "2", "self.k", "history.round_number", "({n} + {n})", "({n} - {n})", "({n} * {n})",
        "({n} % 7)", "({n} // 3)", "({n} if {t} else {n})", "({n} or {n})", "({n} and {n})", "{p}[0]", "{p}[-1]",
        "{l}[0]", "len({l})", "sum({l})", "sum(i * {n} for i in {c})", "sum({n} + i for i in range({n} % 4) if {t})",
        "sum(i * j for i, j in enumerate({l}))", "sum({n} for x in {l})", "max({n}, {n})", "min({n}, {n}, {n})",
        "abs({n})", "(w := {n})", "f({n})", "f(n={n})", "g({n})", "g({n}, {n})", "g({n}, m={n})", "g(n={n}, m={n})",
        "g(m={n}, n={n})", "self.more({n})", "random.randint(0, {n} % 5)", "d.get({n} % 3, {n})",
        "(a.pop() if len(a) > 1 else {n})",
    ],
    "t": [  # a condition
        "x < y", "{n} < {n}", "{n} == {n}", "{n} <= {n} < {n}", "{n} in {l}", "{n} not in ({n}, {n})", "({t} and {t})",
        "({t} or {t})", "(not {t})", "any(i < {n} for i in {c})", "all({t} for i in {c})", "random.random() < 0.4",
    ],
    "p": ["p", "q", "({n}, {n})", "({p} if {t} else {p})", "h({n})"],  # a pair
    "l": ["a", "b", "self.kept", "[{n}, {n}]", "[{n} + i for i in {c}]", "list(i + {n} for i in {c})", "{l}[-3:]"],
    "v": ["x", "y", "z"],  # a variable
    "c": ["a", "b", "(x, y)", "self.kept"],  # what a comprehension goes through
    "s": [  # a statement; {r} is what the function returns
        "{v} = {n} % 97", "{v} += {n} % 9", "{v} = {v} = {n} % 8", "{v}, {v} = {p}", "{v}, {v} = {n} % 50, {n} % 7",
        "({v}, {v}), {v} = {p}, {n} % 9", "a[{n} % len(a)], {v} = {p}", "{v}, a[{v} % len(a)] = h({n})",
        "{v}, self.k = h({n})", "p = ({n} % 40, {n} % 9)", "q = h({n})", "a = {l}[-4:]", "b = {l}",
        "a.append({n} % 30)", "self.kept = {l}[-3:]", "self.k = {n} % 40", "self.k += {n} % 3", "d[{n} % 3] = {n} % 20",
        "if {t}: return {r}", "if {t}:\n    {s}\n    {s}", "if {t}:\n    {s}\nelse:\n    {s}",
        "for {v} in {l}[-4:]:\n    {s}\n    {s}", "for x, y in enumerate({l}[-3:]):\n    {s}",
        "for {v}, {v} in zip({l}[-3:], {l}[-3:]):\n    {s}",
        "for {v} in reversed(range(x % 3, y % 5 + z % 2)):\n    {s}",
        "for {v} in range({n} % 4):\n    {s}\n    if {t}: break\n    {s}\nelse:\n    {s}",
        "for {v} in {l}[-3:]:\n    if {t}: continue\n    {s}",
        "if {t}:\n    def e(n): return n + {n}\n    {v} = e({n}) % 9\n    {s}",
    ],
}  # fmt: skip
_FUNCTIONS = {"f(n)": "{n}", "g(n, m=2)": "{n}", "h(n)": "({n}, {n})"}
_BEGIN = "w, x, y, z = 1, {}, 2, 3\na, b = [x, 5], [y]\nd, p, q = {{0: 1}}, (x, 2), (1, y)\n"
_MORE = """
    def more(self, n):
        self.k += n % 3
        if n > 4: return self.k - n
        for i in range(3):
            if i == n % 3: return i * n
            n += 1
        return n
"""
_PLACE = re.compile(r"\{(\w)\}")


class _Author:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._result = "{n}"
        self._unknown: set[str] = set()

    def written(self, kind: str, depth: int) -> str:
        """An expression or a statement of some kind of the grammar."""
        if kind == "r":
            return self._filled(self._result, depth)
        forms = [
            one for one in _GRAMMAR[kind] if self._is_known(one) and (depth > 0 or one.count("{") <= (kind == "s"))
        ]
        form = self._random.choice(forms)
        lines = []
        for line in form.split("\n"):
            indent = line[: len(line) - len(line.lstrip())]
            if line.strip() == "{s}":
                lines.append(textwrap.indent(self.written("s", depth - 1), indent))
            else:
                lines.append(self._filled(line, self._random.choice((1, 1, 2)) if kind == "s" else depth - 1))
        return "\n".join(lines)

    def _filled(self, form: str, depth: int) -> str:
        return _PLACE.sub(lambda place: self.written(place[1], depth), form)

    def _is_known(self, form: str) -> bool:
        return self._unknown.isdisjoint(re.findall(r"(\w+)\(", form))

    def body(self) -> str:
        """The body of a decision: functions that may call those before them, and statements."""
        text, self._unknown = "", set("fgh")
        for head, result in _FUNCTIONS.items():
            self._result = result
            statements = "\n".join(self.written("s", 1) for _ in range(2))
            inner = f"{_BEGIN.format('n')}{statements}\nreturn {self._filled(result, 2)}"
            text += f"def {head}:\n{textwrap.indent(inner, '    ')}\n"
            self._unknown.remove(head[0])
        self._result = "C if {t} else D"
        text += _BEGIN.format("history.round_number") + "\n".join(self.written("s", 2) for _ in range(5))
        total = "w + x + 3 * y + 5 * z + sum(a) + 7 * sum(b) + p[0] + q[1] + d[0] + self.k + sum(self.kept)"
        return f"{text}\nreturn C if ({total}) % 2 else D"


def random_bodies(count: int, seed: int) -> list[tuple[str, str]]:
    """Bodies of decisions for `tests.support.strategies.strategy`, and the methods that follow them."""
    author = _Author(seed)
    found: list[tuple[str, str]] = []
    while len(found) < count:
        body = author.body()
        with contextlib.suppress(SyntaxError):  # for instance a variable of a comprehension that is assigned in it
            compile(f"def decide():\n{textwrap.indent(body, '    ')}", "", "exec")
            found.append((body, _MORE))
    return found
