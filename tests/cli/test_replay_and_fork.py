from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labmates.records.run import new_run_id
from labmates.records.store import Store
from tests.support.command_line import Labmates

RUN = ["run", "science", "--task", "anomaly", "--difficulty", "easy", "--model", "scripted:silent"]


@pytest.fixture
def store(labmates: Labmates, tmp_path: Path) -> Iterator[Store]:
    """Return the store of the command line, with one run in it."""
    assert labmates(*RUN, "--json").code == 0
    store = Store(f"sqlite:///{tmp_path}/labmates.db")
    yield store
    store.close()


def test_a_replay_tells_that_all_is_the_same(labmates: Labmates, store: Store) -> None:
    [run] = store.runs()
    told = labmates("replay", run.id)
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"same: {len(store.events(run.id))} events (5 artifact, ")
    [found] = labmates("replay", run.id, "--sandbox", "unsafe-local", "--json").records
    assert (found["id"], found["same"], found["whole"], found["differences"]) == (run.id, True, True, [])
    assert (found["follows"], found["ran"], found["cells"]) == (True, 0, [])
    assert found["compared"]["llm_call"] == run.usage.llm_calls


def test_a_replay_tells_which_code_prints_something_else_and_exits_with_3(labmates: Labmates, tmp_path: Path) -> None:
    assert labmates(*RUN[:-1], "scripted:hasty", "--solo", "--json").code == 0
    with Store(f"sqlite:///{tmp_path}/labmates.db") as store:
        [run] = store.runs()
        events = [
            event.model_copy(update={"files": {"gone.txt": event.result}})
            if event.type == "tool_call" and event.status
            else event
            for event in store.events(run.id)
        ]
        cells = [event.step for event in events if event.type == "tool_call" and event.status]
        other = replace(run, id=new_run_id())
        store.create(other, events=events, bodies=store.bodies(run.id))
    assert labmates("replay", run.id).code == 0
    told = labmates("replay", other.id)
    assert told.code == 3
    assert told.out.startswith(f"the record is consistent, some code prints something else now: {len(events)} events")
    assert f"\n{len(cells)} of {len(cells)} cells print something else now" in told.out
    assert f"\n{cells[0]} (tool_call, files)\n  recorded: " in told.out
    done = labmates("replay", other.id, "--json")
    [found] = done.records
    assert (done.code, found["same"], found["follows"], found["differences"]) == (3, False, True, [])
    assert (found["ran"], [cell["step"] for cell in found["cells"]]) == (len(cells), cells)


def test_a_replay_tells_what_differs_and_exits_with_1(labmates: Labmates, store: Store) -> None:
    [run] = store.runs()
    other = replace(run, id=new_run_id())
    events = [
        event.model_copy(update={"reason": "because"}) if event.type == "failed_reply" else event
        for event in store.events(run.id)
    ]
    store.create(other, events=events, bodies=store.bodies(run.id))
    told = labmates("replay", other.id)
    assert told.code == 1
    number = sum(event.type == "failed_reply" for event in events)
    assert told.out.startswith(f"the record is inconsistent: {number} differences in {len(events)} events")
    assert "data/0/data_lead/work/0 (failed_reply, reason)\n  recorded: because\n  now: no tool call" in told.out
    assert f"and {number - 5} more" in told.out
    done = labmates("replay", other.id, "--json")
    assert (done.code, len(done.records[0]["differences"])) == (1, number)


def test_a_fork_goes_on_at_an_event_from_the_list_with_another_model(labmates: Labmates, store: Store) -> None:
    [run] = store.runs()
    events = labmates("show", run.id, "--events", "--json").records
    assert [event["number"] for event in events] == list(range(len(store.events(run.id))))
    at = next(event["number"] for event in events if event["team"] == "writing")
    lines = labmates("show", run.id, "--events").out.splitlines()
    assert lines[at].split()[0] == str(at)
    assert "writing/0/phase" in lines[at]

    done = labmates("fork", run.id, "--at", str(at), "--set", "model.writing=scripted:hasty", "--json")
    assert done.code == 0
    [forked] = done.records
    assert forked["status"] == "completed"
    assert forked["condition"]["model_for"] == {"writing": "scripted:hasty"}
    assert forked["key"] != run.key
    assert store.run(forked["id"]).origin == f"{run.id}@{at}"
    assert f"Forked from the run {run.id} at event {at}." in labmates("show", forked["id"]).out
    again = labmates("replay", forked["id"])
    assert again.code == 0
    assert f"{at} events" in again.out.splitlines()[-1]


def test_continuations_are_compared_at_once_and_executed_once(labmates: Labmates, store: Store) -> None:
    [run] = store.runs()
    command = ["fork", run.id, "--at", "writing", "--set", "model.writing=scripted:hasty", "--replicates", "3"]
    done = labmates(*command)
    assert done.code == 0
    assert "6 of 6 continuations to execute, for about $0.0000." in done.err
    assert "in skill, 3 continuations" in done.out
    assert "This holds for new continuations of this run" in done.out
    again = labmates(*command)
    assert (again.code, again.out) == (0, done.out)
    assert again.err == "0 of 6 continuations to execute, for about $0.0000.\n"


def test_settings_of_a_fork_are_those_of_its_run_but_for_what_is_given(labmates: Labmates, store: Store) -> None:
    [run] = store.runs()
    changes = ["--at", "0", "--set", "budget=0.5", "--sandbox", "unsafe-local", "--call-timeout", "7"]
    [forked] = labmates("fork", run.id, *changes, "--json").records
    settings = store.run(forked["id"]).settings
    assert {
        **run.settings,
        "sandbox": "unsafe-local",
        "models": {**run.settings["models"], "call_timeout": 7},
    } == settings
    assert forked["budget"]["total"] == "0.5"


def test_wrong_input_is_told_clearly_and_exits_with_2(labmates: Labmates, store: Store) -> None:
    [run] = store.runs()
    stopped = replace(run, id=new_run_id(), status="interrupted")
    store.create(stopped)
    change = ["--set", "budget=2"]
    for arguments, says in [
        (["replay"], "Missing argument 'RUN'"),
        (["replay", "nope"], "there is no run 'nope'"),
        (["replay", run.id, "--sandbox", "prison"], "unknown sandbox 'prison'"),
        (["replay", stopped.id], "has not ended (interrupted)"),
        (["replay", run.id, "--store", "sqlite:///other.db"], "does not exist yet"),
        (["fork", "nope", "--at", "0", *change], "there is no run 'nope'"),
        (["fork", run.id, *change], "Missing option '--at'"),
        (["fork", run.id, "--at", "3"], "Missing option '--set'"),
        (["fork", run.id, "--at", "x", *change], "unknown step, team or agent of the run"),
        (["fork", run.id, "--at", "-1", *change], "allowed: 0 to"),
        (["fork", run.id, "--at", "9999", *change], "allowed: 0 to"),
        (["fork", run.id, "--at", "3", "--set", "budget"], "--set takes FIELD=VALUE"),
        (["fork", run.id, "--at", "3", "--set", "=2"], "--set takes FIELD=VALUE"),
        (["fork", run.id, "--at", "3", "--set", "budget=[1"], "is not a YAML value"),
        (["fork", run.id, "--at", "3", "--set", "budgte=2"], "Did you mean 'budget'"),
        (["fork", run.id, "--at", "3", "--set", "budget=much"], "not a dollar amount"),
        (["fork", run.id, "--at", "3", "--set", "task=ecology"], "can't change task"),
        (["fork", run.id, "--at", "3", "--set", "model=scripted:nobody"], "unknown scripted baseline 'nobody'"),
        (["fork", run.id, "--at", "3", "--set", "model=openai:gpt-5"], "OPENAI_API_KEY"),
        (["fork", run.id, "--at", "30", "--set", "budget=0.001"], "are spent there already"),
        (["fork", run.id, "--at", "100", "--set", "max_turns=1"], "is invalid at event"),
        (["show", "nope", "--events"], "there is no run 'nope'"),
    ]:
        done = labmates(*arguments)
        assert done.code == 2, arguments
        assert says in " ".join(done.err.split()), (arguments, done.err)
        assert done.out == "", arguments
    assert len(list(store.runs())) == 2


@pytest.mark.parametrize("verb", ["replay", "fork"])
def test_help_has_an_example(labmates: Labmates, verb: str) -> None:
    done = labmates(verb, "--help")
    assert done.code == 0
    assert f"Example: labmates {verb} " in done.out
