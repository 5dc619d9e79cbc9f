"""Mechanisms by name; other packages add theirs through the entry-point group ``labmates.mechanisms``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from labmates.errors import UsageError, explaining
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Mechanism
from labmates.registry import Registry

_NAMED = re.compile(r"([^()\s]+)(?:\(([^()]*)\))?")

MECHANISMS: Registry[type[Mechanism]] = Registry("mechanism", "labmates.mechanisms")


def split_terms(name: str) -> tuple[str, dict[str, str]]:
    """A name without values in brackets, and these values: ``reputation(order=3)`` is ``reputation`` and its order."""
    given: dict[str, str] = {}
    names = []
    for part in name.split("+"):
        match = _NAMED.fullmatch(part.strip())
        if match is None:
            raise UsageError(
                f"'{name}' is not a mechanism; write for instance reputation(order=3) or contract+repetition"
            )
        names.append(match[1])
        for pair in filter(None, (match[2] or "").split(",")):
            field, equals, value = pair.partition("=")
            if not equals:
                raise UsageError(f"'{name}': brackets hold NAME=VALUE, for instance reputation(order=3)")
            given[field.strip()] = value.strip()
    return "+".join(names), given


def make_mechanisms(name: str, parameters: Mapping[str, Any] | None = None) -> tuple[Mechanism, ...]:
    """The mechanisms in a name, the outermost first.

    Raises `UsageError` if a mechanism or a parameter is unknown, or a value is out of bounds.

    Parameters
    ----------
    name
        A mechanism, or nested ones joined by a plus sign: ``contract+repetition`` is a contract agreed on once for a
        repeated game. Values of parameters may stand in brackets: ``reputation(order=3)``.
    parameters
        Further values; each mechanism takes its own.
    """
    name, bracketed = split_terms(name)
    kinds = [_kind(part) for part in name.split("+")]
    # Literals of integers reject texts, which command lines supply.
    given = {
        field: int(value) if str(value).isdecimal() else value
        for field, value in {**(parameters or {}), **bracketed}.items()
    }
    known = {field for kind in kinds for field in kind.model_fields}
    if unknown := sorted(set(given) - known):
        has = f"has {', '.join(sorted(known))}" if known else "has no parameters"
        raise UsageError(f"unknown parameter '{unknown[0]}': the mechanism '{name}' {has}")
    if any(kind.seats_itself for kind in kinds[1:]):
        raise UsageError(f"'{name}': a mechanism with changing co-players goes first, for instance reputation+contract")
    if len({kind.name for kind in kinds}) < len(kinds):
        raise UsageError(f"'{name}': a mechanism is repeated")
    with explaining():
        return tuple(
            kind(**{field: value for field, value in given.items() if field in kind.model_fields}) for kind in kinds
        )


def check_fits(mechanisms: Sequence[Mechanism], game: NormalForm) -> None:
    """Check that mechanisms fit a game; a `UsageError` if not."""
    for mechanism in mechanisms:
        mechanism.check(game)


def _kind(name: str) -> type[Mechanism]:
    with MECHANISMS.guarded(name, "can't be used"):
        kind = MECHANISMS.get(name)
        if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
            raise UsageError(f"a mechanism must be a subclass of labmates.mechanisms.base.Mechanism, not {kind!r}")
        return kind
