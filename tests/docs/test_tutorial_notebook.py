"""The tutorial as a notebook runs from its first cell to its table, in a real kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.docs.walk import NO_ENGINE
from tests.support.plugins import ROOT


def notebook() -> Any:
    return nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)  # type: ignore[no-untyped-call]


def cells_of(notebook: Any) -> list[Any]:
    """Its cells of code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_cells_up_to_the_lab_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LABMATES_STORE", raising=False)
    names: dict[str, Any] = {}
    codes = [cell.source for cell in cells_of(notebook())]
    lab = next(number for number, code in enumerate(codes) if '"science"' in code)
    for code in codes[:lab]:
        exec(compile(code, "tutorial.ipynb", "exec"), names)
    assert {run.status for run in names["runs"]} == {"completed"}
    assert len(names["runs"]) == names["plan"].runs == 36


@pytest.mark.slow("tests/docs/test_tutorial_notebook.py")
@pytest.mark.needs("bubblewrap")
def test_the_notebook_ends_with_a_table_that_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tutorial = notebook()
    cells = cells_of(tutorial)
    assert not any(cell.outputs for cell in cells)  # what is stored could be out of date
    monkeypatch.setenv("DOCKER_HOST", NO_ENGINE)
    monkeypatch.delenv("LABMATES_STORE", raising=False)
    NotebookClient(tutorial, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [cell.outputs[-1].data for cell in cells if cell.outputs and "data" in cell.outputs[-1]]
    assert "<caption>game" in shown[0]["text/html"]
    assert "<svg" in shown[1]["text/html"] or "data:image/svg+xml" in shown[1]["text/html"]
    rows = shown[-1]["text/plain"].splitlines()
    assert rows[0].split() == ["condition.game", "o-ring", "public-goods", "weakest-link", "mean"]
    assert [row.split()[0].removeprefix("scripted:") for row in rows[2:]] == [
        "cooperate",
        "fair-share",
        "random",
        "defect",
    ]
