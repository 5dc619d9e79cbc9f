"""The page of results with small models: what was played, what is missing, and nothing that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.results import found, page, play_missing, plays
from labmates.records.store import Store


def test_the_page_shows_what_was_played_and_names_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/results.db"
    monkeypatch.setattr("benchmarks.results.BASELINES", ("scripted:defect",))
    catalog, models, missing = found(["scripted:random", "gguf:no-such-file.gguf"])
    planned = list(plays(models, ["common-pool", "public-goods"], with_lab=True))
    games = [play for play in planned if play.kind == "game"]
    for _ in range(2):  # what the store holds is not played again
        play_missing(url, games[:-1], catalog)
    with Store(url) as store:
        assert len([*store.runs()]) == 6
    text = page(url, planned, missing)
    assert "6 runs." in text
    assert "- Not measured with scripted:random: public-goods (2 of 2 runs), the lab alone (1 of 1 runs)" in text
    assert "Not measured with scripted:defect" not in text
    assert "Left out: " in text
    assert "no-such-file.gguf" in text
    assert "Not measured yet: language models" in text
    [header, _, *rows] = [line for line in text.split("## Cooperation")[1].splitlines() if line.startswith("|")][:4]
    assert header.startswith("| models | common-pool | public-goods | failed replies | tokens | seconds |")
    assert rows[0].startswith("| scripted:defect | 0.00 (0%) | 0.00 (0%) | 0% | 3,480 | ")
    assert rows[1].startswith("| scripted:random | 0.59 (0%) | – | 0% | 2,955 | ")
    assert text.count("No runs.") == 1
    assert "| ecology, four teams | 60 |" in text
