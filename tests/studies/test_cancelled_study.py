from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from labmates.records.claims import Claims
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.source import read_study
from labmates.studies.spec import read_spec
from labmates.studies.study import enter, work_on

STUDY = """
name: quiet
kind: science
models: [scripted:silent]
fixed: {task: anomaly, difficulty: easy, solo: true}
replicates: 1
sandbox: unsafe-local
"""


async def test_runs_that_are_claimed_while_the_worker_is_cancelled_are_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    spec = read_spec(read_study(STUDY, "quiet.yaml"))
    enter(store, spec)
    loop, real = asyncio.get_running_loop(), Claims.next

    def claim(self: Claims, study: str, most: int, **how: Any) -> list[RunRecord]:
        claimed = real(self, study, most, **how)
        loop.call_soon_threadsafe(working.cancel)
        return claimed

    monkeypatch.setattr(Claims, "next", claim)
    working = asyncio.create_task(work_on(store, spec))
    with pytest.raises(asyncio.CancelledError):
        await working
    counts = study_counts(store, spec.name)
    assert (counts.of("running"), counts.of("interrupted")) == (0, 1)
    store.close()
