"""Divided evidence in the lab: each seat holds its part alone, and arms of one agent hold all or the readings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labmates.agents.organisation_files import find_organisation
from labmates.budgets.tokens import text_of
from labmates.errors import UsageError
from labmates.models.scripted.base import Draft, Heard, call
from labmates.tasks.base import Difficulty
from labmates.tasks.evidence import divide
from labmates.tasks.registry import get_task
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.evidence import Arm, prepare, seat_description
from tests.support.line_task import LineTask
from tests.support.puppet import agent_of, dutiful, step_of, turn_of
from tests.workflows.science.test_science_lab import Lab, tool_results

LOOK = "print(sorted(df['table'].unique()) if 'table' in df else 'whole', len(df))"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def condition(**values: Any) -> ScienceCondition:
    return ScienceCondition.model_validate({"task": "anomaly", "model": "scripted:hasty", **values})


def test_equal_evidence_has_equal_keys() -> None:
    assert condition(evidence="shared", arm="team").key == condition().key
    assert condition(evidence="split:1").key != condition(evidence="split:0.5").key != condition().key
    assert condition(evidence="split:0.50").evidence == condition(evidence="split:.5").evidence == "split:0.5"


@pytest.mark.parametrize("evidence", ["split", "split:1.5", "split:-0.1", "split:a", "half", "split:1e-3"])
def test_an_evidence_that_is_no_split_is_refused_with_what_is_allowed(evidence: str) -> None:
    with pytest.raises(ValidationError, match="neither shared nor split:S with S from 0 to 1"):
        condition(evidence=evidence)


def test_an_arm_needs_divided_evidence() -> None:
    with pytest.raises(UsageError, match=r"--arm oracle: an arm needs divided evidence; add --evidence split:S"):
        condition(arm="oracle").check()
    condition(arm="oracle", evidence="split:1").check()


def test_a_seat_can_not_hold_an_instrument_that_the_task_lacks() -> None:
    crew = find_organisation("decentralised").model_dump(mode="json")
    crew["teams"]["group"]["seats"]["peer_2"]["evidence"] = 4
    with pytest.raises(UsageError, match=r"mine: teams.group.seats.peer_2.evidence: the task anomaly has 3"):
        condition(evidence="split:1", organisation={**crew, "name": "mine"}).check()


def test_arms_of_one_agent_have_one_agent_whatever_the_teams_are() -> None:
    for arm in ("oracle", "restricted"):
        alone = condition(arm=arm, evidence="split:1", team_size=3, organisation="decentralised")
        assert alone.solo
        assert alone.organisation.name == "solo"
    assert condition(arm="oracle", evidence="split:1").key != condition(arm="restricted", evidence="split:1").key


def test_each_arm_holds_its_parts() -> None:
    task = get_task("ecology")
    parts = divide(task, 4, "easy", 1.0)
    held = {arm: prepare(task, 4, "easy", "split:1", arm).parts for arm in ("oracle", "restricted", "team")}
    assert [part.csv() for part in held["team"]] == [part.csv() for part in parts]
    assert [part.csv() for part in held["restricted"]] == [parts[0].csv()]
    [everything] = held["oracle"]
    assert set(everything.frame["table"]) == {table for part in parts for table in part.frame["table"]}
    assert len(everything.frame) == sum(len(part.frame) for part in parts)
    declared = task.instruments
    assert declared is not None
    mine = declared.combine(everything.frame)
    assert mine is not None
    assert set(mine["species"].dropna()) == set(task.generate(4, "easy").truth.species)
    [whole] = prepare(task, 4, "easy", "shared", "team").parts
    assert whole.csv() == task.generate(4, "easy").csv()


def test_runs_with_the_same_data_share_them_and_no_others() -> None:
    task = get_task("ecology")
    first = prepare(task, 4, "easy", "split:1", "team")
    assert prepare(get_task("ecology"), 4, "easy", "split:1", "team") is first
    others: list[tuple[int, Difficulty, str, Arm]] = [
        (5, "easy", "split:1", "team"),
        (4, "hard", "split:1", "team"),
        (4, "easy", "shared", "team"),
        (4, "easy", "split:1", "oracle"),
    ]
    for other in others:
        assert prepare(task, *other).parts[0].csv() != first.parts[0].csv()
    assert prepare(LineTask(), 4, "easy", "shared", "team").dataset.frame.columns.tolist() == ["x", "y"]


def test_recorded_data_are_read_once_for_all_seeds() -> None:
    class Recorded(LineTask):
        is_fixed = True

    shared = prepare(Recorded(), 1, "medium", "shared", "team")
    assert prepare(Recorded(), 2, "medium", "shared", "team") is shared


def test_each_seat_is_told_which_instruments_there_are_and_which_is_its_own() -> None:
    task = get_task("anomaly")
    parts = prepare(task, 4, "easy", "split:1", "team").parts
    for held, name in enumerate(("readings", "register", "workshop")):
        text = seat_description(task, parts, held)
        assert [line.split(":")[0] for line in text.split("\n")[1:4]] == [
            f"- {each} (yours)" if each == name else f"- {each}" for each in ("readings", "register", "workshop")
        ]
        assert f"You hold one of them alone: {name}." in text
        assert text.endswith(parts[held].description)
    none = seat_description(task, parts, None)
    assert "You hold none of them." in none
    assert "(yours)" not in none
    restricted = seat_description(task, prepare(task, 4, "easy", "split:1", "restricted").parts, None)
    assert "- readings (yours)" in restricted
    for evidence, arm in (("shared", "team"), ("split:0", "team"), ("split:1", "oracle")):
        [whole] = prepare(task, 4, "easy", evidence, arm).parts  # type: ignore[arg-type]
        assert seat_description(task, [whole], None) == whole.description


async def test_each_seat_is_given_its_own_part_and_told_of_no_other(lab: Lab) -> None:
    described: dict[str, str] = {}

    def play(heard: Heard) -> Draft:
        described.setdefault(agent_of(heard), text_of(heard.messages[0].content))
        if step_of(heard).startswith("work") and turn_of(heard) == 0:
            return Draft("", (call("run_code", code=LOOK),))
        return dutiful(heard)

    run = await lab.play(play, organisation="decentralised", evidence="split:1")
    seen = {text.partition("]")[0] + "]" for _, text in tool_results(lab, run, "run_code") if text.startswith("[")}
    assert seen == {"['readings']", "['blocks']", "['checks', 'names']"}
    instruments = get_task("anomaly").instruments
    assert instruments is not None
    for place, about in enumerate(instruments.about.values()):
        holders = [about in text for text in described.values()]
        assert holders == [at == place for at in range(3)]


async def test_one_agent_holds_all_instruments_or_the_readings(lab: Lab) -> None:
    def play(heard: Heard) -> Draft:
        if step_of(heard).startswith("work") and turn_of(heard) == 0:
            return Draft("", (call("run_code", code=LOOK),))
        return dutiful(heard)

    tables = {}
    for arm in ("oracle", "restricted"):
        run = await lab.play(play, arm=arm, evidence="split:1")
        tables[arm] = tool_results(lab, run, "run_code")[0][1].partition("]")[0]
    assert tables == {"oracle": "['blocks', 'checks', 'names', 'readings'", "restricted": "['readings'"}
