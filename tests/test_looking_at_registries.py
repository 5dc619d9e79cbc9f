"""Looking at all entries of a registry, whatever the plug-ins among them do."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from labmates.errors import UsageError
from labmates.registry import Registry, look_at_all, time_limit
from tests.support.plugins import install


def test_a_plug_in_that_hangs_is_told_and_the_others_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {"labmates.things": {"a": "sleepy:thing", "b": "labmates.errors:explain"}}
    monkeypatch.syspath_prepend(install(tmp_path, "odd-things", points, {"sleepy": "while True: pass"}))
    monkeypatch.setattr("labmates.registry.MOST_SECONDS", 0.2)
    things: Registry[object] = Registry("thing", "labmates.things")
    things.register("c", UsageError)
    warnings: list[str] = []
    assert look_at_all(things, lambda name: things.get(name) and name, warnings.append) == {"b": "b", "c": "c"}
    [told] = warnings
    assert "the thing 'a' (odd-things 1.0, entry point labmates.things: a = sleepy:thing) can't be imported" in told
    assert "it did not end within 0.2 s" in told


def test_errors_of_our_own_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"labmates.things": {"c": "labmates.errors:Nothing"}}
    monkeypatch.syspath_prepend(install(tmp_path, "labmates", points, {}))
    things: Registry[object] = Registry("thing", "labmates.things")
    with pytest.raises(AttributeError):
        look_at_all(things, things.get, print)


def test_a_time_limit_leaves_no_alarm_behind() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError), time_limit(0.05):
        signal.pause()
    with time_limit(60):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before
