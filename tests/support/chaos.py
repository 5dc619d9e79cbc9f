"""Trouble for those who work on a study: processes that are killed, and a database that goes away."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import time
from contextlib import closing, suppress

import sqlalchemy as sa

from labmates.records.run import ENDED
from labmates.records.store import Store
from labmates.records.studies import study_counts

_LONGEST_PAUSE, _LONGEST_LOCK = 0.5, 2.0
_PATIENCE_SECONDS = 300.0


class Chaos:
    """Kills workers of a study and cuts their connections, spread over the time that the study takes.

    Parameters
    ----------
    kills
        How many processes are killed with SIGKILL while they hold runs.
    cuts
        How often all connections to the database are cut; SQLite, which has none, is locked for up to two seconds.
    """

    def __init__(self, store: Store, study: str, *, runs: int, kills: int, cuts: int, seed: int = 0) -> None:
        self._store = store
        self._study = study
        self._runs = runs
        self._random = random.Random(seed)
        self._troubles = [self._kill] * kills + [self._cut] * cuts
        self._random.shuffle(self._troubles)
        self.killed = 0
        self.cut = 0

    async def make(self) -> None:
        """Make all the trouble; the study goes on meanwhile."""
        for number, trouble in enumerate(self._troubles):
            await asyncio.to_thread(self._wait, self._runs * number // (len(self._troubles) + 1))
            await asyncio.sleep(self._random.uniform(0, _LONGEST_PAUSE))
            await asyncio.to_thread(trouble)

    def _wait(self, ended: int) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while self._ended() < ended:
            assert time.monotonic() < end, f"no {ended} runs have ended"
            time.sleep(0.05)

    def _ended(self) -> int:
        """The number of runs that have ended; after the last one there is nobody to disturb."""
        return study_counts(self._store, self._study).of(*ENDED)

    def _kill(self) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while self._ended() < self._runs:
            assert time.monotonic() < end, "no worker holds a run"
            workers = sorted(study_counts(self._store, self._study).workers)
            with suppress(ProcessLookupError, IndexError):
                os.kill(int(self._random.choice(workers).rsplit("-", 2)[1]), signal.SIGKILL)
                self.killed += 1
                return
            time.sleep(0.02)

    def _cut(self) -> None:
        self.cut += 1
        if (path := self._store.sqlite_path) is not None:
            with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                time.sleep(self._random.uniform(0, _LONGEST_LOCK))
            return
        # Not those of the engine itself: a vacuum runs as a superuser.
        ours = "datname = current_database() and usename = current_user and pid <> pg_backend_pid()"
        cut = sa.text(f"select count(pg_terminate_backend(pid)) from pg_stat_activity where {ours}")
        end = time.monotonic() + _PATIENCE_SECONDS
        while self._ended() < self._runs:
            if self._store.read(lambda connection: connection.execute(cut).scalar_one()):
                return
            assert time.monotonic() < end, "nobody is connected"
            time.sleep(0.02)
