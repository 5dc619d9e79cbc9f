"""A step of the core's build: the table of what this project's other packages bring, from their entry points.

With it the core tells which package to install for an entry that it does not have, and knows these packages as its own.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SatelliteTable(BuildHookInterface[Any]):
    """Writes ``labmates/_satellites.json``: the name of a package by group and name of an entry point."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the table, unless this is built from a source distribution, which has it."""
        projects = sorted(Path(self.root, "packages").glob("*/pyproject.toml"))
        table: dict[str, dict[str, str]] = {}
        for file in projects:
            project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
            for group, points in project.get("entry-points", {}).items():
                table.setdefault(group, {}).update(dict.fromkeys(points, project["name"]))
        if projects:
            text = json.dumps(table, indent=1, sort_keys=True) + "\n"
            Path(self.root, "labmates", "_satellites.json").write_text(text, encoding="utf-8")
