"""The items of findings, and rules that recognise them in the rows of a text."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from labmates.judges.rows import Number, Row, agree, read_numbers
from labmates.tasks.base import Task, accuracy
from labmates.tasks.scoring import plain_name

STEM: Final = 5
"""Words are compared by this many leading letters."""
LEAST_CREDIT: Final = 0.5
"""A row holds a true finding if it earns this share of the truth's credit."""
MOST_VALUES: Final = 100
"""Most values tried in one row: a longer one lists values and states none."""
TINY: Final = 1e-9
FAR: Final = 0.5
"""Numbers with a larger relative error are not tried."""


@dataclass(frozen=True)
class Item:
    """A single value of the findings, or one entry of a list.

    Attributes
    ----------
    finding
        Name of the field.
    value
        The value or entry in the findings model.
    names, plain, numbers
        Search terms: names (original, and in plain form) and numbers. Words of a fixed choice (kinds, signs) are
        excluded, since prose has many words for them.
    stems
        Stems of words required in a row where names and numbers alone are ambiguous.
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
        return ", ".join(_parts(self.value))


def items_of(findings: BaseModel) -> list[Item]:
    """The items of findings that have a name or a number."""
    model = type(findings)
    items = []
    for field, is_choice in _choices(model).items():
        value = getattr(findings, field)
        if value is None:
            continue
        in_list = isinstance(value, list)
        for entry in value if in_list else [value]:
            names, numbers = _leaves(entry, is_choice=is_choice)
            if names or numbers:
                vague = len(numbers) < 2 and not (names and numbers)
                stems = _stems(field, model) if vague else ()
                items.append(Item(field, entry, names, tuple(map(plain_name, names)), numbers, stems, in_list))
    return items


def record_keys(model: type[BaseModel]) -> frozenset[str]:
    """The field names of models nested in a findings model, without its top-level fields."""
    nested = [inner for field in model.model_fields.values() for inner in _models(field.annotation)]
    return frozenset(name for inner in nested for name in inner.model_fields) - model.model_fields.keys()


def is_same(first: Item, second: Item) -> bool:
    """Whether two statements of a finding have equal names, in any order, and equal numbers when rounded alike."""
    if sorted(first.plain) != sorted(second.plain) or len(first.numbers) != len(second.numbers):
        return False
    pairs = [(_number(one), _number(other)) for one, other in zip(first.numbers, second.numbers, strict=True)]
    signs = zip(first.numbers, second.numbers, strict=True)
    return all(agree(*pair) or agree(*reversed(pair)) for pair in pairs) and all(a * b >= 0 for a, b in signs)


class Finder:
    """A search for true findings in rows, by the task's tolerances.

    A row is read as the finding with the row's numbers (the nearest ones, or those of its keys), and the task scores
    that against the truth. An entry that earns more beside the true entry than a copy of it is a different entry.
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
        full = self._earned(item, item.value)
        return (
            full > 0
            and self._earned(item, candidate) >= LEAST_CREDIT * full
            and (not item.in_list or self._adds_nothing(item, candidate))
        )

    def states(self, findings: BaseModel, item: Item) -> bool:
        """Whether typed findings hold a true one, or another value that the task counts as right."""
        value, full = getattr(findings, item.finding), self._earned(item, item.value)
        return any(
            full > 0
            and self._earned(item, entry) >= LEAST_CREDIT * full
            and (not item.in_list or self._adds_nothing(item, entry))
            for entry in (value or () if item.in_list else [value] if value is not None else [])
        )

    def _adds_nothing(self, item: Item, candidate: Any) -> bool:
        """Whether an entry of a list earns no more beside the true entry than a copy of it."""
        return self._earned(item, item.value, candidate) <= self._earned(item, item.value, item.value) + TINY

    def credits(self, row: Row, item: Item) -> bool:
        """Whether `row` states another value that the task counts as right, such as one of several tied names."""
        if item.in_list or not row.speaks_of(item.stems):
            return False
        full = self._earned(item, item.value)
        values = islice(_other_values(row, item), MOST_VALUES)
        return full > 0 and any(self._earned(item, value) >= LEAST_CREDIT * full for value in values)

    def _earned(self, item: Item, *values: Any) -> float:
        stated = list(values) if item.in_list else values[0]
        key = (item.finding, repr(stated))
        if key not in self._worth:
            findings = self._task.findings.model_construct(**{item.finding: stated})
            self._worth[key] = accuracy(self._task.score(findings, self._truth))
        return self._worth[key]


def _as_stated(row: Row, item: Item) -> Any:
    """The item's value with the numbers of the row; None if they don't fit."""
    value = item.value
    if isinstance(value, BaseModel):
        fields = {name: row.fields[name] for name in type(value).model_fields if name in row.fields}
        if fields:
            try:
                return type(value).model_validate(fields)
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


def _other_values(row: Row, item: Item) -> Iterator[Any]:
    """The names in a row with as many words as the true one, in plain form; for a number all numbers of the row."""
    if isinstance(item.value, str):
        words = row.words.split()
        length = len(plain_name(item.value).split())
        yield from (" ".join(words[at : at + length]) for at in range(len(words) - length + 1))
    elif isinstance(item.value, int | float):
        yield from (round(n.value) if isinstance(item.value, int) else n.value for n in row.numbers)


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


def _parts(value: Any) -> Iterator[str]:
    """The texts of a value's parts, as readers see them."""
    if isinstance(value, BaseModel):
        value = list(value.model_dump().values())
    if isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_parts, value))
    elif value is not None:
        yield f"{value:.12g}" if isinstance(value, float) else str(value)


def _leaves(value: Any, *, is_choice: bool = False) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The names and numbers in a value, without choices among fixed words."""
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
    names, numbers = zip(*parts, strict=True) if parts else ((), ())
    return tuple(chain.from_iterable(names)), tuple(chain.from_iterable(numbers))


@lru_cache(maxsize=1024)
def _choices(model: type[BaseModel]) -> dict[str, bool]:
    """Whether each field of a model is a choice among fixed words."""
    return {name: _is_choice(field.annotation) for name, field in model.model_fields.items()}


def _is_choice(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType, Annotated, list):
        return any(_is_choice(part) for part in get_args(annotation))
    return get_origin(annotation) is Literal


def _stems(field: str, model: type[BaseModel]) -> tuple[str, ...]:
    """Stems of the words in a field's name, preferably those unique to the field."""
    words = [word for word in field.split("_") if len(word) > 2]
    shared = {word for other in model.model_fields if other != field for word in other.split("_")}
    return tuple(word[:STEM] for word in ([word for word in words if word not in shared] or words))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
