"""JSON objects in any text, and the answer among them: the object that matches a form.

Models wrap their JSON in fences, prose and LaTeX, some comment it, and some reason in JSON before they answer. Objects
that don't match the form are ignored. Different matching objects are refused as ambiguous, and so are repeated keys.
Everything that a strict parser accepts is read with the same value or refused, never with another value.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from labmates.util.forms import fault_words, form_words
from labmates.util.relaxed_json import COMMENT, TRAILING_COMMA, Mend, Parsed, Reader, RelaxedJSONError, TooMuchWorkError
from labmates.util.relaxed_json import Unusable as UnusableValue

ModelT = TypeVar("ModelT", bound=BaseModel)

MOST_FAILURES: Final = 20_000
"""Braces without a JSON object after which the search ends; a hostile text could prolong it to minutes."""
ACCEPTED: Final = frozenset({COMMENT, TRAILING_COMMA})
"""Relaxations of JSON that are accepted in an answer: they don't affect its values."""
NO_OBJECT: Final = "there is no whole JSON object in it"
TOO_TANGLED: Final = "it holds too many braces that open no JSON object; give one JSON object alone"
PLAIN: Final = json.JSONDecoder()
_DEEP_FAILURES: Final = 100
"""Failures that a too deeply nested object counts as."""
_CHARS_OF_A_FAILURE: Final = 250
"""Characters read in a failed object that count as one more failure."""
_MOST_QUOTED: Final = 200
_NEAR: Final = 30
_MEANT = re.compile(r"""\{\s*(?:["'“”„‘’`]|//|/\*|\#|[^\W\d]\w*\s*:)""")
"""The beginning of an object that was meant as JSON, unlike a set in LaTeX."""


class UnusableAnswerError(Exception):
    """A reply without a usable answer; the reason goes back to the model.

    `form` says what a usable answer looks like; `remark` replaces the whole message to the model. `omits_reply` keeps
    the reply itself out of it: small models continue what they read, so a reply that was cut brings the next one.
    """

    def __init__(self, problem: str, *, form: str = "", remark: str = "", omits_reply: bool = False) -> None:
        super().__init__(problem)
        self.form = form
        self.remark = remark
        self.omits_reply = omits_reply


class NoAnswerError(UnusableAnswerError):
    """A reply without any JSON object, such as prose or a refusal."""


class RefusedError(UnusableAnswerError):
    """A usable answer was refused, for good if no other one would be asked about; not a failure of the model."""

    def __init__(self, remark: str, *, is_final: bool = False) -> None:
        super().__init__("refused", remark=remark)
        self.is_final = is_final


@dataclass(frozen=True)
class Found:
    """A JSON object and its position."""

    begin: int
    end: int
    value: dict[str, Any]


def find_objects(text: str, decoder: json.JSONDecoder = PLAIN, *, start: int = 0) -> Iterator[Found]:
    """Yield the outermost strict JSON objects in `text`, in order.

    Raises `UnusableAnswerError` with the decoder `ONCE`, if an object repeats a key.
    """
    failures = 0
    at = text.find("{", start)
    while at >= 0 and failures < MOST_FAILURES:
        try:
            value, end = decoder.raw_decode(text, at)
        except RecursionError:
            failures += _DEEP_FAILURES
            end = at + 1
        except ValueError as error:
            failures += 1 + (getattr(error, "pos", at) - at) // _CHARS_OF_A_FAILURE
            end = at + 1
        else:
            yield Found(at, end, value)
        at = text.find("{", end)


def read_object(text: str, form: type[ModelT], *, start: int = 0, reasoned: bool = False) -> ModelT:
    """The JSON object in `text`, from `start` on, that is a valid `form`.

    It may be repeated, and invalid objects beside it are ignored. In a reply that was to reason first (`reasoned`), the
    last object with a key of the form is the answer. Comments and trailing commas are accepted, and the escaped braces
    of LaTeX count as braces. Raises `UnusableAnswerError` if no object is valid, valid objects differ, or an object
    repeats a key; `NoAnswerError` if there is no object.
    """
    again = form_request(form, reasoned=reasoned)
    try:
        return _read_object(text, form, start, reasoned)
    except UnusableAnswerError as error:
        error.form = again
        raise


def form_request(form: type[BaseModel], *, reasoned: bool = False) -> str:
    """The request to answer in a form."""
    how = "End your answer with one JSON object" if reasoned else "Answer with one JSON object and nothing else"
    return "\n".join(filter(None, [f"{how}, in this form: {form_words(form)}", getattr(form, "rule", "")]))


def _read_object(text: str, form: type[ModelT], start: int, reasoned: bool) -> ModelT:
    keys = {field.alias or name for name, field in form.model_fields.items()}
    answers: list[tuple[ModelT, dict[str, Any]]] = []
    fault, shared = "", 0
    values, broken = _search(text, start)
    unreadable = _fault_text(text, broken) if broken else ""
    if reasoned and (meant := [(at, value) for at, value in values if keys & value.keys()]):
        values = meant[-1:]
        if broken and broken.at > values[0][0]:
            raise UnusableAnswerError(unreadable)
    for _, value in values:
        try:
            answers.append((form.model_validate(value), value))
        except ValidationError as error:
            if not fault or len(keys & value.keys()) >= shared:
                fault, shared = fault_words(error, form), len(keys & value.keys())
    if not answers:
        problem = (not shared and unreadable) or fault
        raise UnusableAnswerError(problem) if problem else NoAnswerError(NO_OBJECT)
    for answer, value in answers:
        if answer != answers[0][0]:
            quoted = f"{_quoted(answers[0][1])} and {_quoted(value)}"
            raise UnusableAnswerError(f"it holds two answers that differ, {quoted}; give only one")
    return answers[0][0]


def _search(text: str, start: int) -> tuple[list[tuple[int, dict[str, Any]]], Mend | None]:
    """All objects, strict and relaxed, each with its place and in order, and the fault of the last unreadable one."""
    values: list[tuple[int, dict[str, Any]]] = []
    fault = None
    # A blank in place of LaTeX's backslash keeps all positions.
    for plain in dict.fromkeys((text, text.replace("\\{", " {").replace("\\}", " }"))):
        strict = {found.begin: found for found in find_objects(plain, ONCE, start=start)}
        values += [(found.begin, found.value) for found in strict.values()]
        reader, failures = Reader(plain), 0
        at = plain.find("{", start)
        while at >= 0:
            end = strict[at].end if at in strict else at + 1
            if at not in strict:
                failures += 1
                read = _read_relaxed(reader, at)
                if isinstance(read, Parsed):
                    values.append((at, read.value))
                elif _MEANT.match(plain, at):
                    fault = read
            if failures > MOST_FAILURES:
                raise UnusableAnswerError(TOO_TANGLED)
            at = plain.find("{", end)
    return sorted(values, key=itemgetter(0)), fault


def _read_relaxed(reader: Reader, at: int) -> Parsed | Mend:
    """The object that opens at `at`, or its fault."""
    try:
        parsed = reader.read(at)
    except TooMuchWorkError as error:
        raise UnusableAnswerError(TOO_TANGLED) from error
    except RelaxedJSONError as error:
        if error.at < len(reader.text):
            return Mend(str(error), error.at)
        hiding = [mend.at for mend in reader.mends if mend.what == COMMENT and "}" in reader.text[mend.at :]]
        return Mend("a comment hides the closing brace", hiding[-1]) if hiding else Mend("no closing brace", at)
    others = [mend for mend in parsed.mends if mend.what not in ACCEPTED]
    spoilt = [value.why for value in parsed.value.values() if isinstance(value, UnusableValue)]
    return others[0] if others else Mend(spoilt[0], at) if spoilt else parsed


def _fault_text(text: str, fault: Mend) -> str:
    line, column = text.count("\n", 0, fault.at) + 1, fault.at - text.rfind("\n", 0, fault.at)
    near = " ".join(text[max(fault.at - _NEAR, 0) : fault.at + _NEAR].split())
    return f"its JSON can't be read: {fault.what} (line {line}, column {column}, near: {near})"


def _quoted(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise UnusableAnswerError(f"the key {twice[0][:_MOST_QUOTED]!r} is given twice in one JSON object")
    return dict(pairs)


ONCE: Final = json.JSONDecoder(object_pairs_hook=_once)
"""Refuses objects with repeated keys."""
