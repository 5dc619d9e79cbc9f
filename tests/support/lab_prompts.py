"""The lab's prompts as a seat of a pipeline, or one agent alone, is told them, for tests that write texts by hand."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from labmates.agents.facts import FACTS, GIVEN
from labmates.agents.organisation import Organisation
from labmates.agents.prompts import TEXTS
from tests.support.teams import ALONE, PIPELINE

_ELSEWHERE = {"alone", "apart", "group", "merged", "divided", "stated", "also", "files", "shares", "several_phases"}
_ALONE = frozenset({"always", "alone", "unique", "last", "codes", "budget", "also", "write_next"})


def render(name: str, /, **values: object) -> str:
    """Fill in a prompt for a seat with teammates and later teams; values that are not given are empty."""
    return _render(PIPELINE, name, frozenset(FACTS) - _ELSEWHERE, values)


def render_alone(name: str, /, **values: object) -> str:
    """Fill in a prompt for one agent alone."""
    return _render(ALONE, name, _ALONE, values)


def _render(organisation: Organisation, name: str, facts: frozenset[str], values: Mapping[str, object]) -> str:
    names = Template(organisation.prompts.get(name) or TEXTS[name]).get_identifiers()
    given = {**dict.fromkeys(names, ""), **values}
    empty = {value for value, text in given.items() if not str(text)}
    return organisation.render(name, frozenset((facts | {n for n in given if n in GIVEN}) - empty), **given)
