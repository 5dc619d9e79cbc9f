"""Findings parsed from a report, or from the arguments of a tool call.

Models write reports, so parsing accepts anything: it never raises, repairs formats but not values, drops invalid
fields one by one, and reports repairs and problems.

The findings of a report:

- Blocks marked ``findings`` count. If none is readable, all JSON objects in the text with a field of the findings do.
- If several count, the last valid value of each field wins, and differing values are problems.
- A report without any of these states nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Generic

from pydantic import BaseModel, ValidationError

from labmates.tasks.base import FindingsT
from labmates.tasks.fences import Block, split_blocks
from labmates.util.relaxed_json import MOST_DIGITS, Parsed, RelaxedJSONError, Unusable, find_objects, parse_value
from labmates.util.relaxed_json import read_number as number_of

MOST_CHARS = 200_000
"""Limit of a findings block, and of the searched end of a report."""
MOST_PROBLEMS = 30
MOST_PLACES = 50
"""Most blocks that are read, from the end."""
MOST_WRAPPERS = 3
MOST_DEPTH = 40
_CUT = 80

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:([,'_\u2019 \u00a0\u2009\u202f])\d{3})(?:\1\d{3})*(?:\.\d+)?")
_AMBIGUOUS = re.compile(r"[+-]?\d+(?:[.,]\d+)+")
_SIGNS = str.maketrans({"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{FULLWIDTH PLUS SIGN}": "+"})
_WANTS_NUMBER = {"int_type", "float_type", "int_from_float"}


@dataclass(frozen=True)
class Repair:
    """A format repair of findings, and its place (a field or a line)."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"

    def as_json(self) -> dict[str, str]:
        """The repair as JSON data."""
        return asdict(self)


@dataclass(frozen=True)
class ReadFindings(Generic[FindingsT]):
    """Findings parsed from a text."""

    findings: FindingsT | None  # the valid fields; None if the text has no readable findings
    problems: tuple[str, ...] = ()  # omitted parts with the reason, and contradictions, one line each
    repaired: tuple[Repair, ...] = ()  # format repairs


@dataclass(frozen=True)
class _Candidate:
    """An object that may state findings, and the repairs needed to parse it."""

    value: Mapping[str, object]
    repaired: tuple[Repair, ...] = ()


def read_findings(report: str, model: type[FindingsT]) -> ReadFindings[FindingsT]:
    """The findings of `report`, as an instance of `model`; see the docstring of this module.

    Invalid, unknown or repeated fields, and invalid items of lists, are omitted and named in the problems. Booleans are
    not numbers; a whole number may be written as a decimal (6.0). Numbers in quotes or with grouped digits are
    repaired; numbers with a unit or a decimal comma are not.
    """
    marked = [block for block in split_blocks(report).blocks if block.is_findings]
    candidates, problems = _marked(marked[-MOST_PLACES:], model)
    if not candidates:
        candidates = _objects(report[-MOST_CHARS:], "the report", model)
    if not candidates:
        return ReadFindings(None, tuple(problems) or ("the report states no findings that can be read",))
    return _merged([_read_fields(candidate, model) for candidate in candidates], problems, model)


def check_findings(stated: Mapping[str, object], model: type[FindingsT]) -> ReadFindings[FindingsT]:
    """The findings in one object, by the rules of `read_findings`."""
    candidates = list(_candidates(stated, model)) or [_Candidate(stated)]
    return _merged([_read_fields(candidate, model) for candidate in candidates], [], model)


def _marked(blocks: Sequence[Block], model: type[BaseModel]) -> tuple[list[_Candidate], list[str]]:
    """The content of the marked blocks, and the faults of unreadable ones."""
    candidates: list[_Candidate] = []
    problems: list[str] = []
    for number, block in enumerate(blocks, 1):
        name = "the findings block" if len(blocks) == 1 else f"findings block {number}"
        if len(block.body) > MOST_CHARS:
            problems.append(f"{name} is longer than {MOST_CHARS} characters")
            continue
        here = _objects(block.body, name, model)
        if here or re.fullmatch(r"\s*\{\s*\}\s*", block.body):
            candidates += here or [_Candidate({})]
        else:
            problems.append(f"{name} {_why_unreadable(block.body, model)}")
    return candidates, problems


def _objects(text: str, place: str, model: type[BaseModel]) -> list[_Candidate]:
    return [
        _Candidate(candidate.value, (*_repairs(parsed, text, place), *candidate.repaired))
        for parsed in find_objects(text)
        for candidate in _candidates(parsed.value, model)
    ]


def _repairs(parsed: Parsed, text: str, place: str) -> Iterator[Repair]:
    counts = Counter(mend.what for mend in parsed.mends)
    first = {mend.what: mend.at for mend in reversed(parsed.mends)}
    for what, at in first.items():
        more = f" and {counts[what] - 1} more" if counts[what] > 1 else ""
        yield Repair(what, f"{place}, line {text.count(chr(10), 0, at) + 1}{more}")


def _candidates(value: Mapping[str, object], model: type[BaseModel], depth: int = 0) -> Iterator[_Candidate]:
    """The objects in `value` with a field of the findings: `value` itself, or wrapped objects."""
    if any(_field(key, model) for key in value):
        yield _Candidate(value)
    elif depth < MOST_WRAPPERS:
        for key, inner in value.items():
            if isinstance(inner, Mapping):
                repair = Repair("object around the findings", f"key '{_cut(key)}'")
                for candidate in _candidates(inner, model, depth + 1):
                    yield _Candidate(candidate.value, (repair, *candidate.repaired))


def _why_unreadable(body: str, model: type[BaseModel]) -> str:
    if not body.strip():
        return "is empty"
    try:
        parsed = parse_value(body)
    except RelaxedJSONError as error:
        return f"is not valid JSON: {error} in line {body.count(chr(10), 0, error.at) + 1}"
    if not isinstance(parsed.value, dict):
        return "is not a JSON object"
    names = ", ".join(repr(_cut(name)) for name in list(parsed.value)[:3])
    return f"has none of the fields {_cut(', '.join(model.model_fields))}, but {names}"


def _read_fields(candidate: _Candidate, model: type[FindingsT]) -> _Fields:
    kept: dict[str, Any] = {}
    problems: list[str] = []
    repaired = list(candidate.repaired)
    for key, value in candidate.value.items():
        name = _field(key, model)
        if name is None or (name != key and name in candidate.value):
            problems.append(f"unknown field {_cut(key)!r}")
            continue
        if name != key:
            repaired.append(Repair(f"called {_cut(key)!r}", f"field '{name}'"))
        valid, complaints, repairs = _read_field(name, value, model)
        problems += complaints
        if valid is not None:
            kept[name] = valid
            repaired += repairs
    return _Fields(kept, problems, repaired)


@dataclass(frozen=True)
class _Fields:
    """The valid fields of one candidate."""

    kept: dict[str, Any]
    problems: list[str]
    repaired: list[Repair]


def _merged(candidates: Sequence[_Fields], problems: Sequence[str], model: type[FindingsT]) -> ReadFindings[FindingsT]:
    kept: dict[str, Any] = {}
    problems = [*problems, *(problem for candidate in candidates for problem in candidate.problems)]
    differing: dict[str, None] = {}
    for candidate in candidates:
        for name, value in candidate.kept.items():
            if name in kept and _validate(model, {name: value}) != _validate(model, {name: kept[name]}):
                differing[name] = None
            kept[name] = value
    problems += [
        f"field '{name}': stated differently in several places; the last valid value counts" for name in differing
    ]
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"and {len(problems) - MOST_PROBLEMS} more"]
    repaired = tuple(dict.fromkeys(repair for candidate in candidates for repair in candidate.repaired))
    if len(repaired) > MOST_PROBLEMS:
        repaired = (*repaired[:MOST_PROBLEMS], Repair(f"{len(repaired) - MOST_PROBLEMS} more", "further on"))
    try:
        return ReadFindings(_validate(model, kept), tuple(problems), repaired)
    except ValidationError as error:  # single valid fields may still contradict each other
        return ReadFindings(None, (*problems, *(_cut(fault["msg"]) for fault in error.errors())), repaired)


def _field(key: str, model: type[BaseModel]) -> str | None:
    """The field of a key in any spelling; None if there is none."""
    if key in model.model_fields:
        return key
    plain = re.sub(r"[\s\-]+", "_", key.strip("*` ").casefold())
    return plain if plain in model.model_fields else None


def _read_field(name: str, value: object, model: type[BaseModel]) -> tuple[object, list[str], list[Repair]]:
    """The valid part of one field (None if there is none), its problems and its repairs; of a list, the valid items."""
    is_list = isinstance(value, list)
    items = value if isinstance(value, list) else [value]
    faulty = {index: why for index, item in enumerate(items) if (why := _fault(item))}
    problems = [f"field '{name}'{f'[{index}]' * is_list}: {why}" for index, why in faulty.items()]
    places = [index for index in range(len(items)) if index not in faulty]
    if faulty and not places:
        return None, problems, []
    kept = deepcopy([items[index] for index in places])
    fields: dict[str, Any] = {name: kept if is_list else kept[0]}
    repaired: list[Repair] = []

    def place(where: Sequence[int | str]) -> str:
        in_list = is_list and where and isinstance(where[0], int)
        return f"field '{name}'{_place([places[int(where[0])], *where[1:]] if in_list else where)}"

    for where, kind, _ in _errors(model, fields):
        if kind in _WANTS_NUMBER and (number := _plain_number(text := _at(fields, (name, *where)))) is not None:
            *path, last = name, *where
            _at(fields, path)[last] = number
            repaired += [Repair(f"number written as {_cut(text)!r}", place(where))] if isinstance(text, str) else []
    errors = _errors(model, fields)
    problems += [f"{place(where)}: {why}" for where, _, why in errors]
    wrong = {where[0] if is_list and where else None for where, *_ in errors}
    if not all(isinstance(index, int) for index in wrong):
        return None, problems, repaired
    if is_list:
        fields[name] = [item for index, item in enumerate(fields[name]) if index not in wrong]
    # A list without valid items states nothing; an empty list would state that there are none.
    is_valid = not is_list or fields[name] or not value
    return fields[name] if is_valid and not _errors(model, fields) else None, problems, repaired


def _plain_number(value: object) -> int | float | None:
    """The number in a text, or a whole number written as a decimal; None if it is not a plain number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 10.0**MOST_DIGITS:
        return int(value)
    if not isinstance(value, str) or len(value) > _CUT:
        return None
    text = value.strip().translate(_SIGNS)
    grouped = _GROUPED.fullmatch(text)
    if grouped:
        text = text.replace(grouped[1], "")
    if not _NUMBER.fullmatch(text):
        return None
    number = number_of(text)
    if isinstance(number, float) and number.is_integer() and abs(number) < 10.0**MOST_DIGITS:
        return int(number)
    return None if isinstance(number, Unusable) else number


def _at(value: Any, path: Sequence[int | str]) -> Any:
    for part in path:
        fits = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
        if not fits:
            return None
        value = value[part]
    return value


def _errors(model: type[BaseModel], field: dict[str, Any]) -> list[tuple[tuple[int | str, ...], str, str]]:
    """The faults of one field, by its name: place, kind of error, and message."""
    [name] = field
    try:
        _validate(model, field)
    except ValidationError as error:
        faults = [fault for fault in error.errors() if fault["loc"][:1] in ((name,), ())]
        return [(fault["loc"][1:], fault["type"], _message(fault["msg"], fault["input"])) for fault in faults]
    except (ValueError, RecursionError) as error:
        return [((), "", _cut(str(error)))]
    return []


def _message(message: str, value: object) -> str:
    """The message about an invalid value, with the value if it is a text or a number."""
    if not isinstance(value, str | float | int):
        return _cut(message)
    if not isinstance(value, str) or "valid" not in message or not re.search("integer|number", message):
        return f"{_cut(message)} (given: {_cut(json.dumps(value, ensure_ascii=False))})"
    if _AMBIGUOUS.fullmatch(value.strip()):
        return f"{_cut(value)!r} can be read in two ways; write a plain number"
    return f"{_cut(value)!r} is not a plain number"


def _validate(model: type[FindingsT], fields: dict[str, Any]) -> FindingsT:
    # Strict, so that true is not 1 and "6" not 6; from JSON, so that dates and enums may be text.
    return model.model_validate_json(json.dumps(fields, allow_nan=False), strict=True)


def _fault(value: object, depth: int = 0) -> str:
    """The reason why a value can't be written as JSON; empty if it is valid."""
    if isinstance(value, Unusable):
        return _cut(value.why)
    if depth > MOST_DEPTH:
        return "nested too deeply"
    if isinstance(value, Mapping):
        inner: Iterator[object] = (part for pair in value.items() for part in pair)
        return next((why for part in inner if (why := _fault(part, depth + 1))), "")
    if isinstance(value, list):
        return next((why for part in value if (why := _fault(part, depth + 1))), "")
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, int):
        return "" if abs(value) < 10**MOST_DIGITS else "a number is out of range"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} is not a number of JSON"
    if isinstance(value, str):
        return "a text has half a character" if any("\ud800" <= mark <= "\udfff" for mark in value) else ""
    return "not a value of JSON"


def _place(where: Sequence[int | str]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{_cut(part)}" for part in where)


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else text[:_CUT] + "…"
