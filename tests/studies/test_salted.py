"""Nothing touches a run's data set with another salt than the run's own, or with none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import labmates
from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.fork import fork
from labmates.studies.judging import judgeable
from labmates.studies.replay import replay
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.studies.spec import StudySpec, read_spec
from labmates.studies.study import enter, work_on
from labmates.tasks.salt import VARIABLE, salt_fingerprint
from labmates.util.bounded_yaml import Source

SALT, OTHER = "correct horse battery staple", "another horse, another staple"
CONDITION: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "model": "scripted:silent", "solo": True}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'salted.db'}") as store:
        yield store


@pytest.fixture
async def salted(store: Store, monkeypatch: pytest.MonkeyPatch) -> RunRecord:
    """Return a run that was made with the salt, which stays in use."""
    monkeypatch.setenv(VARIABLE, SALT)
    return await played(store)


async def played(store: Store) -> RunRecord:
    [run] = await labmates.arun("science", store=store.url, settings={"sandbox": "unsafe-local"}, **CONDITION)
    return run


USES: dict[str, Callable[[Store, RunRecord], Awaitable[Any]]] = {
    "replay": replay,
    "fork": lambda store, run: fork(store, run.id, at=0, changes={"budget": "0.4"}),
    "resume": lambda store, run: Session(store, RunSettings()).execute([run]),
    "judge": lambda store, run: labmates.ajudge([run.id], again=True, store=store.url),
}


@pytest.mark.parametrize("use", USES)
async def test_a_run_is_used_with_its_own_salt_alone(
    use: str, store: Store, salted: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = salt_fingerprint()
    assert salted.settings["salt"] == mark
    for salt, says in ((None, f"private salt {mark}; set LABMATES_SALT"), (OTHER, f"private salt {mark}, not that of")):
        monkeypatch.setenv(VARIABLE, salt or "")
        with pytest.raises(UsageError, match=f"run '{salted.id}' uses the {says}") as error:
            await USES[use](store, salted)
        assert SALT not in str(error.value)
        assert OTHER not in str(error.value)


@pytest.mark.parametrize("use", USES)
async def test_a_public_run_is_not_used_with_a_salt(use: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await played(store)
    assert run.settings["salt"] is None
    monkeypatch.setenv(VARIABLE, SALT)
    with pytest.raises(UsageError, match=r"uses no salt, and LABMATES_SALT is set .*; unset it"):
        await USES[use](store, run)


async def test_with_its_salt_a_run_is_replayed_forked_and_judged(store: Store, salted: RunRecord) -> None:
    found = await replay(store, salted)
    assert found.is_same, found.differences
    forked = await fork(store, salted.id, at=0, changes={"budget": "0.4"}, settings=RunSettings(sandbox="unsafe-local"))
    assert forked.settings["salt"] == salted.settings["salt"]
    assert judgeable([salted], strict=True) == [salted]
    [judged] = await labmates.ajudge([salted.id], again=True, store=store.url)
    before = {(score.judge, score.metric): score.value for score in store.scores(salted.id)}
    assert {(score.judge, score.metric): score.value for score in judged.added}.items() <= before.items()


async def test_the_salt_stands_nowhere_in_the_store(store: Store, salted: RunRecord, tmp_path: Path) -> None:
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())  # noqa: ASYNC240
    assert salted.id.encode() in held
    assert SALT.encode() not in held


def study(**changes: Any) -> StudySpec:
    data = {
        "name": "s",
        "kind": "science",
        "models": ["scripted:silent"],
        "fixed": {name: value for name, value in CONDITION.items() if name != "model"},
        "replicates": 1,
        "sandbox": "unsafe-local",
    }
    return read_spec(Source("s.yaml", {**data, **changes}, {}))


async def test_a_study_has_one_salt(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SALT)
    enter(store, study())
    for salt in ("", OTHER):
        monkeypatch.setenv(VARIABLE, salt)
        with pytest.raises(UsageError, match="study 's' uses the private salt"):
            await work_on(store, study())
        with pytest.raises(UsageError, match="study 's' uses the private salt"):
            enter(store, study(replicates=2))
    monkeypatch.setenv(VARIABLE, SALT)
    assert await work_on(store, study()) == 1
    assert enter(store, study(replicates=2)).new == 1


async def test_games_know_no_salt(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SALT)
    [run] = await labmates.arun("game", store=store.url, game="public-goods", model="scripted:cooperate")
    assert run.settings["salt"] is None
    monkeypatch.setenv(VARIABLE, OTHER)
    assert (await replay(store, run)).is_same
