"""Tables on the screen: they fit into 80 columns, also through a pipe, and no word of them is cut."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import labmates as package
from labmates.cli.grid import Field, laid_out, wrapped
from labmates.workflows.protocol.analysis import ANALYSES
from tests.support.command_line import Labmates
from tests.support.recorded import Recorded

NAMES = ("8df3d004af", "scripted:fair-share", "common-pool-sanctions", "completed")
SCREEN = 80


def table(**columns: list[str]) -> list[Field]:
    return [
        Field(name, tuple(cells), cells[0][0].isdigit() and name != "run", name == "once")
        for name, cells in columns.items()
    ]


def printed(fields: list[Field], room: int) -> list[str]:
    head, body = laid_out(fields, room)
    return [*head, *body]


def test_what_fits_is_a_row_and_constant_columns_become_a_caption() -> None:
    fields = table(run=["a1", "b2"], kind=["game", "game"], score=["0.5 [0.4, 0.6]", "10.5 [9.4, 10.6]"])
    assert printed(fields, 40) == [
        "run  kind             score",
        "a1   game    0.5 [0.4, 0.6]",
        "b2   game  10.5 [9.4, 10.6]",
    ]
    assert printed(fields, 24) == [
        "In all rows: kind game",
        "run             score",
        "a1     0.5 [0.4, 0.6]",
        "b2   10.5 [9.4, 10.6]",
    ]
    assert printed(fields, 20)[2:] == [
        "run        score",
        "a1           0.5",
        "      [0.4, 0.6]",
        "b2          10.5",
        "     [9.4, 10.6]",
    ]


def test_what_is_too_wide_becomes_sections_below_what_they_repeat_then_records() -> None:
    fields = table(
        once=["x", "x", "y"],
        run=["8df3d004af", "8df3d004ag", "8df3d004ah"],
        model=["scripted:a", "scripted:b", "scripted:bc"],
        score=["1", "22", "3"],
    )
    assert printed(fields, 32) == [
        "  run         model        score",
        "once: x",
        "  8df3d004af  scripted:a       1",
        "  8df3d004ag  scripted:b      22",
        "once: y",
        "  8df3d004ah  scripted:bc      3",
    ]
    assert printed(fields, 30) == [
        "once: x",
        "  run: 8df3d004af",
        "    model: scripted:a",
        "    score:  1",
        "  run: 8df3d004ag",
        "    model: scripted:b",
        "    score: 22",
        "once: y",
        "  run: 8df3d004ah",
        "    model: scripted:bc",
        "    score:  3",
    ]  # fmt: skip


CELLS = st.sampled_from([*NAMES, "", "a text of several words, longer than a name"])
ROWS = st.lists(st.lists(CELLS, min_size=6, max_size=6), min_size=1, max_size=4)


@given(ROWS, st.integers(34, 200))
def test_lines_fit_and_words_are_whole_at_any_width(rows: list[list[str]], room: int) -> None:
    fields = [Field(f"heading {place}", cells, place % 2 == 0) for place, cells in enumerate(zip(*rows, strict=True))]
    lines = printed(fields, room)
    assert all(len(line) <= room for line in lines)
    shown = re.findall(r"[^\s;]+", "\n".join(lines))
    assert {word for row in rows for cell in row for word in cell.split()} <= set(shown)


def test_the_rest_of_an_item_stands_below_its_second_column() -> None:
    assert wrapped("ok   size  as large as it should be", 24) == [
        "ok   size  as large as",
        "           it should be",
    ]
    assert wrapped("/a/path/longer/than/the/line", 10) == ["/a/path/longer/than/the/line"]


CATALOGUES = ("tasks", "games", "dilemmas", "mechanisms", "models", "judges", "organisations", "study list")
OF_STORES = ("runs", "study status", *(f"analyze {name}" for name in ANALYSES.names()))
SAMPLE = Path(package.__file__).parent / "viewer" / "sample.sqlite"


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\s;:,]+", text))


def holds_on_a_screen(labmates: Labmates, *command: str) -> bool:
    """Check a verb's output at 80 columns against a wide one, and tell whether it had a table."""
    wide = labmates(*command, COLUMNS="1000")
    if wide.code == 2:  # its runs are not in this store
        return False
    narrow = labmates(*command, COLUMNS="80")
    quoted = wide.out.splitlines() if command[0] == "show" else []  # messages are shown as recorded
    lines = [line for line in narrow.out.splitlines() if line not in quoted]
    assert [line for line in lines if len(line) > SCREEN and " " in line.strip()] == []
    assert words(wide.out) <= words(narrow.out)
    if command[0] == "analyze":
        assert narrow.out.partition("\n\n")[0].endswith(".")  # the verdict stands first
    return narrow.out.count("\n") > 1


@pytest.mark.parametrize("verb", CATALOGUES)
def test_catalogues_fit_on_a_screen(labmates: Labmates, verb: str) -> None:
    assert holds_on_a_screen(labmates, *verb.split())


@pytest.mark.slow("tests/cli/test_tables.py")
def test_every_table_of_a_store_fits_on_a_screen(labmates: Labmates, recorded: Recorded, tmp_path: Path) -> None:
    sample = shutil.copy(SAMPLE, tmp_path / "sample.db")
    stores = {"sample": f"sqlite:///{sample}", "recorded": recorded.store.url}
    shown = {
        (verb, name)
        for verb in OF_STORES
        for name, url in stores.items()
        if holds_on_a_screen(labmates, *verb.split(), "--store", url)
    }
    assert {verb for verb, _ in shown} >= {"runs", *(f"analyze {name}" for name in ("scores", "usage"))}
    for run in recorded.ids.values():
        holds_on_a_screen(labmates, "show", run, "--store", recorded.store.url)


def test_a_pipe_has_80_columns(labmates: Labmates, recorded: Recorded) -> None:
    done = labmates("runs", "--store", recorded.store.url, COLUMNS="")
    assert max(map(len, done.out.splitlines())) <= SCREEN
    assert words(done.out) >= set(recorded.ids.values())
