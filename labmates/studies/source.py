"""Studies by file or name."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from labmates.errors import UsageError, did_you_mean, telling
from labmates.studies import ready
from labmates.util.bounded_yaml import Source, read_source


def read_study(text: str, name: str) -> Source:
    """Read the YAML of a study, with `name` for errors.

    Raises `UsageError` if the text is not YAML, a key is repeated, or the top is not a mapping.
    """
    return read_source(text, name, "study", "kind: game")


def find_study(study: str | pathlib.Path | Mapping[str, Any]) -> Source:
    """The study in a file, a study that comes with labmates, by name, or the one that a mapping describes like a file.

    Raises `UsageError` if the study is missing or not YAML.
    """
    if isinstance(study, Mapping):
        try:
            return read_study(json.dumps(study), "the study")
        except TypeError as error:
            raise UsageError(
                f"the study: {error}; allowed are texts, numbers, true, false, lists and mappings"
            ) from None
    path, name = pathlib.Path(study), str(study)
    if path.suffix in (".yaml", ".yml") or path.exists():
        with telling(f"can't read the study '{name}'"):
            text = path.read_text(encoding="utf-8")
        source = read_study(text, name)
        source.data.setdefault("name", path.stem)
        return source
    if name in ready.names():
        return read_study(ready.text(name), f"{name}.yaml")
    raise UsageError(
        f"there is no file or ready study '{name}'.{did_you_mean(name, ready.names())} See: labmates study list"
    )
