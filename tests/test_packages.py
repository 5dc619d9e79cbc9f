"""The packages of this project as wheels: each adds its names to the core, and the core says which one lacks."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.plugins import ROOT

SATELLITES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
pytestmark = pytest.mark.slow("tests/test_registry.py")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of each package."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, *SATELLITES):
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(build, cwd=source, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All libraries of this environment but ours, which are there as a checkout."""
    folder = tmp_path_factory.mktemp("libraries")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not entry.name.startswith(("labmates", "_labmates")) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    return folder


def installed(folder: Path, libraries: Path, *wheels: Path) -> Path:
    """The command line of an environment of its own with these wheels."""
    venv.create(folder, with_pip=False)
    uv, python = Path(sys.executable).with_name("uv"), folder / "bin" / "python"
    install: list[str | Path] = [uv, "pip", "install", "--offline", "--no-deps", "--python", python]
    subprocess.run([*install, *wheels], check=True, capture_output=True)
    [own] = folder.glob("lib/python*/site-packages")
    (own / "libraries.pth").write_text(f"{libraries}\n")
    return folder / "bin" / "labmates"


def told(command: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a command says, in a process without the paths of this one."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([command, *arguments], capture_output=True, text=True, env=clean, cwd=command.parent)


def declared(source: Path, group: str) -> Mapping[str, str]:
    """The entry points of a package in a group."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    points: Mapping[str, str] = project["entry-points"].get(group, {})
    return points


def test_all_wheels_together_have_the_verbs_of_all(wheels: Path, libraries: Path, tmp_path: Path) -> None:
    command = installed(tmp_path / "all", libraries, *wheels.glob("*.whl"))
    found = subprocess.run(
        [command.with_name("python"), "-c", "import labmates.strategies; print(labmates.__file__)"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    ).stdout  # fmt: skip
    assert found.startswith(str(tmp_path)), "the wheel is tested, not the checkout"
    listed = told(command, "--help").stdout
    for verb in (verb for source in SATELLITES for verb in declared(source, "labmates.verbs")):
        assert "/" in verb or f"\n  {verb} " in listed
        done = told(command, *verb.split("/"), "--help")
        assert (done.returncode, done.stderr) == (0, "")


def test_the_core_alone_says_which_package_to_install(wheels: Path, libraries: Path, tmp_path: Path) -> None:
    [core] = wheels.glob("labmates-*.whl")
    command = installed(tmp_path / "core", libraries, core)
    listed = told(command, "--help")
    assert (listed.returncode, listed.stderr) == (0, "")
    commands = {"labmates.verbs": (), "labmates.experiments": ("run",), "labmates.analyses": ("analyze",)}
    for source in SATELLITES:
        for group, before in commands.items():
            for name in declared(source, group):
                assert before or f"\n  {name} " not in listed.stdout
                done = told(command, *before, *name.split("/"))
                assert done.returncode == 2
                assert f"pip install {source.name}" in done.stderr
                if group == "labmates.verbs":
                    assert f"the verb '{name.replace('/', ' ')}' is in" in done.stderr
        for ending in declared(source, "labmates.exports"):
            assert f"pip install {source.name}" in told(command, "export", "--out", f"runs.{ending}").stderr
        for cluster in declared(source, "labmates.executors"):
            asked = told(command, "study", "run", "games-small", "--executor", cluster)
            assert f"pip install {source.name}" in asked.stderr
        for provider in (*declared(source, "labmates.providers"), *declared(source, "labmates.model_servers")):
            assert f"pip install {source.name}" in told(command, "models", "show", f"{provider}:any").stderr
