"""What the cache holds about files of strategies is found for the same text, game and rules alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labmates_populations.engine import verdicts
from labmates_populations.engine.checks import Checked
from labmates_populations.engine.file_cache import FileCache, _rules
from labmates_populations.engine.kernel.source import Found

FOUND = Found("Strategy_SELFISH_1", 3, 9, "selfish", 1, False, True, 2, ())
KEPT = [Checked(FOUND, ("took too long",), False, 1.5)]


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


def test_the_oldest_files_go_when_there_is_too_much(folder: Path) -> None:
    cache = FileCache("numbers", 3 * (10 + 32))
    for number in range(5):
        cache.keep(bytes(10), str(number))
    assert len(list((folder / "numbers").iterdir())) == 3
    assert [cache.known(str(number)) is None for number in (0, 4)] == [True, False]
    cache.keep(bytes(100), "large")
    assert [cache.known(key) for key in ("4", "large")] == [None, bytes(100)]


@pytest.mark.parametrize(
    "harm", [lambda data: data[:-1], lambda data: data[:-1] + b"?", lambda data: b"", lambda data: data * 2]
)
def test_what_is_damaged_counts_as_absent(folder: Path, harm: Callable[[bytes], bytes]) -> None:
    cache = FileCache("texts", 1000)
    cache.keep(b"some text", "key")
    [file] = (folder / "texts").iterdir()
    file.write_bytes(harm(file.read_bytes()))
    assert cache.known("key") is None
    cache.keep(b"some text", "key")
    assert cache.known("key") == b"some text"


def test_a_cache_that_can_not_be_written_is_done_without(folder: Path) -> None:
    folder.write_text("no folder")
    verdicts.keep_verdicts("text", "public-goods", KEPT)
    assert verdicts.known_verdicts("text", "public-goods") is None
