from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import claims, schema
from labmates.records.claims import Claims
from labmates.records.entering import Cell, Planned, enter_study
from labmates.records.events import ChargeEvent, Event
from labmates.records.run import RunRecord, new_run_id
from labmates.records.steps import LeaseLostError
from labmates.records.store import Store
from labmates.records.studies import StudyRecord, retry_failed, study_counts
from labmates.util.process_ids import this_worker, worker_state
from tests.support.steps import append, finish

ELSEWHERE = "elsewhere/0123456789abcdef/1-2-3"
"""A worker of another machine, of which nobody here knows whether it lives."""


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    yield store
    store.close()


def enter(store: Store, runs: int, cap: int | None = None, most: int = 100) -> None:
    """Enter a study of so many runs."""
    run = RunRecord("", "science", "k", 0, 0, {}, ["m"], "planned", study="s")
    wanted = [Planned(Cell("k", most, '["m"]', "{}"), replicate, 0, place=replicate) for replicate in range(runs)]
    enter_study(store, StudyRecord("s", {}, cap, 0.0), run, wanted, lambda _, replicate: replicate < runs)


def change(store: Store, run: RunRecord, **values: Any) -> None:
    """Change columns of a run behind everybody's back."""
    update = sa.update(schema.runs).where(schema.runs.c.id == run.id).values(values)
    store.write(lambda connection: connection.execute(update))


def charge(amount: int, step: str = "a") -> list[tuple[int, Event]]:
    return [(0, ChargeEvent(step=step, amount=amount))]


def dead_worker() -> str:
    """Return the name of a worker whose process has ended."""
    code = "from labmates.util.process_ids import this_worker; print(this_worker())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_worker_knows_itself_and_the_dead_of_its_machine_alone() -> None:
    assert worker_state(this_worker()) == "alive"
    assert worker_state(dead_worker()) == "dead"
    assert worker_state(ELSEWHERE) == "unknown"


def test_each_run_is_claimed_once_in_the_order_of_the_queue(store: Store) -> None:
    enter(store, 5)
    first, second = Claims(store, this_worker()), Claims(store, ELSEWHERE)
    got = [first.next("s", 2, attempts=5), second.next("s", 2, attempts=5), first.next("s", 2, attempts=5)]
    assert [[run.replicate for run in some] for some in got] == [[0, 1], [2, 3], [4]]
    assert {(run.attempt, run.status) for some in got for run in some} == {(1, "running")}
    assert study_counts(store, "s").workers == {this_worker(): 3, ELSEWHERE: 2}


def test_runs_that_start_together_keep_the_order_in_which_they_were_given(store: Store) -> None:
    runs = [RunRecord(new_run_id(), "game", f"k{number}", 0, 0, {}, ["m"]) for number in range(20)]
    Claims(store, this_worker()).all_new(runs)
    assert [run.id for run in store.runs()] == [run.id for run in runs]


def test_workers_that_claim_at_the_same_time_never_get_the_same_run(store: Store) -> None:
    enter(store, 60)
    got: list[list[str]] = [[] for _ in range(6)]

    def work(number: int) -> None:
        mine = Claims(store, f"{ELSEWHERE}{number}")
        while some := mine.next("s", 3, attempts=5):
            got[number] += [run.id for run in some]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    claimed = [run_id for some in got for run_id in some]
    assert len(claimed) == len(set(claimed)) == 60


def test_a_dead_workers_runs_are_taken_over_at_once_and_its_end_is_noted(store: Store) -> None:
    enter(store, 2)
    dead = dead_worker()
    lost = Claims(store, dead).next("s", 2, attempts=5)
    got = Claims(store, this_worker()).next("s", 5, attempts=5)
    assert {(run.id, run.attempt) for run in got} == {(run.id, 2) for run in lost}
    assert [(number, status) for number, status, _ in store.attempts(lost[0].id)] == [(1, "lost")]
    assert dead in store.attempts(lost[0].id)[0][2]


def test_a_lease_that_has_run_out_is_taken_over_and_a_renewed_one_is_not(store: Store) -> None:
    enter(store, 2)
    other = Claims(store, ELSEWHERE)
    silent, beating = other.next("s", 2, attempts=5)
    for run in (silent, beating):
        change(store, run, lease=1.0)
    assert other.renew([beating]) == set()
    [got] = Claims(store, this_worker()).next("s", 5, attempts=5)
    assert (got.id, got.attempt) == (silent.id, 2)
    assert other.renew([silent, beating]) == {silent.id}


def test_what_a_worker_writes_that_has_lost_its_run_is_not_kept(store: Store) -> None:
    enter(store, 1)
    [late] = Claims(store, ELSEWHERE).next("s", 1, attempts=5)
    change(store, late, lease=1.0)
    [run] = Claims(store, this_worker()).next("s", 1, attempts=5)
    append(store, run, charge(7), [])
    with pytest.raises(LeaseLostError):
        append(store, late, charge(50, "b"), [])
    with pytest.raises(LeaseLostError):
        finish(store, replace(late, status="completed"), charge(50, "b"), [])
    finish(store, replace(run, status="completed"), [], [])
    with pytest.raises(LeaseLostError):
        finish(store, replace(late, status="failed"), [], [])
    assert (store.run(run.id).status, store.run(run.id).attempt, study_counts(store, "s").spent) == (
        "completed",
        2,
        7,
    )


def test_a_transaction_whose_answer_is_lost_is_carried_out_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(store, 1)
    [run] = Claims(store, this_worker()).next("s", 1, attempts=5)
    commit = store.engine.dialect.do_commit
    lost: list[str] = []

    def lose(connection: Any) -> None:
        commit(connection)
        if len(lost) % 2 == 0:
            lost.append("answer")
            raise (sqlite3.OperationalError if store.sqlite_path else psycopg.OperationalError)("database is locked")
        lost.append("none")

    monkeypatch.setattr(store.engine.dialect, "do_commit", lose)
    append(store, run, charge(7), [])
    finish(store, replace(run, status="completed"), [(1, ChargeEvent(step="b", amount=5))], [])
    monkeypatch.undo()
    assert lost == ["answer", "none"] * 4  # each is preceded by a read
    assert (study_counts(store, "s").spent, len(store.events(run.id))) == (12, 2)


def test_a_run_whose_workers_die_again_and_again_is_given_up(store: Store) -> None:
    enter(store, 1)
    dead = dead_worker()
    for _ in range(2):
        assert len(Claims(store, dead).next("s", 1, attempts=2)) == 1
    assert Claims(store, this_worker()).next("s", 1, attempts=2) == []
    [run] = store.runs()
    assert run.status == "failed"
    assert "attempt 2 of 2" in str(run.error)


def test_the_cap_holds_back_runs_that_could_break_it(store: Store) -> None:
    enter(store, 4, cap=250, most=100)
    mine = Claims(store, this_worker())
    first = mine.next("s", 4, attempts=5)
    assert len(first) == 2
    assert mine.next("s", 4, attempts=5) == []
    append(store, first[0], charge(20), [])
    finish(store, replace(first[0], status="completed"), [], [])
    [third] = mine.next("s", 4, attempts=5)
    for run in (first[1], third):
        finish(store, replace(run, status="completed"), [(0, ChargeEvent(step="a", amount=90))], [])
    assert mine.next("s", 4, attempts=5) == []
    counts = study_counts(store, "s")
    assert (counts.spent, counts.cannot_go_on(250), counts.cannot_go_on(300)) == (200, True, False)


def test_an_interrupted_run_holds_what_it_may_still_cost_and_what_it_overspent_pays_no_other(store: Store) -> None:
    enter(store, 3, cap=320, most=100)
    mine = Claims(store, this_worker())
    for seq, (amount, still) in enumerate([(30, 70), (100, -30)]):
        [run] = mine.next("s", 1, attempts=5)
        append(store, run, [(seq, ChargeEvent(step=f"{seq}", amount=amount))], [])
        mine.give_back([run])
        assert study_counts(store, "s").next_cost == still
    assert len(mine.next("s", 3, attempts=5)) == 2, "130 are spent, and two more runs may cost 200"


def test_failed_runs_wait_until_they_are_to_be_tried_again(store: Store) -> None:
    enter(store, 1)
    mine = Claims(store, this_worker())
    [run] = mine.next("s", 1, attempts=5)
    finish(store, replace(run, status="failed", error="no\0 model"), [], [])
    assert mine.next("s", 1, attempts=5) == []
    assert retry_failed(store, "s") == 1
    [again] = mine.next("s", 1, attempts=5)
    assert (again.id, again.attempt) == (run.id, 2)
    assert store.attempts(run.id) == [(1, "failed", "no model")]


def test_a_run_that_goes_on_is_not_taken_and_one_that_ended_neither(store: Store) -> None:
    run = RunRecord(new_run_id(), "science", "k", 0, 0, {}, ["m"])
    other, mine = Claims(store, ELSEWHERE), Claims(store, this_worker())
    held = other.new(run)
    with pytest.raises(UsageError, match=f"{ELSEWHERE} holds it"):
        mine.take(run.id)
    finish(store, replace(held, status="interrupted"), [], [])
    taken = mine.take(run.id)
    assert taken.attempt == 2
    finish(store, replace(taken, status="completed"), [], [])
    with pytest.raises(UsageError, match="has ended"):
        mine.take(run.id)
    with pytest.raises(UsageError, match="no run 'nope'"):
        mine.take("nope")


def test_a_study_that_grows_keeps_what_is_there_and_one_that_shrinks_what_was_begun(store: Store) -> None:
    enter(store, 3)
    [begun, second] = Claims(store, this_worker()).next("s", 2, attempts=5)
    finish(store, replace(begun, status="completed"), [], [])
    enter(store, 5)
    assert study_counts(store, "s").runs == {"planned": 3, "running": 1, "completed": 1}
    enter(store, 1)
    assert study_counts(store, "s").runs == {"running": 1, "completed": 1}
    assert store.run(begun.id).status == "completed"
    assert store.run(second.id).status == "running"


def test_leases_are_longer_than_heartbeats_are_apart() -> None:
    assert claims.LEASE_SECONDS >= 3 * claims.BEAT_SECONDS


async def test_a_store_can_be_used_from_many_threads_at_once(store: Store) -> None:
    enter(store, 20)
    mine = Claims(store, this_worker())
    runs = mine.next("s", 20, attempts=5)

    async def end(run: RunRecord) -> None:
        for number in range(5):
            event = ChargeEvent(step=str(number), amount=1)
            await asyncio.to_thread(append, store, run, [(number, event)], [])
        await asyncio.to_thread(finish, store, replace(run, status="completed"), [], [])

    await asyncio.gather(*map(end, runs))
    counts = study_counts(store, "s")
    assert (counts.runs, counts.spent) == ({"completed": 20}, 100)


def test_a_lease_counts_to_the_second(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(store, 1)
    [held] = Claims(store, ELSEWHERE).next("s", 1, attempts=5)
    now = store.read(store.now)
    change(store, held, lease=now)
    monkeypatch.setattr(store, "now", lambda _: now)
    assert Claims(store, this_worker()).next("s", 1, attempts=5) == []
    monkeypatch.setattr(store, "now", lambda _: now + 1)
    [taken] = Claims(store, this_worker()).next("s", 1, attempts=5)
    assert (taken.id, taken.attempt) == (held.id, 2)


def test_however_many_workers_spend_at_once_a_study_never_reserves_more_than_its_cap(store: Store) -> None:
    enter(store, 40, cap=1_000, most=90)
    seen: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            seen.append(study_counts(store, "s").committed)

    def work(number: int) -> None:
        mine, chance = Claims(store, f"{ELSEWHERE}{number}"), random.Random(number)
        while some := mine.next("s", 2, attempts=5):
            for run in some:
                left = run.most
                for step in range(chance.randrange(4)):
                    left -= (amount := chance.randint(0, left))
                    append(store, run, [(step, ChargeEvent(step=str(step), amount=amount))], [])
                finish(store, replace(run, status=chance.choice(["completed", "failed", "exhausted"])), [], [])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    watching = threading.Thread(target=look)
    for thread in [*threads, watching]:
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    watching.join()
    counts = study_counts(store, "s")
    assert max(seen) <= 1_000
    assert counts.committed == counts.spent
    assert counts.of("planned") == 0 or counts.spent + 90 > 1_000
