"""Parameters as tables, from the pydantic models that declare them: name, type with bounds, default, description."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from sitegen.markup import cell, code, table

Schema = Mapping[str, Any]
_WORDS = {"integer": "integer", "number": "number", "string": "text", "boolean": "true or false", "null": "nothing"}


def fields_table(model: type[BaseModel], option: Callable[[str], str] | None = None) -> str:
    """Return one row for each field; `option` gives the command-line option of one, if there are options."""
    schema = model.model_json_schema(mode="validation")
    definitions = schema.get("$defs", {})
    rows = []
    for name, field in schema["properties"].items():
        shown = f"`{name}`" + (f"<br>{code(flag)}" if option and (flag := option(name)) else "")
        default = _default(field, required=name in schema.get("required", []))
        rows.append([shown, _type(field, definitions), default, cell(field.get("description", ""))])
    return table(["Parameter", "Type", "Default", "Description"], rows)


def field_types(model: type[BaseModel]) -> dict[str, str]:
    """Return the type of each field."""
    schema = model.model_json_schema(mode="validation")
    return {name: _type(field, schema.get("$defs", {})) for name, field in schema["properties"].items()}


def _type(field: Schema, definitions: Schema) -> str:
    field = _resolved(field, definitions)
    if "anyOf" in field:
        parts = [part for part in field["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(_type(part, definitions) for part in parts))
    if "enum" in field:
        return ", ".join(code(str(value)) for value in field["enum"])
    if "const" in field:
        return code(str(field["const"]))
    kind = field.get("type")
    if kind == "array":
        return f"list of {_type(field.get('items', {}), definitions)}"
    if kind == "object":
        values = field.get("additionalProperties")
        return f"table of {_type(values, definitions)}" if isinstance(values, Mapping) else "table"
    return cell(_WORDS.get(str(kind), "any value") + _bounds(field))


def _resolved(field: Schema, definitions: Schema) -> Schema:
    while "$ref" in field:
        field = definitions[field["$ref"].rpartition("/")[2]]
    if list(field.get("allOf", [])):
        return _resolved(field["allOf"][0], definitions)
    return field


def _bounds(field: Schema) -> str:
    if "minimum" in field and "maximum" in field:
        return f", {field['minimum']} to {field['maximum']}"
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    return "".join(f", {said} {field[name]}" for name, said in words.items() if name in field)


def _default(field: Schema, *, required: bool) -> str:
    if required:
        return "**required**"
    default = field.get("default")
    if default is None or default in ([], {}, ""):
        return ""
    return code(default if isinstance(default, str) else json.dumps(default, ensure_ascii=False))
