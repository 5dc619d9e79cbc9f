"""Forms of answers in words, for repair turns: what an answer looks like, and what is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

_MOST_QUOTED = 80
_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text in quotes",
    "list_type": "a list",
    "tuple_type": "a list",
}
"""The wanted kind of value, by pydantic's type of fault."""


@lru_cache(maxsize=256)
def form_words(form: type[BaseModel]) -> str:
    """A form as one JSON object with words in place of the values.

    >>> from labmates.agents.decisions import numbers_form
    >>> form_words(numbers_form({"effort": (1, 7)}))
    '{"effort": <whole number from 1 to 7>}'
    """
    schema = form.model_json_schema()
    return schema_words(schema, schema.get("$defs", {}))


def schema_words(schema: Mapping[str, Any], defined: Mapping[str, Any] = MappingProxyType({})) -> str:
    """A JSON schema with its definitions as JSON with words in place of the values."""
    if "$ref" in schema:
        schema = defined[schema["$ref"].rpartition("/")[2]]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(schema_words(option, defined) for option in options)
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else None):
        return " or ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {}).items()
            return f"{{{', '.join(f'{json.dumps(key)}: {schema_words(part, defined)}' for key, part in fields)}}}"
        case "array":
            return f"[{schema_words(schema.get('items', {}), defined)}, …]"
        case "integer" | "number" as kind:
            name = "whole number" if kind == "integer" else "number"
            low, high = schema.get("minimum"), schema.get("maximum")
            return f"<{name}>" if low is None or high is None else f"<{name} from {low} to {high}>"
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case "string":
            return "<text>"
        case _:
            return "<value>"


def each_part(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Change the schemas directly inside a JSON schema; values that are not schemas, such as true, stay."""

    def changed(key: str, value: Any) -> Any:
        if key == "properties":
            return {name: change(part) for name, part in value.items()}
        if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            return [change(part) for part in value]
        return change(value) if key in ("items", "additionalProperties") and isinstance(value, Mapping) else value

    return {key: changed(key, value) for key, value in schema.items()}


def fault_words(error: ValidationError, form: type[BaseModel]) -> str:
    """The faults of an invalid answer in plain words, each with its key, its value and what is allowed."""
    faults = error.errors()
    missing = [str(fault["loc"][-1]) for fault in faults if fault["type"] == "missing"]
    extra = [str(fault["loc"][-1]) for fault in faults if fault["type"] == "extra_forbidden"]
    renamed = {key: name for key in extra for name in missing if key.strip().casefold() == name.casefold()}
    words = [f"the key has to be {_quoted(name)}, not {_quoted(key)}" for key, name in renamed.items()]
    words += [
        _fault(fault, getattr(form, "not_keys", {}))
        for fault in faults
        if fault["type"] not in ("missing", "extra_forbidden")
        or str(fault["loc"][-1]) not in {*renamed, *renamed.values()}
    ]
    return "; ".join(words)


def _fault(fault: Mapping[str, Any], not_keys: Mapping[str, str]) -> str:
    key, value, limits = _quoted(".".join(map(str, fault["loc"]))), fault["input"], fault.get("ctx", {})
    if (kind := _KINDS.get(fault["type"])) is not None:
        return _wrong_kind(key, value, kind)
    match fault["type"]:
        case "missing":
            return f"the key {key} is missing"
        case "extra_forbidden":
            return f"the key {key} {not_keys.get(str(fault['loc'][-1]), 'is not part of the form; leave it out')}"
        case "less_than_equal":
            return f"{key} is {_quoted(value)}, but the most is {limits['le']}"
        case "greater_than_equal":
            return f"{key} is {_quoted(value)}, but the least is {limits['ge']}"
        case "literal_error":
            return f"{key} is {_quoted(value)}, but it has to be {limits['expected'].replace(chr(39), chr(34))}"
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{key}: {message} (given: {_quoted(value)})" if fault["loc"] else message


def _wrong_kind(key: str, value: Any, kind: str) -> str:
    if isinstance(value, str) and kind != _KINDS["string_type"] and _is_json(value):
        return f"{key} is {_quoted(value)}, a text; write {kind} without quotes"
    if isinstance(value, float) and value.is_integer():
        return f"{key} is {_quoted(value)}; write {kind} without a decimal point"
    return f"{key} is {_quoted(value)}, but it has to be {kind}"


def _is_json(text: str) -> bool:
    """Whether a text is a number or a truth in JSON."""
    try:
        return isinstance(json.loads(text), int | float)
    except (ValueError, RecursionError):
        return False


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…"
