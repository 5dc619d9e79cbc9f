"""The tutorial as a notebook runs from its first cell to its table, in a real kernel."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.docs.walk import NO_ENGINE
from tests.support.plugins import ROOT


@pytest.mark.slow("tests/test_api.py")
@pytest.mark.needs("bubblewrap")
def test_the_notebook_ends_with_a_table_that_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells)  # what is stored could be out of date
    monkeypatch.setenv("DOCKER_HOST", NO_ENGINE)
    monkeypatch.delenv("LABMATES_STORE", raising=False)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
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
