"""How findings stand in a report: one fenced block marked ``findings`` that holds a JSON object.

Reports are written by models, so reading copes with anything: it never raises, drops what is wrong field by field,
and says so.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Generic

from pydantic import BaseModel, ValidationError

from labmates.tasks.base import FindingsT
from labmates.tasks.fences import split_blocks

MOST_CHARS = 200_000
"""A findings block longer than this is not read."""
MOST_DIGITS = 15
"""A whole number with more digits is out of range: beyond it, a float no longer holds it exactly."""
MOST_PROBLEMS = 30
_CUT = 80


@dataclass(frozen=True)
class ReadFindings(Generic[FindingsT]):
    """What was read out of a report.

    Attributes
    ----------
    findings
        The valid fields; None if there is no block that can be read.
    problems
        What was wrong, one line each.
    """

    findings: FindingsT | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Spoilt:
    """Stands for a value that JSON allows to be written but that means nothing."""

    why: str


def read_findings(report: str, model: type[FindingsT]) -> ReadFindings[FindingsT]:
    """Read the findings that `report` states, as an instance of `model`.

    The last block counts. A field that is invalid, unknown or given twice is left out and named in the problems; of a
    list, only the invalid items are. True and false are no numbers; a whole number may be written as a decimal (6.0).
    """
    blocks = [block for block in split_blocks(report).blocks if block.is_findings]
    if not blocks:
        return ReadFindings(None, ("the report has no fenced block marked 'findings'",))
    if len(blocks[-1].body) > MOST_CHARS:
        return ReadFindings(None, (f"the findings block is longer than {MOST_CHARS} characters",))
    try:
        stated = json.loads(
            blocks[-1].body,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_number,
            parse_int=_integer,
        )
    except (ValueError, RecursionError) as error:
        return ReadFindings(None, (f"the findings block is not valid JSON: {_cut(str(error))}",))
    if not isinstance(stated, dict):
        return ReadFindings(None, ("the findings block is not a JSON object",))
    return _read_fields(stated, model)


def _read_fields(stated: dict[str, object], model: type[FindingsT]) -> ReadFindings[FindingsT]:
    kept: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in stated.items():
        if name not in model.model_fields:
            problems.append(f"unknown field {_cut(name)!r}")
            continue
        valid, complaints = _read_field(name, value, model)
        problems += complaints
        if valid is not None:
            kept[name] = valid
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"and {len(problems) - MOST_PROBLEMS} more"]
    try:
        return ReadFindings(_validate(model, kept), tuple(problems))
    except ValidationError as error:  # fields that are valid one by one may still contradict each other
        return ReadFindings(None, (*problems, *(_cut(found["msg"]) for found in error.errors())))


def _read_field(name: str, value: object, model: type[BaseModel]) -> tuple[object, list[str]]:
    """Return the valid part of one field, None if there is none, and what was wrong."""
    if isinstance(value, list):
        return _read_list(name, value, model)
    why = _why_spoilt(value)
    if why:
        return None, [f"field '{name}': {why}"]
    problems = [f"field '{name}'{_place(where)}: {_cut(message)}" for where, message in _errors(model, name, value)]
    return None if problems else value, problems


def _read_list(name: str, value: list[object], model: type[BaseModel]) -> tuple[object, list[str]]:
    """Return the valid items of a list, None if there are none but should be, and what was wrong."""
    spoilt = {index: why for index, item in enumerate(value) if (why := _why_spoilt(item))}
    problems = [f"field '{name}'[{index}]: {why}" for index, why in spoilt.items()]
    places = [index for index in range(len(value)) if index not in spoilt]
    errors = _errors(model, name, [value[index] for index in places]) if places or not spoilt else []
    wrong: set[int] = set()
    whole = True
    for where, message in errors:
        if where and isinstance(where[0], int):
            wrong.add(places[where[0]])
            where = (places[where[0]], *where[1:])
        else:
            whole = False
        problems.append(f"field '{name}'{_place(where)}: {_cut(message)}")
    if not whole:
        return None, problems
    valid = [value[index] for index in places if index not in wrong]
    # A list of which nothing is left says nothing; an empty one would say that there is none.
    return (valid if (valid or not value) and not _errors(model, name, valid) else None), problems


def _errors(model: type[BaseModel], name: str, value: object) -> list[tuple[tuple[int | str, ...], str]]:
    """Return what is wrong with one field, each as the place in it and a message."""
    try:
        _validate(model, {name: value})
    except ValidationError as error:
        return [(found["loc"][1:], found["msg"]) for found in error.errors() if found["loc"][:1] in ((name,), ())]
    except (ValueError, RecursionError) as error:
        return [((), str(error))]
    return []


def _validate(model: type[FindingsT], fields: dict[str, Any]) -> FindingsT:
    # Strict, so that true is no 1 and "6" no 6; from JSON, so that dates and enums may still be written as text.
    return model.model_validate_json(json.dumps(fields, default=_refuse, allow_nan=False), strict=True)


def _why_spoilt(value: object) -> str:
    """Return why a value can't be written as JSON; empty if it can."""
    try:
        json.dumps(value, default=_refuse, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        return _cut(str(error))
    return ""


def _refuse(value: object) -> object:
    raise ValueError(value.why if isinstance(value, _Spoilt) else "no value of JSON")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        found[key] = _Spoilt(f"the key {_cut(key)!r} is given twice") if key in found else value
    return found


def _constant(text: str) -> _Spoilt:
    return _Spoilt(f"{text} is no number of JSON")


def _integer(text: str) -> int | _Spoilt:
    return int(text) if len(text) <= MOST_DIGITS else _Spoilt("a number is out of range")


def _number(text: str) -> float | _Spoilt:
    value = float(text)
    if not math.isfinite(value):
        return _Spoilt("a number is out of range")
    return int(value) if value.is_integer() and abs(value) < 10.0**MOST_DIGITS else value


def _place(where: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{_cut(part)}" for part in where)


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else text[:_CUT] + "…"
