"""The baseline that hands over keys: a team of it wins where one part alone tells nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from labmates.agents.organisation_parts import Seat
from labmates.agents.workspace import MOST_MESSAGE_CHARS
from labmates.api import arun
from labmates.models.orders import Order
from labmates.models.scripted.base import Heard
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent
from labmates.records.store import Store
from labmates.tasks.evidence import divide, instruments_of
from labmates.tasks.registry import get_task
from labmates.workflows.science.baselines.cells import restoring
from labmates.workflows.science.baselines.sharing import KEYS, OPEN, Keys, Sharing, known
from labmates.workflows.science.steps.plan import read_tasks

SHARED: dict[str, Any] = {
    "task": "anomaly", "difficulty": "easy", "evidence": "split:1", "model": "scripted:sharing", "budget": "1",
    "code_timeout": 300,
}  # fmt: skip


def test_the_cell_that_restores_tables_does_what_the_module_does() -> None:
    task = get_task("anomaly")
    parts = [part.frame for part in divide(task, 0, "easy", 1.0)]
    names: dict[str, Any] = {}
    exec(compile(restoring().code, "restoring", "exec"), names)
    declared = instruments_of(task)
    keys = [declared.hand_over(part) for part in parts]
    assert [names["hand_over"](part) for part in parts] == keys
    whole = declared.combine(parts[0], keys[1:])
    assert whole is not None
    pd.testing.assert_frame_equal(names["restored"](parts[0], keys[1:]), whole)


HELD = {"names": {f"C{n:02d}": f"TT{n}" for n in range(40)}, "scales": {f"C{n:02d} R1": [n, 2] for n in range(90)}}
SYSTEM = {"agent": "ana", "team": "all", "parts": {"ana": "Lead.", "ben": "Work."}, "findings": "", "handed": {}}


def asked(step: str, text: str = "", *, before: Sequence[BaseMessage] = (), tools: str = "", **facts: Any) -> Heard:
    """A conversation that ends with an order of a step."""
    order = Order("science", {"step": step, **facts}, f"# Step: {step}\n{text}").human()
    schemas = tuple({"function": {"name": name}} for name in tools.split())
    return Heard((Order("science", SYSTEM, "System").system(), *before, order), schemas, 0, 4096)


def opened(keys: Any, *, readings: bool) -> list[BaseMessage]:
    """An agent's first look at its part."""
    looked = {"name": "run_code", "args": {"code": "", "description": OPEN.title}, "id": "1"}
    printed = f"RESULT {json.dumps({'keys': keys, 'readings': readings, 'whole': False})}"
    return [AIMessage("", tool_calls=[looked]), ToolMessage(printed, tool_call_id="1")]


def read_back(texts: Sequence[str]) -> Keys:
    """The keys in what an agent said."""
    return known([AIMessage(text) for text in texts])


def test_a_plan_passes_on_all_keys_that_the_lead_has_read() -> None:
    material = (
        f"=== keys_of_ben ===\n{json.dumps(HELD)}\n=== end\n[cho]: {json.dumps({'blocks': {'T1': {'first': 0}}})}"
    )
    plan = Sharing().compose(asked("plan", material, members={"ben": "the analyst"})).content
    assert read_back([str(plan)]) == {**HELD, "blocks": {"T1": {"first": 0}}}
    assert [*read_tasks(str(plan), (Seat(id="ben", title="analyst", part="Work."),))] == ["ben"]


def test_talk_carries_the_own_keys_in_as_many_messages_as_they_need_and_once() -> None:
    before: list[BaseMessage] = opened(HELD, readings=False)
    said: list[str] = []
    for round_ in range(1, 6):
        heard = asked("deliberate", before=before, round=round_, said=[])
        said.append(str(Sharing().compose(heard).content))
        before = [*heard.messages[1:], AIMessage(said[-1])]
    assert max(map(len, said)) <= MOST_MESSAGE_CHARS
    assert read_back(said) == HELD
    assert not read_back(said[-1:])


def test_a_report_carries_the_keys_of_an_agent_that_writes_no_artifacts() -> None:
    for tools, carried in (("run_code mark_complete", HELD), ("run_code mark_complete write_artifact", {})):
        heard = asked("work", before=opened(HELD, readings=False), tools=tools)
        [made] = Sharing().compose(heard).calls
        if carried:
            assert made.name == "mark_complete"
            assert read_back([json.loads(made.arguments)["summary"]])["names"] == HELD["names"]
        else:
            assert (made.name, json.loads(json.loads(made.arguments)["content"])) == ("write_artifact", HELD)


def test_who_holds_readings_bids_again_once_there_are_keys() -> None:
    before = opened({}, readings=True)
    assert Sharing().compose(asked("bid", before=before, readable=[], part="")).content == "0: nothing"
    posted = asked("bid", before=before, readable=["keys_of_ben"], part="")
    assert str(Sharing().compose(posted).content).startswith("6: restore")
    keys = opened({"names": {"C1": "TT1"}}, readings=False)
    assert Sharing().compose(asked("bid", before=keys, readable=["keys_of_ben"], part="")).content == "0: nothing"


def test_a_later_team_asks_the_earlier_one_to_use_its_keys() -> None:
    handed: dict[str, Any] = {"handed": {"notes": "first", "final_paper": "all"}}
    tools = "run_code request_additional_work mark_complete"
    heard = asked("work", before=opened(HELD, readings=False), tools=tools, **handed)
    [made] = Sharing().compose(heard).calls
    assert (made.name, json.loads(made.arguments)["target_team"]) == ("request_additional_work", "first")
    assert read_back([json.loads(made.arguments)["request"]]) == HELD


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_sharing.py")
@pytest.mark.needs("docker")
async def test_a_team_that_shares_reaches_one_agent_with_everything(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    scores = {}
    with Store(url) as store:
        for arm in ("restricted", "oracle", "mute", "team"):
            team: dict[str, Any] = {"organisation": "decentralised", "team_size": 3} if arm in ("mute", "team") else {}
            crew = team if arm == "team" else {**team, "arm": arm}
            [run] = await arun("science", store=url, **SHARED, **crew)
            assert run.status == "completed"
            scores[arm] = run.metrics["accuracy"]
        events, bodies = store.events(run.id), Bodies(store.bodies(run.id))
    artifacts = [event for event in events if isinstance(event, ArtifactEvent) and event.name.startswith(KEYS)]
    handed = {event.name: json.loads(bodies.text(event.content)) for event in artifacts}
    assert {name: set(keys) for name, keys in handed.items()} == {
        "keys_of_peer_2": {"blocks"},
        "keys_of_peer_3": {"names", "scales"},
    }
    # The holder of the readings uses the keys of both others, which come as artifacts and in talk.
    assert (run.metrics["hand_overs_used"], run.metrics["messages_used"]) == (4, 2)
    assert scores["restricted"] < 0.2
    assert scores["mute"] == pytest.approx(scores["restricted"], abs=0.05)
    assert scores["oracle"] > 0.7
    assert scores["team"] == pytest.approx(scores["oracle"], abs=0.05)
