"""Verdicts of earlier checks are found for the same text, game and rules alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from labmates.workflows.populations.engine import verdicts
from labmates.workflows.populations.engine.checks import Checked
from labmates.workflows.populations.engine.kernel.source import Found

FOUND = Found("Strategy_SELFISH_1", 3, 9, "selfish", 1, False, True, 2, ())
KEPT = [Checked(FOUND, ("took too long",), False, 1.5)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "labmates" / "verdicts"


def test_verdicts_belong_to_a_text_a_game_and_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts.keep_verdicts("text", "public-goods", KEPT)
    assert verdicts.known_verdicts("text", "public-goods") == KEPT
    assert verdicts.known_verdicts("text ", "public-goods") is None
    assert verdicts.known_verdicts("text", "common-pool") is None
    monkeypatch.setattr("numpy.__version__", "0")
    verdicts._rules.cache_clear()
    assert verdicts.known_verdicts("text", "public-goods") is None
    verdicts._rules.cache_clear()


def test_the_oldest_verdicts_are_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "_MOST_FILES", 3)
    for number in range(5):
        verdicts.keep_verdicts(str(number), "public-goods", KEPT)
    assert len(list(folder.iterdir())) == 3
    assert verdicts.known_verdicts("4", "public-goods") == KEPT


def test_a_cache_that_can_not_be_written_is_done_without(folder: Path) -> None:
    folder.parent.write_text("no folder")
    verdicts.keep_verdicts("text", "public-goods", KEPT)
    assert verdicts.known_verdicts("text", "public-goods") is None
