from __future__ import annotations

import json
from dataclasses import replace

import pytest
import sqlalchemy as sa

from labmates.records import schema
from labmates.records.bodies import Bodies
from labmates.records.events import MessageEvent
from labmates.records.run import Usage
from labmates.records.store import Store
from tests.support.command_line import Labmates
from tests.support.recorded import a_record, add


@pytest.fixture
def store(labmates: Labmates) -> Store:
    made = Store(f"sqlite:///{labmates.folder}/labmates.db")
    made.create(a_record(id="oldest", study="pilot", started=1_000.0, status="failed", models=("openai:first",)))
    made.create(a_record(id="newest", key="another", study=None, started=3_000.0, models=("openai:second",)))
    made.create(a_record(id="middle", key="third", study="pilot", started=2_000.0, models=("openai:second",)))
    made.create(a_record(id="unborn", key="fourth", study="pilot", started=0.0, status="planned"))
    return made


def listed(labmates: Labmates, *arguments: str) -> list[str]:
    done = labmates("runs", "--json", *arguments)
    assert done.code == 0
    return [json.loads(line)["id"] for line in done.out.splitlines()]


def test_runs_are_listed_newest_first_and_filtered(labmates: Labmates, store: Store) -> None:
    assert listed(labmates) == ["newest", "middle", "oldest", "unborn"]
    assert listed(labmates, "--limit", "2") == ["newest", "middle"]
    assert listed(labmates, "--study", "pilot", "--status", "failed") == ["oldest"]
    assert listed(labmates, "--model", "second") == ["newest", "middle"]
    done = labmates("runs", "--limit", "1")
    assert "newest" in done.out
    assert "1 shown; --limit shows more." in done.out


def test_a_list_says_what_tells_its_runs_apart_and_their_primary_outcome(labmates: Labmates, store: Store) -> None:
    for arm, skill in (("team", 0.884), ("mute", -0.02)):
        condition = {"task": "ecology", "arm": arm}
        run = a_record(id=arm, key=arm, kind="science", study="arms", started=1.0, condition=condition)
        store.create(replace(run, metrics={"accuracy": 0.5, "skill": skill}))
    told = labmates("runs", "--study", "arms").out
    assert "ecology, arm team" in told
    assert "skill 0.884" in told
    assert "skill -0.020" in told


def test_runs_are_found_by_their_texts(labmates: Labmates, store: Store) -> None:
    bodies = Bodies()
    said = MessageEvent(to="model", text=bodies.keep("The random forest leaks."))
    add(store, "science", [said], bodies, id="talker", key="fifth", study="pilot", started=4_000.0)
    assert listed(labmates, "--search", '"random forest" -noon', "--study", "pilot") == ["talker"]
    assert listed(labmates, "--search", "leaks -forest") == []
    done = labmates("runs", "--search", '"random forest')
    assert (done.code, "quotation mark is missing" in done.err) == (2, True)


def test_what_may_have_been_billed_stands_apart_from_the_bill(labmates: Labmates, store: Store) -> None:
    usage = Usage(llm_calls=2, bill="0.01", uncertain_attempts=3, uncertain=1_500)
    plan = {"name": "lossy", "spec": {"name": "lossy", "kind": "game"}, "cap": None, "created": 0.0}
    store.write(lambda connection: connection.execute(sa.insert(schema.studies), plan))
    store.create(replace(a_record(id="lossy", key="fifth", study="lossy", started=4_000.0), usage=usage))
    apart = "$0.0100 + up to $0.0015"
    assert apart in labmates("runs").out
    assert f"bill {apart} for 3 attempts without a reply" in " ".join(labmates("show", "lossy").out.split())
    assert "up to $0.0015 of it for attempts without a reply" in labmates("study", "status", "lossy").out
    assert labmates("study", "status", "lossy", "--json").records[0]["uncertain"] == "0.0015"
    assert labmates("report", "lossy", "--out", "lossy.html").code == 0
    assert (labmates.folder / "lossy.html").read_text().count(apart) == 2


def test_a_list_without_runs_says_why(labmates: Labmates, store: Store) -> None:
    assert "No runs match these filters." in labmates("runs", "--study", "pilot", "--model", "third").err
    for wrong in ("--study", "--kind"):
        done = labmates("runs", "--json", wrong, "scince")
        assert (done.code, f"unknown {wrong[2:]} 'scince'" in done.err) == (2, True)
    done = labmates("runs", "--sort", "colour")
    assert (done.code, "unknown order 'colour'" in done.err) == (2, True)
    done = labmates("runs", "--status", "flying")
    assert (done.code, "unknown status 'flying'" in done.err) == (2, True)


def test_last_is_the_run_that_began_last(labmates: Labmates, store: Store) -> None:
    assert json.loads(labmates("show", "last", "--json").out)["id"] == "newest"
    with Store(f"sqlite:///{labmates.folder}/empty.db") as empty:
        done = labmates("show", "last", "--store", empty.url)
    assert (done.code, "there is no run 'last'" in done.err) == (2, True)


def test_a_run_is_named_by_the_beginning_of_its_id(labmates: Labmates, store: Store) -> None:
    assert json.loads(labmates("show", "newe", "--json").out)["id"] == "newest"
    done = labmates("show", "new")
    assert (done.code, "there is no run 'new'" in done.err) == (2, True)
    store.create(a_record(id="newborn", key="sixth"))
    store.create(a_record(id="newborns", key="seventh"))
    done = labmates("show", "newb")
    assert (done.code, "several runs begin with 'newb': newborn, newborns" in done.err) == (2, True)
    assert json.loads(labmates("show", "newborn", "--json").out)["id"] == "newborn"
    done = labmates("show", "%est")
    assert (done.code, "there is no run '%est'" in done.err) == (2, True)


def test_runs_are_deleted_by_filters_or_by_name(labmates: Labmates, store: Store) -> None:
    done = labmates("runs", "delete", "--status", "failed", "--dry-run")
    assert "1 runs would be deleted." in done.out
    assert labmates("runs", "delete", "--yes").code == 2
    assert "nothing to delete" in labmates("runs", "delete", "--yes").err
    assert labmates("runs", "delete", "oldest", "--yes").code == 0
    assert labmates("runs", "delete", "newest").code == 2  # nobody can be asked
    assert listed(labmates) == ["newest", "middle", "unborn"]
