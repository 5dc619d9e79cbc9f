"""The findings schema of a task in words, for writers of reports."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from labmates.tasks.base import Task
from labmates.util.forms import each_part, schema_words

MOST_DEPTH = 6
"""Depth limit of nested models."""
_PLAIN = {int: "whole number", float: "number", str: "text", bool: "true or false"}
_OMITTED = {"$defs", "anyOf", "title", "default", "examples", "discriminator"}


def findings_schema_text(task: Task[Any, Any]) -> str:
    """The fields of a task's findings with type, meaning and unit, and an example of the block's form."""
    lines = [
        "Fields of the findings (leave out what was not found out; null says nothing either):",
        findings_fields_text(task),
        "The form, with your values in place of the words:",
        findings_example(task),
    ]
    return "\n".join(lines)


def findings_fields_text(task: Task[Any, Any]) -> str:
    """The fields of a task's findings with type, meaning and unit, one on a line."""
    model: type[BaseModel] = task.findings
    return "\n".join(_fields(model, ""))


def findings_example(task: Task[Any, Any]) -> str:
    """A findings block with words in place of the values, so that it can't be stated as it is."""
    model: type[BaseModel] = task.findings
    return _example(model)


@lru_cache(maxsize=256)  # it stands in each report's order, and in what that order would cost
def _example(model: type[BaseModel]) -> str:
    return f"```findings\n{schema_words(findings_parameters(model))}\n```"


def findings_parameters(model: type[BaseModel]) -> dict[str, Any]:
    """The fields of findings as a JSON schema without references, for a tool's parameters.

    Every field is optional; null is not allowed, since an omitted field means the same.
    """
    schema = model.model_json_schema()
    parameters = _plain_schema(schema, schema.get("$defs", {}), MOST_DEPTH)
    return {"type": "object", "properties": parameters.get("properties", {}), "additionalProperties": False}


def field_lines(name: str, model: type[BaseModel], indent: str = "") -> list[str]:
    """The allowed content of a field: its type and meaning, and those of the fields of its objects."""
    field = model.model_fields[name]
    inner = _inner_model(field.annotation)
    lines = [f"{indent}- {name} ({type_text(field.annotation)}): {field.description}"]
    return lines if inner is None else [*lines, *_fields(inner, indent + "  ")]


def _plain_schema(schema: Mapping[str, Any], defined: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if "$ref" in schema:
        schema = {**defined[schema["$ref"].rpartition("/")[2]], **{k: v for k, v in schema.items() if k != "$ref"}}
    if depth == 0:
        return {}
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        schema = {**options[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
        return _plain_schema(schema, defined, depth)
    plain = {key: value for key, value in schema.items() if key not in _OMITTED}
    plain |= {"anyOf": options} if options else {}
    return each_part(plain, partial(_plain_schema, defined=defined, depth=depth - 1))


@lru_cache(maxsize=256)
def _fields(model: type[BaseModel], indent: str) -> tuple[str, ...]:
    return tuple(line for name in model.model_fields for line in field_lines(name, model, indent))


def type_text(annotation: Any) -> str:
    """A type in words, by its JSON form: ``list[str] | None`` is "list of text"."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_text(parts[0])
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(part) for part in parts if part is not type(None))
    if origin is Literal:
        return " or ".join(json.dumps(part) for part in parts)
    if origin in (list, tuple, set, frozenset):
        return f"list of {type_text(parts[0])}"
    if origin is dict:
        return f"object from text to {type_text(parts[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "object"
    return _PLAIN.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((inner for part in get_args(annotation) if (inner := _inner_model(part))), None)
