"""Relaxed JSON: with comments, trailing commas, other quotes, bare words and Python's constants.

Only unambiguous faults are mended, and each mend is reported, so that a caller can refuse some of them.
The text may be hostile: depth and work are bounded, and nothing is evaluated.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

COMMENT: Final = "comment"
TRAILING_COMMA: Final = "trailing comma"
MISSING_COMMA: Final = "missing comma"
QUOTES: Final = 'quotes other than "'
BARE_WORD: Final = "text without quotes"
ESCAPE: Final = "backslash before an underscore"
CONSTANT: Final = "constant of Python"
NUMBER: Final = "number that JSON writes otherwise"
TUPLE: Final = "parentheses around a list"
NUMPY: Final = "numpy type around a value"

MOST_DEPTH: Final = 40
MOST_DIGITS: Final = 15
"""Maximum digits of a whole number; a float doesn't hold longer ones exactly."""
MOST_FAILURES: Final = 300
"""Braces without an object after which the search of a text ends."""
MOST_WORK: Final = 200_000
"""Maximum number of values read in one text, in all attempts together."""
UNCLOSED_WORK: Final = 1_000
"""Work of an unclosed text or comment, in values: the whole rest was searched for its end."""

_SPACE = re.compile(r"[\s\ufeff]*")
_STRICT_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*(?:_\d+)*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_COMMAS = re.compile(r"[+\-\N{MINUS SIGN}]?\d+(?:,\d+)+(?:\.\d+)?(?=\s*(?:[,}\n#]|//|/\*))")
_WORD = re.compile(r"[^\s,:{}\[\]()\"'\u201c\u201d\u2018\u2019#/][^,:{}\[\]()\n\"\u201c\u201d#/]*")
_KEY = re.compile(r"[^\W\d]\w*")
_NUMPY = re.compile(r"(?:np|numpy)\.\w+\(")
_STRINGS = {
    '"': re.compile(r'"((?:[^"\\\n]|\\.)*)"'),
    "'": re.compile(r"'((?:[^'\\\n]|\\.)*)'"),
    **dict.fromkeys("\u201c\u201d\u201e", re.compile("[\u201c\u201d\u201e]([^\u201c\u201d\\\\\n]*)[\u201c\u201d]")),
    **dict.fromkeys("\u2018\u2019", re.compile("[\u2018\u2019]([^\u2018\u2019\\\\\n]*)[\u2018\u2019]")),
}
_ESCAPE = re.compile(r"\\x[0-9a-fA-F]{2}|\\.|\"")
_AS_JSON = {"\\'": "'", "\\_": "_", '"': '\\"'}
_CONSTANTS: Final[dict[str, bool | None]] = {"null": None, "true": True, "false": False}
_PYTHON: Final[dict[str, bool | None]] = {"None": None, "True": True, "False": False}
_NOT_FINITE: Final = frozenset({"nan", "infinity", "inf", "-infinity", "-inf", "+infinity", "+inf"})
_CLOSING = {"[": "]", "(": ")"}
_CUT = 60


class RelaxedJSONError(ValueError):
    """A text is unreadable; `at` is the position of the fault."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class TooMuchWorkError(RelaxedJSONError):
    """Reading a text takes more than `MOST_WORK`."""


@dataclass(frozen=True)
class Mend:
    """A mended fault, as a constant of this module, and its position in the text."""

    what: str
    at: int


@dataclass(frozen=True)
class Unusable:
    """An invalid value: not finite, out of range, or repeated."""

    why: str


@dataclass(frozen=True)
class Parsed:
    """A value read from `text[begin:end]`."""

    value: Any
    begin: int
    end: int
    mends: tuple[Mend, ...]


def parse_value(text: str, at: int = 0) -> Parsed:
    """The value that begins at `at`.

    Invalid values and repeated keys become `Unusable`; a number with commas or a bare word becomes text. Raises
    `RelaxedJSONError` if there is none.
    """
    return Reader(text).read(at)


def find_objects(text: str) -> Iterator[Parsed]:
    """Yield the outermost objects in `text`, in order."""
    reader = Reader(text)
    failures = 0
    at = text.find("{")
    while at >= 0 and failures < MOST_FAILURES:
        try:
            parsed = reader.read(at)
        except TooMuchWorkError:
            return
        except RelaxedJSONError:
            failures += 1
            end = at + 1
        else:
            yield parsed
            end = parsed.end
        at = text.find("{", end)


class Reader:
    """Reads values of one text, within one bound on work for all of them.

    `mends` are those of the last value, even if it could not be read to its end.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.mends: list[Mend] = []
        self.work = MOST_WORK

    def read(self, at: int) -> Parsed:
        """The value that begins at `at`. Raises `RelaxedJSONError` if there is none."""
        self.at, self.mends = at, []
        self._skip()
        begin = self.at
        value = self._value(0, in_object=False)
        return Parsed(value, begin, self.at, tuple(self.mends))

    def _value(self, depth: int, *, in_object: bool) -> Any:
        self.work -= 1
        if self.work < 0:
            raise TooMuchWorkError("the text is too long", self.at)
        if depth > MOST_DEPTH:
            self._fail("nested too deeply")
        mark = self._mark()
        if mark == "{":
            return self._object(depth)
        if mark in _CLOSING:
            return self._list(mark, depth)
        if mark in _STRINGS:
            return self._string()
        if (wrapper := _NUMPY.match(self.text, self.at)) is not None:
            self._mend(NUMPY)
            self.at = wrapper.end()
            value = self._value(depth + 1, in_object=False)
            self._skip()
            self._expect(")")
            return value
        return self._scalar(in_object=in_object)

    def _object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        values: dict[str, Any] = {}
        while self._goes_on("}", first=not values):
            key = self._key()
            self._skip()
            self._expect(":")
            self._skip()
            value = self._value(depth + 1, in_object=True)
            values[key] = Unusable(f"the key {_cut(key)!r} is given twice") if key in values else value
        return values

    def _list(self, mark: str, depth: int) -> list[Any]:
        if mark == "(":
            self._mend(TUPLE)
        self.at += 1
        values: list[Any] = []
        while self._goes_on(_CLOSING[mark], first=not values):
            values.append(self._value(depth + 1, in_object=False))
        return values

    def _goes_on(self, closing: str, *, first: bool) -> bool:
        """Step to the next entry; False at the end."""
        before = self.at
        self._skip()
        if not first and self._mark() == ",":
            comma = self.at
            self.at += 1
            self._skip()
            if self._mark() == closing:
                self.mends.append(Mend(TRAILING_COMMA, comma))
        elif not first and self._mark() != closing:
            if "\n" not in self.text[before : self.at]:
                self._fail(f"expected ',' or '{closing}'")
            self._mend(MISSING_COMMA)
        if self._mark() != closing:
            return True
        self.at += 1
        return False

    def _key(self) -> str:
        if self._mark() in _STRINGS:
            return self._string()
        bare = _KEY.match(self.text, self.at)
        if bare is None:
            self._fail("expected a key")
        self._mend(BARE_WORD)
        self.at = bare.end()
        return bare[0]

    def _string(self) -> str:
        match = _STRINGS[self._mark()].match(self.text, self.at)
        if match is None:
            self.work -= UNCLOSED_WORK
            self._fail("a text is not closed")
        if self._mark() != '"':
            self._mend(QUOTES)
        body = _ESCAPE.sub(_as_json, match[1])
        if "\\_" in match[1]:
            self._mend(ESCAPE)
        try:
            text: str = json.loads(f'"{body}"', strict=False)
        except ValueError:
            self._fail("a text has an unknown escape")
        self.at = match.end()
        return text

    def _scalar(self, *, in_object: bool) -> Any:
        begin = self.at
        match = (_COMMAS.match(self.text, begin) if in_object else None) or _WORD.match(self.text, begin)
        if match is None:
            self._fail("expected a value")
        self.at = begin + len(match[0].rstrip())
        word = self.text[begin : self.at]
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if _STRICT_NUMBER.fullmatch(word):
            return read_number(word)
        plain = word.replace("\N{MINUS SIGN}", "-")
        if plain.lower() in _NOT_FINITE:
            return Unusable(f"{_cut(word)} is not a number of JSON")
        if word in _PYTHON:
            self.mends.append(Mend(CONSTANT, begin))
            return _PYTHON[word]
        if _NUMBER.fullmatch(plain):
            self.mends.append(Mend(NUMBER, begin))
            return read_number(plain)
        self.mends.append(Mend(BARE_WORD, begin))
        return word

    def _skip(self) -> None:
        while True:
            self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.text.startswith(("#", "//"), self.at):
                self._mend(COMMENT)
                end = self.text.find("\n", self.at)
            elif self.text.startswith("/*", self.at):
                self._mend(COMMENT)
                end = self.text.find("*/", self.at + 2) + 2
                if end < 2:
                    self.work -= UNCLOSED_WORK
                    self._fail("a comment is not closed")
            else:
                return
            self.at = end if end >= 0 else len(self.text)

    def _mark(self) -> str:
        return self.text[self.at : self.at + 1]

    def _expect(self, mark: str) -> None:
        if self._mark() != mark:
            self._fail(f"expected '{mark}'")
        self.at += 1

    def _mend(self, what: str) -> None:
        self.mends.append(Mend(what, self.at))

    def _fail(self, message: str) -> NoReturn:
        raise RelaxedJSONError(message, self.at)


def read_number(text: str) -> int | float | Unusable:
    """A number in the notation of Python or JSON."""
    digits = text.replace("_", "")
    if (unsigned := digits.lstrip("+-")).isdigit():
        return int(digits) if len(unsigned) <= MOST_DIGITS else Unusable("a number is out of range")
    value = float(digits)
    return value if math.isfinite(value) else Unusable("a number is out of range")


def _as_json(match: re.Match[str]) -> str:
    """An escape, or a quotation mark within other quotes, in JSON's notation."""
    if match[0].startswith("\\x") and len(match[0]) > 2:
        return f"\\u00{match[0][2:]}"
    return _AS_JSON.get(match[0], match[0])


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else text[:_CUT] + "\N{HORIZONTAL ELLIPSIS}"
