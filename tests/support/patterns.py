"""The regular expressions of the package, texts that are hard for them, and the steps that they take."""

from __future__ import annotations

import ast
import importlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

sre: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / "labmates", *sorted(ROOT.glob("packages/*/labmates_*"))]
SEARCHING = ("search", "sub", "subn", "finditer", "findall", "split")
ANCHORED = ("match", "fullmatch")
MOST_STEPS = 1_000_000
Then = Callable[[int], bool]
Match = Callable[[int, Then], bool]


@dataclass(frozen=True)
class Found:
    """A pattern in the code: where it stands, and whether it is looked for at each place of a text."""

    place: str
    pattern: str | bytes
    flags: int
    searches: bool


def patterns() -> Iterator[Found]:
    """Yield the patterns in calls of `re`; those that are put together are taken from their imported module."""
    texts = {path: path.read_text() for package in PACKAGES for path in sorted(package.rglob("*.py"))}
    uses = re.compile(rf"\b(\w+)(?:\[[^\]\n]*\])?\.({'|'.join((*SEARCHING, *ANCHORED))})\(")
    used = {path: set(uses.findall(text)) for path, text in texts.items()}
    anywhere = set().union(*used.values())

    def searches(path: Path, name: str) -> bool:
        near = {use for each, use in used[path] if each == name} or {use for each, use in anywhere if each == name}
        return not near or bool(near & {*SEARCHING})

    for path, source in texts.items():
        if "re." not in source:
            continue
        tree = ast.parse(source)
        names: dict[int, str] = {}
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and isinstance(targets[0], ast.Name):
                names |= dict.fromkeys(map(id, ast.walk(node.value)), targets[0].id)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
                continue
            use, name = node.func.attr, names.get(id(node), "")
            if use not in ("compile", *SEARCHING, *ANCHORED):
                continue
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            looked_for = use in SEARCHING if use != "compile" else not name or searches(path, name)
            if isinstance(node.args[0], ast.Constant) and isinstance(text := node.args[0].value, str | bytes):
                yield Found(place, text, _flags(node), looked_for)
            elif name and isinstance(made := getattr(_module(path), name, None), re.Pattern):
                yield Found(place, made.pattern, made.flags & ~re.UNICODE.value, looked_for)


def _flags(call: ast.Call) -> int:
    given = [each.value for each in call.keywords if each.arg == "flags"]
    given += call.args[1:] if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" else []
    return int(eval(compile(ast.Expression(given[0]), "", "eval"), {"re": re})) if given else 0


def _module(path: Path) -> Any:
    base = next(package for package in PACKAGES if path.is_relative_to(package)).parent
    return importlib.import_module(".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"))


def hard_units(found: Found) -> list[str]:
    """The characters that the pattern names, alone and by two, of which texts are hard for it."""
    chars = list(dict.fromkeys(_chars(parser.parse(found.pattern, found.flags))))[:4] or ["a"]
    return [*chars, *(a + b for a in chars for b in chars if a != b)]


def hard_text(found: Found, unit: str, size: int) -> str | bytes:
    """A text of a size: a run of a unit, and what ends a match."""
    text = (unit * size)[: size - 1] + "\x00"
    return text.encode("latin-1", "replace") if isinstance(found.pattern, bytes) else text


def _chars(tree: Iterable[Any]) -> Iterator[str]:
    """Repeated characters first."""
    later: list[str] = []
    for op, value in tree:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield from _chars(value[2])
        elif op is sre.LITERAL:
            later.append(chr(value))
        elif op is sre.IN:
            later += [chr(c) for c in (32, 10, 97, 48, 45, 46, 42, 65) if _in(value, c, 0)][:2]
        elif op in (sre.ANY, sre.NOT_LITERAL):
            later.append("a")
        elif op is sre.BRANCH:
            for branch in value[1]:
                later += _chars(branch)
        elif op is sre.SUBPATTERN:
            later += _chars(value[3])
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            later += _chars(value[1])
        elif op is sre.ATOMIC_GROUP:
            later += _chars(value)
    yield from later


_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}


def _in(items: Iterable[Any], code: int, flags: int) -> bool:
    cases = {code}
    if flags & re.IGNORECASE:
        cases |= {ord(c) for c in (chr(code).lower(), chr(code).upper()) if len(c) == 1}
    negated, has = False, False
    for op, value in items:
        if op is sre.NEGATE:
            negated = True
        elif op is sre.LITERAL:
            has |= value in cases
        elif op is sre.RANGE:
            has |= any(value[0] <= case <= value[1] for case in cases)
        elif op is sre.CATEGORY:
            has |= re.match(_CATEGORIES[value], chr(code)) is not None
    return has != negated


class TooManyStepsError(Exception):
    """The steps grow exponentially."""


class Steps:
    """A matcher that goes back as `re` does, and counts its steps."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._tree = parser.parse(found.pattern, found.flags)
        self._flags = self._tree.state.flags
        self._match = self._sequence(list(self._tree))
        self.steps = 0
        self._text: list[int] = []

    def count(self, text: str | bytes) -> int:
        """The steps that it takes to find all matches in a text, or one at its beginning."""
        self._text = list(text) if isinstance(text, bytes) else list(map(ord, text))
        self.steps, place = 0, 0
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(100_000)
        try:
            while place <= len(self._text):
                end = self._end(self._match, place)
                if not self._found.searches:
                    break
                place = max(place + 1, end or 0)
        finally:
            sys.setrecursionlimit(limit)
        return self.steps

    @staticmethod
    def _end(match: Match, at: int) -> int | None:
        """The end of the first match at a place; None if there is none."""
        ends: list[int] = []

        def ended(end: int) -> bool:
            ends.append(end)
            return True

        return ends[0] if match(at, ended) else None

    def _sequence(self, nodes: list[Any]) -> Match:
        if not nodes:
            return lambda at, then: then(at)
        first, rest = self._node(*nodes[0]), self._sequence(nodes[1:])
        return lambda at, then: first(at, lambda end: rest(end, then))

    def _node(self, op: Any, value: Any) -> Match:
        if (test := self._test(op, value)) is not None:

            def single(at: int, then: Then) -> bool:
                self.steps += 1
                return at < len(self._text) and test(self._text[at]) and then(at + 1)

            return single
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            return self._repeat(op, *value)
        if op is sre.BRANCH:
            branches = [self._sequence(list(branch)) for branch in value[1]]
            return lambda at, then: any(branch(at, then) for branch in branches)
        if op is sre.SUBPATTERN:
            return self._sequence(list(value[3]))
        if op is sre.ATOMIC_GROUP:
            inner = self._sequence(list(value))

            def atomic(at: int, then: Then) -> bool:
                end = self._end(inner, at)
                return end is not None and then(end)

            return atomic
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            direction, nodes = value
            inner, wanted = self._sequence(list(nodes)), op is sre.ASSERT
            back = nodes.getwidth()[0] if direction < 0 else 0

            def asserted(at: int, then: Then) -> bool:
                return (at >= back and inner(at - back, lambda _end: True)) == wanted and then(at)

            return asserted
        if op is sre.AT:
            return lambda at, then: self._at(value, at) and then(at)
        return lambda at, then: then(at)  # references to groups

    def _test(self, op: Any, value: Any) -> Callable[[int], bool] | None:
        flags = self._flags
        if op is sre.IN:
            return cache(lambda code: _in(value, code, flags))
        if op is sre.LITERAL:
            return cache(lambda code: _in([(sre.LITERAL, value)], code, flags))
        if op is sre.NOT_LITERAL:
            return cache(lambda code: _in([(sre.NEGATE, None), (sre.LITERAL, value)], code, flags))
        if op is sre.ANY:
            return lambda code: code != 10 or bool(flags & re.DOTALL)
        return None

    def _repeat(self, op: Any, least: int, most: Any, nodes: Any) -> Match:
        body = list(nodes)
        test = self._test(*body[0]) if len(body) == 1 else None
        if test is None:
            inner = self._sequence(body)

            def again(at: int, then: Then, times: int) -> bool:
                self.steps += 1

                if self.steps > MOST_STEPS:
                    raise TooManyStepsError

                def next_one(end: int) -> bool:
                    return (end > at or times < least) and again(end, then, times + 1)

                if times < least:
                    return inner(at, next_one)
                if op is sre.MIN_REPEAT:
                    return then(at) or (times < most and inner(at, next_one))
                return (times < most and inner(at, next_one)) or then(at)

            return lambda at, then: again(at, then, 0)

        def run(at: int, then: Then) -> bool:
            end = at
            limit = len(self._text) if most == sre.MAXREPEAT else min(len(self._text), at + most)
            if op is sre.MIN_REPEAT:
                while True:
                    if end - at >= least and then(end):
                        return True
                    self.steps += 1
                    if end >= limit or not test(self._text[end]):
                        return False
                    end += 1
            while end < limit and test(self._text[end]):
                self.steps += 1
                end += 1
            if end - at < least:
                return False
            if op is sre.POSSESSIVE_REPEAT:
                return then(end)
            while end - at >= least:
                self.steps += 1
                if then(end):
                    return True
                end -= 1
            return False

        return run

    def _at(self, kind: Any, at: int) -> bool:
        self.steps += 1
        text = self._text
        is_line = bool(self._flags & re.MULTILINE)
        if kind in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            return at == 0 or (is_line and kind is sre.AT_BEGINNING and text[at - 1] == 10)
        if kind in (sre.AT_END, sre.AT_END_STRING):
            last = at == len(text) or (kind is sre.AT_END and at == len(text) - 1 and text[at] == 10)
            return last or (is_line and kind is sre.AT_END and text[at] == 10)
        words = [0 <= place < len(text) and re.match(r"\w", chr(text[place])) is not None for place in (at - 1, at)]
        return (words[0] != words[1]) == (kind is sre.AT_BOUNDARY)


def growth(found: Found, size: int, units: Iterable[str] = ()) -> tuple[float, str]:
    """How many times the steps grow when a text doubles, at most, and the unit of the hardest text."""
    steps, worst = Steps(found), (0.0, "")
    for unit in units or hard_units(found):
        try:
            few, many = (steps.count(hard_text(found, unit, length)) for length in (size, 2 * size))
        except TooManyStepsError:
            return math.inf, unit
        worst = max(worst, (many / (few + size), unit))
    return worst
