"""The single statements that findings consist of, and whether a row of a text holds one of them."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from labmates.judges.rows import Number, Row, agree, read_numbers
from labmates.tasks.base import Task, accuracy
from labmates.tasks.scoring import plain_name

STEM: Final = 5
"""Number of leading letters by which words are compared."""
LEAST_CREDIT: Final = 0.5
"""A row holds a true finding if it would earn this share of the credit that the truth earns."""
TINY: Final = 1e-9
FAR: Final = 0.5
"""A number further off than this share is not even tried."""


@dataclass(frozen=True)
class Item:
    """One statement: a single value, or one entry of a list.

    Attributes
    ----------
    finding
        Name of the field.
    value
        The value or entry as the findings model holds it.
    names, plain, numbers
        What is looked for in texts: names (as they are, and in plain form) and numbers. Words of a fixed choice (kinds,
        signs) are left out: prose says them in many ways.
    stems
        What a row must speak of if names and numbers alone are too little to tell.
    in_list
        Whether it is an entry of a list.
    """

    finding: str
    value: Any
    names: tuple[str, ...]
    plain: tuple[str, ...]
    numbers: tuple[float, ...]
    stems: tuple[str, ...]
    in_list: bool

    def __str__(self) -> str:
        return ", ".join([*self.names, *(f"{number:g}" for number in self.numbers)])


def items_of(findings: BaseModel) -> list[Item]:
    """The statements of findings that have a name or a number."""
    model = type(findings)
    items = []
    for field, is_choice in _choices(model).items():
        value = getattr(findings, field)
        if value is None:
            continue
        in_list = isinstance(value, list)
        for one in value if in_list else [value]:
            names, numbers = _leaves(one, is_choice=is_choice)
            if names or numbers:
                vague = len(numbers) < 2 and not (names and numbers)
                stems = _stems(field, model) if vague else ()
                items.append(Item(field, one, names, tuple(map(plain_name, names)), numbers, stems, in_list))
    return items


def record_keys(model: type[BaseModel]) -> frozenset[str]:
    """The field names of the models nested in a findings model, without its own fields."""
    inner = [one for field in model.model_fields.values() for one in _models(field.annotation)]
    return frozenset(name for one in inner for name in one.model_fields) - model.model_fields.keys()


def is_source(row: Row, item: Item) -> bool:
    """Whether a stated item may come from this row: all its names and numbers occur there, in their context."""
    if not (all(map(row.names, item.plain)) and row.speaks_of(item.stems)):
        return False
    return all(any(agree(_number(number), source) for source in row.numbers) for number in item.numbers)


class Finder:
    """Test of rows for true findings, by the task's own tolerances.

    A row is read as the finding with the row's own numbers (the nearest ones, or those of its keys), and that is scored
    by the task against the truth. An entry that earns more beside the true one than its copy does is another entry.
    """

    def __init__(self, task: Task[Any, Any], truth: BaseModel) -> None:
        self._task = task
        self._truth = truth
        self._worth: dict[tuple[str, str], float] = {}

    def holds(self, row: Row, item: Item) -> bool:
        """Whether `row` holds the true finding `item`."""
        enough = -(-len(item.names) // 2) if isinstance(item.value, BaseModel) and row.fields else len(item.names)
        if sum(map(row.names, item.plain)) < enough or not row.speaks_of(item.stems):
            return False
        candidate = _as_stated(row, item)
        if candidate is None:
            return False
        own, twice = self._earned(item, item.value), (item.value, item.value)
        return (
            own > 0
            and self._earned(item, candidate) >= LEAST_CREDIT * own
            and (not item.in_list or self._earned(item, item.value, candidate) <= self._earned(item, *twice) + TINY)
        )

    def _earned(self, item: Item, *values: Any) -> float:
        stated = list(values) if item.in_list else values[0]
        key = (item.finding, repr(stated))
        if key not in self._worth:
            findings = self._task.findings.model_construct(**{item.finding: stated})
            self._worth[key] = accuracy(self._task.score(findings, self._truth))
        return self._worth[key]


def _as_stated(row: Row, item: Item) -> Any:
    """The item with the row's own values, or None if the row's are no such values."""
    value = item.value
    if isinstance(value, BaseModel):
        own = {name: row.fields[name] for name in type(value).model_fields if name in row.fields}
        if own:
            try:
                return type(value).model_validate(own)
            except ValidationError:
                return None
        update = {}
        for name in type(value).model_fields:
            number = getattr(value, name)
            if isinstance(number, int | float) and not isinstance(number, bool):
                if (near := _nearest(row.numbers, number)) is None:
                    return None
                update[name] = near
        return value.model_copy(update=update)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _nearest(row.numbers, value)
    return value


def _nearest(numbers: Sequence[Number], true: float) -> float | int | None:
    near = min((n.value for n in numbers), key=lambda value: abs(value - abs(true)), default=None)
    if near is None or abs(near - abs(true)) > FAR * abs(true):
        return None
    signed = -near if true < 0 else near
    return round(signed) if isinstance(true, int) else signed


@lru_cache(maxsize=4096)
def _number(value: float) -> Number:
    written = read_numbers(f"{abs(value)!r}")
    return written[0] if written else Number(abs(value), 0.0, 1, str(value))


def _leaves(value: Any, *, is_choice: bool = False) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The names and numbers in a value, without what is a choice among fixed words."""
    if is_choice or isinstance(value, bool) or value is None:
        return (), ()
    if isinstance(value, str):
        return ((value,), ()) if any(char.isalnum() for char in value) else ((), ())
    if isinstance(value, int | float):
        return (), (value,)
    if isinstance(value, BaseModel):
        parts = [_leaves(getattr(value, name), is_choice=fixed) for name, fixed in _choices(type(value)).items()]
    else:
        parts = [_leaves(inner) for inner in (value if isinstance(value, list | tuple) else ())]
    return tuple(name for names, _ in parts for name in names), tuple(one for _, numbers in parts for one in numbers)


@lru_cache(maxsize=1024)
def _choices(model: type[BaseModel]) -> dict[str, bool]:
    """Whether each field of a model is a choice among fixed words."""
    return {name: _is_choice(field.annotation) for name, field in model.model_fields.items()}


def _is_choice(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType, Annotated, list):
        return any(_is_choice(part) for part in get_args(annotation))
    return get_origin(annotation) is Literal


def _stems(field: str, model: type[BaseModel]) -> tuple[str, ...]:
    """The subject of a text about a field: the words of its name, preferably those that no other shares."""
    words = [word for word in field.split("_") if len(word) > 2]
    shared = {word for other in model.model_fields if other != field for word in other.split("_")}
    return tuple(word[:STEM] for word in ([word for word in words if word not in shared] or words))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
