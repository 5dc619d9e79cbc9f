"""The findings schema of a task in words, for the people and models that write reports."""

from __future__ import annotations

import json
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from labmates.tasks.base import Task

_PLAIN = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def findings_schema_text(task: Task[Any, Any]) -> str:
    """Return the fields of a task's findings with type, meaning and unit, and an example of the block's form."""
    examples = {name: field.examples[0] for name, field in task.findings.model_fields.items() if field.examples}
    lines = [
        "Fields of the findings block (leave out what was not found out; null says nothing either):",
        *_fields(task.findings, ""),
        "Example of the form only, with made-up values:",
        "```findings",
        json.dumps(examples, ensure_ascii=False),
        "```",
    ]
    return "\n".join(lines)


def _fields(model: type[BaseModel], indent: str) -> list[str]:
    lines = []
    for name, field in model.model_fields.items():
        lines.append(f"{indent}- {name} ({type_text(field.annotation)}): {field.description}")
        inner = _inner_model(field.annotation)
        if inner is not None:
            lines += _fields(inner, indent + "  ")
    return lines


def type_text(annotation: Any) -> str:
    """Return the name of a type as JSON has it: ``list[str] | None`` is "list of text"."""
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
    return next((found for part in get_args(annotation) if (found := _inner_model(part))), None)
