"""What the cache holds about files of strategies is found for the same text, game and rules alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labmates_populations.engine import verdicts
from labmates_populations.engine.checks import Checked
from labmates_populations.engine.kernel.source import Found
from labmates_populations.engine.verdicts import _rules

FOUND = Found("Strategy_SELFISH_1", 3, 9, "selfish", 1, False, True, 2, (), "compiled", "")
KEPT = [Checked(FOUND, ("took too long",), False)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "labmates"


@pytest.fixture
def other_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr("numpy.__version__", "0")
        _rules.cache_clear()
        yield
    _rules.cache_clear()


def test_verdicts_belong_to_a_text_and_a_game() -> None:
    verdicts.keep_verdicts("text", "public-goods", KEPT)
    assert verdicts.known_verdicts("text", "public-goods") == KEPT
    assert verdicts.known_verdicts("text ", "public-goods") is None
    assert verdicts.known_verdicts("text", "common-pool") is None
    assert verdicts.known_verdicts("goods", "public-") is None


def test_verdicts_belong_to_rules(request: pytest.FixtureRequest) -> None:
    verdicts.keep_verdicts("text", "public-goods", KEPT)
    request.getfixturevalue("other_rules")
    assert verdicts.known_verdicts("text", "public-goods") is None


def test_the_oldest_verdicts_go_when_there_are_too_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts.keep_verdicts("0", "public-goods", KEPT)
    [first] = (folder / "verdicts").iterdir()
    monkeypatch.setattr(verdicts, "_MOST_BYTES", 3 * first.stat().st_size)
    for number in range(1, 5):
        for file in (folder / "verdicts").iterdir():
            os.utime(file, (file.stat().st_atime, file.stat().st_mtime - 10))
        verdicts.keep_verdicts(str(number), "public-goods", KEPT)
    known = [verdicts.known_verdicts(str(number), "public-goods") for number in range(5)]
    assert known == [None, None, KEPT, KEPT, KEPT]


@pytest.mark.parametrize("harm", [lambda data: data[:-1], lambda data: b"", lambda data: data * 2])
def test_damaged_verdicts_count_as_absent(folder: Path, harm: Callable[[bytes], bytes]) -> None:
    verdicts.keep_verdicts("text", "public-goods", KEPT)
    [file] = (folder / "verdicts").iterdir()
    file.write_bytes(harm(file.read_bytes()))
    assert verdicts.known_verdicts("text", "public-goods") is None
    verdicts.keep_verdicts("text", "public-goods", KEPT)
    assert verdicts.known_verdicts("text", "public-goods") == KEPT


def test_a_cache_that_can_not_be_written_is_done_without(folder: Path) -> None:
    folder.write_text("no folder")
    verdicts.keep_verdicts("text", "public-goods", KEPT)
    assert verdicts.known_verdicts("text", "public-goods") is None
