"""Conversion between results of the analysis and findings of the task.

Rules select the result for a field of the findings block by its name, type and description in the prompt. Fields
without a rule are omitted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Results = dict[str, Any]
"""Results of analysis cells, by their names."""

Block = dict[str, Any]
"""A findings block, by names of the task's fields."""

SERIES = r"species|taxa|populations?|series|sensors?|channels?|patients|subjects"


@dataclass(frozen=True)
class Field:
    """A field of the findings block from the prompt; `inner` are the fields of a list's objects."""

    name: str
    type: str
    about: str
    inner: tuple[Field, ...] = ()

    @property
    def words(self) -> str:
        """Its name and description, in lower case."""
        return f"{self.name.replace('_', ' ')}: {self.about}".lower()


@dataclass(frozen=True)
class Rule:
    """A rule for one kind of field.

    Attributes
    ----------
    types, pattern
        Prefixes of the field's type, and a pattern for its name and description.
    give
        Returns the field's value from the results; None if missing.
    take
        Returns the results from a stated value; raises if it is malformed.
    """

    types: tuple[str, ...]
    pattern: str
    give: Callable[[Results, Field], Any]
    take: Callable[[Any, Field], Results]


def read_fields(listed: str) -> tuple[Field, ...]:
    """The fields of the findings block, listed one per line."""
    fields: list[Field] = []
    for indent, name, type_, about in re.findall(r"^( *)- (\w+) \((.+?)\): (.*)$", listed, re.MULTILINE):
        field = Field(name, type_, about)
        if indent and fields:
            fields[-1] = replace(fields[-1], inner=(*fields[-1].inner, field))
        else:
            fields.append(field)
    return tuple(fields)


def state(results: Results, fields: Iterable[Field]) -> Block:
    """The findings block of `results`, for the requested fields."""
    block: Block = {}
    for field in fields:
        rule = rule_for(field)
        value = rule.give(results, field) if rule else None
        if value is not None:
            block[field.name] = value
    return block


def restate(block: Block, fields: Iterable[Field]) -> Results:
    """The results in a findings block, without malformed items."""
    results: Results = {}
    for field in fields:
        rule = rule_for(field)
        if rule is None or block.get(field.name) is None:
            continue
        try:
            taken = rule.take(block[field.name], field)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
            continue
        for key, value in taken.items():
            results[key] = {**results.get(key, {}), **value} if isinstance(value, dict) else value
    return results


def rule_for(field: Field) -> Rule | None:
    """The first rule that matches a field."""
    return next((r for r in RULES if field.type.startswith(r.types) and re.search(r.pattern, field.words)), None)


def find_block(text: str) -> Block:
    """The last readable findings block in `text`, else an empty one."""
    for body in reversed(re.findall(r"```findings\s*\n(.*?)\n\s*```", text, re.DOTALL)):
        try:
            block = json.loads(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(block, dict):
            return block
    return {}


def show_block(block: Block) -> str:
    """The block in the format of a report."""
    return f"```findings\n{json.dumps(block, ensure_ascii=False)}\n```"


def merge(ranked: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The union of mappings; the first value of a key counts."""
    merged: dict[str, Any] = {}
    for mapping in ranked:
        for key, value in mapping.items():
            merged.setdefault(key, value)
    return merged


LINK = {
    "sign": r"\bsign",
    "strength": r"strength|size|coefficient",
    "source": r"source|acts|cause",
    "target": r"target|changed",
}
EVENT = {
    "start": r"start|first|begin",
    "end": r"\bend\b|\blast",
    "who": r"sensor|channel|column",
    "kind": r"kind|type",
}
SPOT = {"x": r"\bx\b|east", "y": r"\by\b|north", "radius": r"radius|half|extent|size"}
DRIVER = {"sign": r"\bsign", "name": r"name|column|covariate"}
MARKER = {"sign": r"\bsign", "size": r"size|points|strength", "name": r"marker|column|name"}
SUBTYPE = {"share": r"share", "up": r"high|raised", "down": r"\blow|lowered", "effect": r"effect"}
FUTURE = {"value": r"abundance|mean|value|count", "name": r"species|name|series"}


def _keys(field: Field, words: Mapping[str, str]) -> dict[str, str]:
    """The part of an item in each inner field, by its name, else by its description."""
    keys: dict[str, str] = {}
    for inner in field.inner:
        for text in (inner.name.lower(), inner.about.lower()):
            part = next((part for part, pattern in words.items() if re.search(pattern, text)), None)
            if part is not None:
                keys[inner.name] = part
                break
    return keys


def _items(parts: Sequence[Mapping[str, Any]], field: Field, words: Mapping[str, str]) -> list[dict[str, Any]]:
    keys = _keys(field, words)
    return [{name: part[key] for name, key in keys.items()} for part in parts]


def _parts(items: Sequence[Mapping[str, Any]], field: Field, words: Mapping[str, str]) -> list[dict[str, Any]]:
    keys = _keys(field, words)
    return [{key: item[name] for name, key in keys.items() if name in item} for item in items]


def _give_links(results: Results, field: Field) -> Any:
    parts = [
        {"source": a, "target": b, "sign": "+" if v > 0 else "-", "strength": abs(v)}
        for a, b, v in results.get("links", [])
    ]
    return _items(parts, field, LINK) if "links" in results else None


def _take_links(value: Any, field: Field) -> Results:
    links = [
        [str(p["source"]), str(p["target"]), (-1 if p.get("sign") == "-" else 1) * _number(p.get("strength") or 0)]
        for p in _parts(value, field, LINK)
    ]
    return {"links": links}


def _give_events(results: Results, field: Field) -> Any:
    parts = [{"start": a, "end": b, "who": w, "kind": kind} for a, b, w, kind in results.get("events", [])]
    return _items(parts, field, EVENT) if "events" in results else None


def _take_events(value: Any, field: Field) -> Results:
    parts = _parts(value, field, EVENT)
    return {
        "events": [[int(p["start"]), int(p["end"]), _texts(p.get("who", [])), str(p.get("kind", ""))] for p in parts]
    }


def _give_future(results: Results, field: Field) -> Any:
    parts = [{"name": name, "value": value} for name, value in results.get("future", {}).items()]
    return _items(parts, field, FUTURE) if "future" in results else None


def _take_future(value: Any, field: Field) -> Results:
    return {"future": {str(p["name"]): _number(p["value"]) for p in _parts(value, field, FUTURE)}}


def _markers_of(kind: str) -> Rule:
    """The rule for markers with sign and size of their effect."""

    def give(results: Results, field: Field) -> Any:
        parts = [{"name": m, "sign": "+" if v > 0 else "-", "size": abs(v)} for m, v in results.get(kind, [])]
        return _items(parts, field, MARKER) if kind in results else None

    def take(value: Any, field: Field) -> Results:
        parts = _parts(value, field, MARKER)
        return {
            kind: [[str(p["name"]), (-1 if p.get("sign") == "-" else 1) * _number(p.get("size") or 0)] for p in parts]
        }

    return Rule(("list of object",), rf"^{kind} markers", give, take)


def _give_subtypes(results: Results, field: Field) -> Any:
    keys = ("share", "up", "down", "effect")
    parts = [dict(zip(keys, subtype, strict=True)) for subtype in results.get("subtypes", [])]
    return _items(parts, field, SUBTYPE) if "subtypes" in results else None


def _take_subtypes(value: Any, field: Field) -> Results:
    return {
        "subtypes": [
            [_number(p.get("share") or 0), _texts(p.get("up", [])), _texts(p.get("down", [])), _number(p["effect"])]
            for p in _parts(value, field, SUBTYPE)
        ]
    }


def _give_spots(results: Results, field: Field) -> Any:
    parts = [{"x": x, "y": y, "radius": radius} for x, y, radius in results.get("hotspots", [])]
    return _items(parts, field, SPOT) if "hotspots" in results else None


def _take_spots(value: Any, field: Field) -> Results:
    return {"hotspots": [[_number(p[key]) for key in ("x", "y", "radius")] for p in _parts(value, field, SPOT)]}


def _give_drivers(results: Results, field: Field) -> Any:
    parts = [{"name": name, "sign": "+" if effect > 0 else "-"} for name, effect in results.get("drivers", [])]
    return _items(parts, field, DRIVER) if "drivers" in results else None


def _take_drivers(value: Any, field: Field) -> Results:
    return {"drivers": [[str(p["name"]), -1 if p.get("sign") == "-" else 1] for p in _parts(value, field, DRIVER)]}


def _give_count(results: Results, _: Field) -> Any:
    return len(results.get("entities") or results.get("channels") or []) or results.get("count")


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return [str(item) for item in value]


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("not finite")
    return number


def _wholes(value: Any) -> list[int]:
    return [int(item) for item in value]


def _events_of(kind: str) -> Rule:
    """The rule for the number of events of one kind."""
    return Rule(
        ("whole number",),
        rf"\bnumber of {kind}",
        lambda results, _: results.get("kinds", {}).get(kind),
        lambda value, _: {"kinds": {kind: int(value)}},
    )


def _validated(how: str, pattern: str) -> Rule:
    """The rule for the R² of one kind of cross-validation."""
    return Rule(
        ("number",),
        rf"(?=.*(?:r²|r2\b))(?=.*(?:{pattern}))",
        lambda results, _: results.get("r2", {}).get(how),
        lambda value, _: {"r2": {how: _number(value)}},
    )


def _response(way: str, pattern: str) -> Rule:
    """The rule for series with faster (or slower) growth at higher temperature."""

    def give(results: Results, _: Field) -> Any:
        return results.get(f"warm_{way}", warmth(results).get(way))

    return Rule(
        ("list of text",),
        rf"(?=.*(?:warm|temperature))(?=.*(?:{pattern}))",
        give,
        lambda value, _: {f"warm_{way}": _texts(value)},
    )


def warmth(results: Results) -> dict[str, list[str]]:
    """Series whose growth goes ``up`` and ``down`` with temperature; empty without a temperature column."""
    responses: dict[str, dict[str, list[str]]] = results.get("responses", {})
    return next((found for name, found in responses.items() if re.search("temp|warm", name.lower())), {})


def _plain(key: str, types: str, pattern: str, read: Callable[[Any], Any]) -> Rule:
    return Rule((types,), pattern, lambda results, _: results.get(key), lambda value, _: {key: read(value)})


RULES: tuple[Rule, ...] = (
    _events_of("point"),
    _events_of("contextual"),
    _events_of("collective"),
    Rule(
        ("whole number",),
        rf"\bnumber of (?:distinct |different )?(?:{SERIES})\b",
        _give_count,
        lambda value, _: {"count": int(value)},
    ),
    Rule(
        ("whole number",),
        r"\bnumber of (?:hidden |latent )?(?:subtypes|clusters)",
        lambda results, _: len(results["subtypes"]) if "subtypes" in results else results.get("kinds_found"),
        lambda value, _: {"kinds_found": int(value)},
    ),
    _plain("ate", "number", r"(?=.*\b(?:average|mean))(?=.*(?:placebo|control|treatment effect))", _number),
    _plain("helped", "number", r"(?=.*\bshare)(?=.*effect of the treatment)", _number),
    _markers_of("prognostic"),
    _markers_of("predictive"),
    Rule(("list of object",), r"^subtypes", _give_subtypes, _take_subtypes),
    _plain("other_unit", "list of text", r"(?=.*batch)(?=.*unit)", _texts),
    _plain("batchy", "list of text", r"\bbatch", _texts),
    _plain("sites", "whole number", r"\bnumber of (?:distinct |different )?(?:sites|places|locations)\b", int),
    _validated("plain", r"covariates alone|non-spatial"),
    _validated("random", r"random"),
    _validated("block", r"block"),
    _plain("azimuth", "number", r"azimuth|clockwise from north", _number),
    _plain("ratio", "number", r"anisotropy ratio|longest over shortest", _number),
    _plain("nugget", "number", r"\bnugget share", _number),
    _plain("range", "number", r"\brange m:|practical range in met", _number),
    _plain("rock", "text", r"\b(?:rock|lithology)\b", str),
    Rule(("list of object",), r"hot ?spots?", _give_spots, _take_spots),
    Rule(("list of object",), r"^covariates", _give_drivers, _take_drivers),
    _plain("breaks", "list of whole number", r"regime|shift|change.?point|break|turning point", _wholes),
    _response("up", r"faster|gain|benefit"),
    _response("down", r"slow|lose|suffer"),
    _plain("drifting", "list of text", r"drift|slowly in one direction", _texts),
    _plain("fallers", "list of text", r"declin|decreas|rarer|below", _texts),
    _plain("risers", "list of text", r"increas|more common|above", _texts),
    Rule(("list of object",), r"interact|effects between", _give_links, _take_links),
    Rule(("list of object",), r"forecast|predict|after the last", _give_future, _take_future),
    Rule(("list of object",), r"anomal|abnormal", _give_events, _take_events),
    _plain("share", "number", r"(?=.*(?:share|fraction|proportion))(?=.*(?:abnormal|anomal))", _number),
    _plain("worst", "text", r"most affected|involved in most|most often", str),
)
"""Tried in order: responses to warmth come before plain gains and losses."""
