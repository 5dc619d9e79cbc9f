"""No file outside an experiment's folder names the experiment: neither its package nor its kinds."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from labmates.registry import entry_points
from labmates.workflows.protocol.experiment import EXPERIMENTS
from tests.support.plugins import ROOT

PACKAGE = ROOT / "labmates"
SATELLITES = "|".join(path.parent.name.replace("-", "[-_]") for path in ROOT.glob("packages/*/pyproject.toml"))
OURS = [point.value for [point] in entry_points(tuple(sys.path))["labmates.experiments"].values()]
FOLDERS = sorted(value.split(".")[2] for value in OURS if value.startswith("labmates.workflows."))
OF_FOLDERS = re.compile(rf"\bworkflows[./]({'|'.join(FOLDERS)})\b")
WORDS = {name for kind in EXPERIMENTS.names() for name in (kind, f"{kind}s")} - {
    "game",
    "games",
}  # words of many meanings
ALLOWED = {
    "agents": "prompts and players of experiments speak of what is played",
    "games": "dilemmas and tournaments are games, and games have strategies",
    "mechanisms": "mechanisms are put around dilemmas",
    "tasks": "tasks are of science",
    "cli/catalogue": "tasks are of science",
    "cli/complete.py": "names of dilemmas are completed",
    "stats": "replicator dynamics are the evolution of populations",
    "workflows/analyses": "an analysis of several experiments says which",
    "records/migrations": "what stores of earlier versions held",
}
"""Folders and modules in which such words have a meaning of their own."""
COMMAND = re.compile(r"labmates (run|study|report|analyze) ")


def sources() -> Iterator[Path]:
    """All modules outside the folders of experiments."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if not any((PACKAGE / "workflows" / folder) in path.parents for folder in FOLDERS):
            yield path


def named(tree: ast.AST) -> Iterator[str]:
    """The words of names and texts in code; docstrings and examples of commands are prose."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in prose and not COMMAND.search(text):
                yield from re.findall(r"\w+", text.lower())
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield from name.lower().split("_")


def test_there_are_experiments_and_modules_to_look_at() -> None:
    assert {"science", "games", "dilemmas", "tournament"} <= set(FOLDERS)
    assert len(list(sources())) > 200


def test_no_file_outside_names_the_package_of_an_experiment() -> None:
    assert [str(path) for path in sources() if OF_FOLDERS.search(path.read_text("utf-8"))] == []


def test_no_file_of_the_core_names_another_package_of_this_project() -> None:
    assert SATELLITES
    assert [str(path) for path in PACKAGE.rglob("*.py") if re.search(SATELLITES, path.read_text("utf-8"))] == []


def test_no_code_outside_names_a_kind_of_experiment() -> None:
    chosen = [path for path in sources() if not any((PACKAGE / place) in (path, *path.parents) for place in ALLOWED)]
    words = {path: WORDS & set(named(ast.parse(path.read_text("utf-8")))) for path in chosen}
    assert {str(path): found for path, found in words.items() if found} == {}
