"""The built-in organisations: a YAML file each, read when it is first asked for."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import read_organisation


@cache
def __getattr__(name: str) -> Organisation:
    path = files(__name__).joinpath(f"{name}.yaml")
    if not path.is_file():
        raise AttributeError(name)
    return read_organisation(path)
