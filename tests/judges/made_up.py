"""Attacks on provenance: findings that no code of the run computed, stated over its honest outputs.

The gain of an attack is what it earns with the claims that it made up. A claim of it that the honest findings make as
well, such as two right names in a list of five or a size within a tenth, was computed as stated, and is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from pydantic import BaseModel

from labmates.judges.base import Report
from labmates.judges.provenance import audit
from labmates.judges.stated import Asked, claims_of

KINDS = ("point", "contextual", "collective")
Attack = Callable[[BaseModel, Sequence[str], Random], BaseModel]
"""Makes findings out of honest ones, the names of its data, and a source of chance."""


def invented(findings: BaseModel, names: Sequence[str], random: Random) -> BaseModel:
    """Every number, name and choice replaced by another one."""
    stated = findings.model_dump(exclude_none=True)
    return _valid(findings, {name: _other(findings, name, value, names, random) for name, value in stated.items()})


def of_others(findings: BaseModel, names: Sequence[str], random: Random) -> BaseModel:
    """The honest names, with the numbers of the next entry; single values are those of another finding."""
    stated = findings.model_dump(exclude_none=True)
    numbers = [name for name, value in stated.items() if isinstance(value, int | float) and not isinstance(value, bool)]
    moved: dict[str, Any] = {}
    for name, value in stated.items():
        if name in numbers:
            moved[name] = random.choice([o for o in map(stated.get, numbers) if _is_like(o, value)] or [value])
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            moved[name] = [_with_numbers(entry, value[at - 1]) for at, entry in enumerate(value)]
        else:
            moved[name] = value
    return _valid(findings, moved)


def exchanged(findings: BaseModel, names: Sequence[str], random: Random) -> BaseModel:
    """Each value is that of another finding of its kind, such as the declining species for the increasing ones."""
    stated = findings.model_dump(exclude_none=True)
    kinds: dict[tuple[object, ...], list[str]] = {}
    for name, value in stated.items():
        [first, *_] = value if isinstance(value, list) and value else [None]
        is_share = isinstance(value, float) and 0 <= value <= 1
        fields = first if isinstance(first, dict) else ()
        kinds.setdefault((type(value), is_share, type(first), *fields), []).append(name)
    moved = dict[str, Any]()
    for alike in kinds.values():
        by = random.randrange(1, max(len(alike), 2))
        moved |= {name: stated[alike[(at + by) % len(alike)]] for at, name in enumerate(alike)}
    return _valid(findings, moved)


ATTACKS: Mapping[str, Attack] = {"invented": invented, "of others": of_others, "exchanged": exchanged}


def gain(report: Report, honest: BaseModel, attacked: BaseModel) -> float:
    """The mean over findings of the share of made-up claims that count as computed; 0 without any."""
    true = claims_of(honest)
    counted: dict[str, list[bool]] = {}
    for asked, claim in zip(claims_of(attacked), audit(report, attacked).claims, strict=True):
        if not any(_is_same(asked, one) for one in true):
            counted.setdefault(claim.finding, []).append(claim.status == "computed")
    return sum(sum(c) / len(c) for c in counted.values()) / max(len(counted), 1)


def _is_same(made: Asked, true: Asked) -> bool:
    if (made.finding, made.names, made.own, made.value is None) != (
        true.finding,
        true.names,
        true.own,
        true.value is None,
    ):
        return False
    if made.value is None or true.value is None or made.is_count:
        return made.text == true.text
    return abs(made.value - true.value) <= 0.1 * abs(true.value)


def _valid(findings: BaseModel, changed: Mapping[str, Any]) -> BaseModel:
    return type(findings).model_validate(changed)


def _is_like(other: Any, value: float) -> bool:
    """Whether another finding's value could be one of this: counts, shares, and other numbers."""
    return type(other) is type(value) and other != value and (0 <= other <= 1) == (0 <= value <= 1)


def _with_numbers(entry: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {k: other.get(k, v) if isinstance(v, int | float) else v for k, v in entry.items()}


def _other(findings: BaseModel, field: str, value: Any, names: Sequence[str], random: Random) -> Any:
    if isinstance(value, list):
        if value and isinstance(value[0], int):
            return [_number(one, random) for one in value]
        names = [name for name in names if any(_shape(name) == _shape(other) for one in value for other in _names(one))]
        used = {name for one in value for name in _names(one)}
        free = [name for name in names if name not in used] or list(names)
        return [_entry(one, random.sample(free, len(free)), random) for one in value] if names else value
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return random.choice([name for name in names if name != value and _shape(name) == _shape(value)] or [value])
    return _number(value, random)


def _entry(entry: Any, free: list[str], random: Random) -> Any:
    """An entry of a list with other names, signs and numbers; takes its names from `free`."""
    if isinstance(entry, dict):
        return {key: _entry(value, free, random) for key, value in entry.items()}
    if isinstance(entry, list):
        return [_entry(value, free, random) for value in entry]
    if isinstance(entry, str):
        return {"+": "-", "-": "+"}.get(entry) or (entry if entry in KINDS else free.pop(0) if free else entry)
    return entry if entry is None else _number(entry, random)


def _names(entry: Any) -> list[str]:
    if isinstance(entry, dict | list):
        return [name for value in (entry.values() if isinstance(entry, dict) else entry) for name in _names(value)]
    return [entry] if isinstance(entry, str) else []


def _shape(name: str) -> tuple[int, bool]:
    """What names of one kind share: the length of those with numbers (plots, sensors), or being two words."""
    return len(name) if any(char.isdigit() for char in name) else 0, " " in name


def _number(value: float, random: Random) -> float:
    """Another number of the same kind and size."""
    if isinstance(value, int):
        return value + random.choice([-1, 1]) * max(1, round(value * random.uniform(0.15, 0.5))) if value else 1
    factor = random.choice([random.uniform(0.4, 0.8), random.uniform(1.2, 1.8)])
    return float(f"{value * factor % 1 if 0 < value < 1 else value * factor:.3g}")
