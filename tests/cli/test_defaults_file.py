from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from labmates.records.store import Store
from tests.support.command_line import Labmates

CONTENT = """
store = "sqlite:///mine.db"
[models]
max-retries = 1
[execution]
sandbox = "unsafe-local"
[run.game]
game = "o-ring"
model = "scripted:random"
"""


@pytest.fixture
def written(labmates: Labmates) -> Path:
    path = Path(labmates.folder) / "labmates.toml"
    path.write_text(CONTENT)
    return path


def test_the_file_gives_defaults_that_the_command_line_overrides(labmates: Labmates, written: Path) -> None:
    [record] = labmates("run", "game", "--json").records
    assert (record["condition"]["game"], record["models"]) == ("o-ring", ["scripted:random"])
    with Store(f"sqlite:///{labmates.folder}/mine.db", must_exist=True) as store:
        assert store.run(record["id"]).settings["models"]["max_retries"] == 1
    [record] = labmates("run", "game", "--json", "--model", "scripted:fair-share").records
    assert record["models"] == ["scripted:fair-share"]
    assert "[labmates.toml: 1]" in " ".join(labmates("run", "game", "--help").out.split())


def test_the_command_line_turns_off_what_the_file_turns_on(labmates: Labmates, written: Path) -> None:
    written.write_text(CONTENT + "deliberation = true\n")
    assert "--deliberation / --no-deliberation" in labmates("run", "game", "--help").out
    for more, deliberates in ((), True), (("--no-deliberation",), False):
        [record] = labmates("run", "game", "--json", *more).records
        assert record["condition"].get("deliberation", False) is deliberates


def test_a_resumed_run_keeps_its_own_condition(labmates: Labmates, written: Path) -> None:
    [record] = labmates("run", "game", "--json", "--model", "scripted:fair-share").records
    with Store(f"sqlite:///{labmates.folder}/mine.db") as store:
        ended = store.run(record["id"])
        store.create(replace(ended, id="stopped", status="interrupted", digest=None, metrics={}))
    [resumed] = labmates("run", "game", "--json", "--resume", "stopped").records
    assert (resumed["status"], resumed["models"]) == ("completed", ["scripted:fair-share"])
    assert resumed["metrics"] == record["metrics"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[models]", "[modles]"), "unknown 'modles'. Did you mean 'models'?"),
        (("[run.game]", "[run.gaem]"), "unknown 'run.gaem'. Did you mean 'game'?"),
        (('game = "o-ring"', 'gmae = "o-ring"'), "[run.game] has no 'gmae'. Did you mean 'game'?"),
        (('store = "sqlite:///mine.db"', "store = 3"), "store must be a URL in quotes"),
        (("[models]\nmax-retries = 1", "models = 3"), "models must be a table"),
        (("max-retries = 1", 'max-retries = "many"'), "--max-retries"),
        (("[models]", "[models"), "can't be read"),
    ],
)
def test_a_wrong_file_is_told(labmates: Labmates, written: Path, change: tuple[str, str], message: str) -> None:
    written.write_text(CONTENT.replace(*change))
    done = labmates("run", "game")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert message in done.err
