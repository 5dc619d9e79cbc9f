"""The brackets of a printed line: what is around a number, and what each bracket holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from labmates.judges.rows import NOTHING, words_of

MOST_RECORD: Final = 200
MOST_DEEP: Final = 4
"""Most brackets around a number that are read."""
KEY = re.compile(r"['\"]([^'\"]+)['\"]\s*:")
_PAIR = re.compile(r"['\"]([^'\"]+)['\"]\s*:\s*['\"]([^'\"]+)['\"]")


class Around:
    """The words of the brackets around the tokens of a line."""

    def __init__(self, text: str, tokens: Sequence[re.Match[str]]) -> None:
        self._whole = words_of(text)
        self.closed = NOTHING
        self._ends: dict[int, int] = {}
        self._text = text
        self._open: list[int] = []
        self._words: dict[int, frozenset[str]] = {}
        stack: list[int] = []
        for match in tokens:
            if match.lastgroup == "open":
                stack.append(match.start())
            elif match.lastgroup == "close" and stack:
                self._ends[stack.pop()] = match.end()

    def pass_by(self, match: re.Match[str]) -> None:
        """Enter or leave a bracket."""
        if match.lastgroup == "open":
            self._open.append(match.start())
        elif match.lastgroup == "close" and self._open:
            begin = self._open.pop()
            self.closed = words_of(self._text[begin : match.end()])

    def words(self) -> tuple[frozenset[str], ...]:
        """The words of the brackets that are open, the innermost first, and of the line."""
        for begin in (inner := self._open[-MOST_DEEP:]):
            if begin not in self._words:
                self._words[begin] = words_of(self._text[begin : self._ends.get(begin)])
        return (*(self._words[begin] for begin in reversed(inner)), self._whole)

    def record(self) -> str:
        """The text of the innermost open bracket if it has keys, else an empty text."""
        inside = self._text[self._open[-1] : self._ends.get(self._open[-1])] if self._open else ""
        return inside if len(inside) < MOST_RECORD and KEY.search(inside) else ""


def read_parts(text: str, tokens: Sequence[re.Match[str]]) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """The words in each bracket with those that name it, and the words outside of brackets up to each semicolon.

    A text under its own key is named by that key as well, but not by the other keys of its bracket.
    """
    stack: list[tuple[list[str], list[str]]] = [([], [])]
    pending: list[str] = []
    pairs, end = _PAIR.finditer(text), 0
    pair = next(pairs, None)
    for match in tokens:
        while pair and pair.end() <= match.start():
            pair = next(pairs, None)
        if pair and pair.start() <= match.start():
            if pair.end() > end:
                end = pair.end()
                yield words_of(pair[2]), words_of(" ".join([pair[1], *stack[-1][1]]))
            pending = []
        elif match.lastgroup == "word":
            pending.append(match[0])
            stack[-1][0].append(match[0])
        elif match.lastgroup == "open":
            stack.append(([], pending or stack[-1][1] or [*stack[-1][0]]))
            pending = []
        else:
            if match.lastgroup == "close" and len(stack) > 1:
                inside, names = stack.pop()
                yield words_of(" ".join(inside)), words_of(" ".join(names))
            elif match[0] == ";" and len(stack) == 1:
                yield words_of(" ".join(stack[0][0])), NOTHING
                stack[0] = ([], [])
            pending = []
    for inside, names in stack:
        yield words_of(" ".join(inside)), words_of(" ".join(names))
