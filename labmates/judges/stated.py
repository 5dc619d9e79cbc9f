"""The claims of stated findings: what each one says, in words and numbers that texts can be searched for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from labmates.judges.rows import read_numbers, words_of
from labmates.tasks.scoring import plain_name

MOST_CLAIMS: Final = 400
"""Most claims of a report's findings that are looked up."""
_COMMON: Final = words_of(
    "a an the of in on at by as to is are be for and or not no its with without from that this which whose each every "
    "all one between over above below than other only whether given most least more less number distinct "
    "matters matter column columns name names first last whole entry"
)
TERMS: Final = words_of("treatment treated interaction")
"""Words for terms of a model that stand beside the name of a variable."""
_RISING: Final = ("increas", "gain", "ris", "grow", "high", "larg", "rich", "most", "best", "above")
_FALLING: Final = ("decreas", "declin", "los", "fall", "low", "small", "poor", "least", "worst", "below", "slow")


@dataclass(frozen=True)
class Asked:
    """A claim to be looked up.

    Attributes
    ----------
    names, pair
        What it is about; empty for a finding about the whole. The names of an entry in the order of its fields.
    words, own
        The words of the finding, and those of its name that no other finding's name has.
    kin, rivals
        Words of the things that a number counts, and those of other findings' names.
    field, siblings
        The words of the finding's name that others lack, and those of others whose names share half of their words with
        it: "rainfed" and "irrigated" of "effect_rainfed" and "effect_irrigated".
    terms, others_terms
        The words for terms of a model in the description of its finding, and in those of its siblings alone.
    given
        The numbers in the finding's description, which are no values of it.
    value
        The stated number; None for a name or an answer.
    sign
        The stated sign of a size.
    is_part, is_listed
        Whether it is a number of a group without a name, and whether it is an entry of a list.
    things
        For a number of things: the names that the findings state in fields named so.
    mates
        For a number of an entry without a name: the other numbers of the entry.
    fellows, among
        All names that the finding states, and how many entries it has.
    direction
        1 if a finding is about the largest values of a statistic, -1 if about the smallest, 0 if it does not say.
    """

    finding: str
    text: str = ""
    names: frozenset[str] = frozenset()
    pair: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    kin: frozenset[str] = frozenset()
    rivals: frozenset[str] = frozenset()
    field: frozenset[str] = frozenset()
    siblings: frozenset[str] = frozenset()
    terms: frozenset[str] = frozenset()
    others_terms: frozenset[str] = frozenset()
    given: frozenset[float] = frozenset()
    value: float | None = None
    is_count: bool = False
    sign: str = ""
    is_part: bool = False
    is_listed: bool = False
    things: frozenset[str] = frozenset()
    mates: tuple[Asked, ...] = ()
    fellows: frozenset[str] = frozenset()
    among: int = 1
    direction: int = 0

    @property
    def is_of_counts(self) -> bool:
        """Whether a finding names what there is most of."""
        return "most" in words_of(self.finding)


def names_in(findings: Any) -> Iterator[str]:
    """The names in findings: texts, without signs and the like."""
    if isinstance(findings, str):
        if len(plain_name(findings)) > 1:
            yield findings
    elif isinstance(findings, BaseModel):
        for name in type(findings).model_fields:
            if not _is_choice(type(findings), name):
                yield from names_in(getattr(findings, name))
    elif isinstance(findings, list | tuple):
        for inner in findings:
            yield from names_in(inner)


def _is_choice(model: type[BaseModel], name: str) -> bool:
    return "Literal" in repr(model.model_fields[name].annotation) or name in ("sign", "kind")


def claims_of(findings: BaseModel) -> list[Asked]:
    """The first `MOST_CLAIMS` claims of findings."""
    return list(islice(_claims(findings), MOST_CLAIMS))


def _claims(findings: BaseModel) -> Iterator[Asked]:
    model = type(findings)
    by_field = {name: words_of(name) - _COMMON - {"n"} for name in model.model_fields}
    told = {name: words_of(f.description or "") - _COMMON for name, f in model.model_fields.items()}
    for name in model.model_fields:
        value = getattr(findings, name)
        if value is None:
            continue
        others = frozenset().union(*(words for other, words in by_field.items() if other != name))
        own = frozenset(word for word in by_field[name] if not _is_begun(word, others)) or by_field[name]
        parts = (f.annotation for other, f in model.model_fields.items() if other != name)
        own = own - words_of(" ".join(word for part in parts for word in _inner(part))) or own
        near = [o for o, w in by_field.items() if o != name and 2 * len(w & by_field[name]) >= len(w)]
        base = Asked(
            name,
            words=by_field[name] | (words_of(model.model_fields[name].description or "") - _COMMON),
            own=own,
            kin=_kin(name, model),
            given=frozenset(number.value for number in read_numbers(model.model_fields[name].description or "")),
            rivals=others - by_field[name],
            field=own,
            siblings=frozenset().union(*(by_field[other] - by_field[name] for other in near)),
            terms=told[name] & TERMS,
            others_terms=frozenset().union(*(told[other] for other in near)) & TERMS - told[name],
            is_count=(model.model_fields[name].description or "").startswith("number of "),
            is_listed=isinstance(value, list),
            things=_things(findings, own) if name.startswith("n_") else frozenset(),
            fellows=frozenset(names_in(value)),
            among=len(value) if isinstance(value, list) else 1,
            direction=_direction(words_of(name)) or _direction(words_of(model.model_fields[name].description or "")),
        )
        for entry in value if isinstance(value, list) else [value]:
            yield from _of_entry(base, entry)


def _is_begun(word: str, others: frozenset[str]) -> bool:
    return any(word.startswith(other) or other.startswith(word) for other in others)


def _direction(words: frozenset[str]) -> int:
    up, down = (any(word.startswith(stems) for word in words) for stems in (_RISING, _FALLING))
    return up - down


def _kin(name: str, model: type[BaseModel]) -> frozenset[str]:
    """For a number of things: the words of the field that lists these things."""
    if not name.startswith("n_"):
        return frozenset()
    listed = model.model_fields.get(name.removeprefix("n_"))
    return frozenset() if listed is None else words_of(" ".join(_inner(listed.annotation))) - _COMMON


def _things(findings: BaseModel, words: frozenset[str]) -> frozenset[str]:
    """The names in fields that are named by some words."""
    found = set[str]()
    for name in type(findings).model_fields:
        value = getattr(findings, name)
        if words & words_of(name):
            found |= {*names_in(value)}
        for entry in value if isinstance(value, list) else ():
            found |= _things(entry, words) if isinstance(entry, BaseModel) else set()
    return frozenset(found)


def _inner(annotation: Any) -> list[str]:
    fields = getattr(annotation, "model_fields", {}).items()
    scalars = [name for name, field in fields if not _has_list(field.annotation)]
    return scalars + [word for part in getattr(annotation, "__args__", ()) for word in _inner(part)]


def _has_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(map(_has_list, get_args(annotation)))


def _of_entry(base: Asked, entry: Any) -> Iterator[Asked]:
    """The claims of one value or entry of a list."""
    if isinstance(entry, BaseModel):
        yield from _of_record(base, entry)
    elif isinstance(entry, bool):
        yield replace(base, text=str(entry).lower())
    elif isinstance(entry, str):
        yield replace(base, text=entry, names=frozenset({entry}))
    elif isinstance(entry, int | float):
        yield replace(base, text=f"{entry:.10g}", value=float(entry), is_count=base.is_count or isinstance(entry, int))


def _of_record(base: Asked, entry: BaseModel) -> Iterator[Asked]:
    """A claim for each number of an entry, and one for the members of a group."""
    model = type(entry)
    values = {name: getattr(entry, name) for name in model.model_fields if not _is_choice(model, name)}
    single = frozenset(value for value in values.values() if isinstance(value, str) and plain_name(value))
    several = frozenset(name for value in values.values() if isinstance(value, list) for name in names_in(value))
    said = ", ".join(
        [*(value for value in values.values() if isinstance(value, str) and value in single), *sorted(several)]
    )
    chosen = words_of(
        " ".join(str(getattr(entry, name) or "") for name in model.model_fields if _is_choice(model, name))
    )
    numbers = {k: v for k, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    told = {name: words_of(f"{name} {model.model_fields[name].description or ''}") - _COMMON for name in numbers}
    asked = list[Asked]()
    for name, value in numbers.items():
        described = told[name]
        others = frozenset().union(*(words for other, words in told.items() if other != name))
        one = replace(
            base,
            text=f"{said}: {name} {value:.10g}".removeprefix(": "),
            names=single or several,
            pair=tuple(value for value in values.values() if isinstance(value, str)),
            words=base.words | described | chosen,
            own=words_of(name) - _COMMON if said else described - others,
            value=float(value),
            is_count=isinstance(value, int),
            sign=str(getattr(entry, "sign", None) or "") if "sign" in described else "",
            is_part=bool(several) and not single,
            rivals=frozenset(),
            is_listed=base.is_listed and not (single or several),
        )
        asked.append(one)
    for one in asked:
        yield one if said else replace(one, mates=tuple(other for other in asked if other is not one))
    if len(several) > 1 or not numbers:  # the numbers of a group of one name it
        sign = "" if numbers else str(getattr(entry, "sign", None) or "")
        yield replace(base, text=said, names=single or several, sign=sign, is_part=bool(several) and not single)
