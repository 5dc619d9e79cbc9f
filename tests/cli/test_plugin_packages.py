"""Packages with plug-ins as users have them: installed beside labmates in an environment of their own.

The environment is new, and labmates and both packages are built and installed into it. What labmates depends on is
seen through a path file, as it stands in this environment: installing and compiling all of it once more takes longer
than a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.plugins import ROOT

EXAMPLE = ROOT / "examples" / "labmates-plugin-example"
UV = Path(sys.executable).with_name("uv")
OFFLINE = ("error sending request", "Could not connect", "dns error", "Network connectivity is disabled")

Run = Callable[..., subprocess.CompletedProcess[str]]


def _run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LABMATES", "OPENAI"))}
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=150, check=False)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the ``bin`` folder of a new environment with labmates, the example and a package that was just written."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "venv"], cwd=folder, check=True)
    binaries = folder / "venv" / "bin"
    paths = _run(binaries / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder)
    # The entry points of our other packages are found there, but not their code, which is installed as editable.
    satellites = map(str, (ROOT / "packages").glob("labmates-*"))
    linked = "\n".join([sysconfig.get_path("purelib"), *satellites])
    Path(paths.stdout.strip(), "dependencies.pth").write_text(linked)
    written = _run(Path(sys.executable).with_name("labmates"), "tasks", "new", "springs", folder=folder)
    assert written.returncode == 0, written.stderr
    constraints = ROOT / "requirements" / "constraints.txt"
    install = _run(
        UV, "pip", "install", "--python", binaries / "python", "--compile-bytecode", "--constraints", constraints,
        "--no-deps", ROOT, EXAMPLE, folder / "springs", folder=folder,
    )  # fmt: skip
    if install.returncode and any(sign in install.stderr for sign in OFFLINE):
        if "index" in os.environ.get("LABMATES_REQUIRE", "").split(","):
            pytest.fail("LABMATES_REQUIRE names 'index', but no index of packages can be reached", pytrace=False)
        pytest.skip("no index of packages can be reached, and what builds packages is not at hand")
    assert install.returncode == 0, install.stderr
    return binaries


@pytest.fixture
def command(environment: Path, tmp_path: Path) -> Run:
    """Run a command of the environment in an empty folder."""

    def run(name: str, *arguments: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return _run(environment / name, *arguments, folder=folder)

    return run


@pytest.mark.slow("tests/cli/test_cli_tasks.py")
def test_installed_plug_ins_are_listed_with_their_packages(command: Run, environment: Path) -> None:
    where = command("python", "-c", "import labmates; print(labmates.__file__)").stdout
    assert where.startswith(str(environment.parent))
    listed = command("labmates", "tasks")
    assert "Inhibitors of an enzyme  (labmates-plugin-example 1.0.0)" in listed.stdout
    assert "Springs  (labmates-springs 0.1.0)" in listed.stdout
    assert "ecology" in listed.stdout
    assert listed.stderr == ""
    assert "scripted:kineticist" in command("labmates", "models").stdout


@pytest.mark.slow("tests/tasks")
@pytest.mark.parametrize("name", ["inhibitors", "springs"])
def test_installed_tasks_pass_the_check(command: Run, name: str) -> None:
    checked = command("labmates", "tasks", "check", name, "--seeds", "2")
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.splitlines()[-1] == "passed: 0 errors, 0 warnings"


@pytest.mark.slow("tests/test_registry.py")
def test_the_example_passes_its_own_tests(command: Run) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:hypothesispytest")
    tested = command("python", "-m", "pytest", *options, str(EXAMPLE))
    assert tested.returncode == 0, tested.stdout


@pytest.mark.slow("tests/judges/test_panel.py")
def test_a_run_with_task_judge_and_baseline_of_a_plug_in_is_scored_by_all_judges(command: Run) -> None:
    arguments = (
        "--task",
        "inhibitors",
        "--model",
        "scripted:kineticist",
        "--judge",
        "uncertainty",
        "--difficulty",
        "easy",
    )
    done = command("labmates", "run", "science", *arguments, "--sandbox", "unsafe-local", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    scores = {(score["judge"], score["metric"]): score["value"] for score in record["scores"]}
    assert record["status"] == "completed"
    assert record["models"] == ["scripted:kineticist"]
    assert scores["verified", "accuracy"] > 0.8
    assert scores["uncertainty", "uncertainty"] > 0.3
