"""The fate of findings in the hands of seats, on events written by hand whose true course is known."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.agents.organisation_parts import REPORT
from labmates.records.store import Store
from labmates.tasks.registry import get_task
from labmates.workflows.protocol.analysis import Params, Runs, TooFewRunsError
from labmates.workflows.science.analyses.team_page import hand_over_rows
from labmates.workflows.science.lab.coordination import hand_overs
from labmates_credit.fates import ENDS, Fate, fates
from labmates_credit.fates_analysis import FATES
from tests.support.recorded import Recorded, add
from tests.workflows.science.test_coordination import Story

TASK = get_task("anomaly")
TRUTH = TASK.generate(0, "easy").truth
ORACLE = TASK.oracle(TRUTH).model_dump(mode="json", exclude_none=True)
SENSORS = ORACLE["n_sensors"]


def fate_of(story: Story, finding: str = "n_sensors") -> Fate:
    received = hand_overs(story.events, story.bodies)
    return next(one for one in fates(story.events, story.bodies, received, TASK, TRUTH) if one.finding == finding)


def find(story: Story, agent: str) -> None:
    story.code(agent, "work/0/0", "len(df.columns)", f"n_sensors: {SENSORS}")


def tell(story: Story, sender: str, receiver: str) -> None:
    said = f"From {sender}: the n_sensors is {SENSORS}."
    story.say(sender, said)
    story.call(receiver, f"work/{len(story.events)}", heard=said)


@pytest.fixture
def story() -> Story:
    return Story()


def test_what_was_found_handed_on_and_stated_is_delivered(story: Story) -> None:
    find(story, "ana")
    tell(story, "ana", "ben")
    story.write("ben", REPORT, "# Results\nNothing.")
    story.state("ben", {"n_sensors": SENSORS})
    fate = fate_of(story)
    assert fate.seats == {"ana": ("found", "stated"), "ben": ("received", "stated")}
    assert (fate.first, fate.end, fate.lost_by, fate.corrected) == ("ana", "delivered", None, False)


def test_what_the_paper_lacks_is_lost_by_the_last_seat_that_had_it(story: Story) -> None:
    find(story, "ana")
    tell(story, "ana", "ben")
    story.write("cho", REPORT, "# Results\nNothing.")
    fate = fate_of(story)
    assert (fate.first, fate.end, fate.lost_by) == ("ana", "lost", "ben")
    assert "cho" not in fate.seats


def test_another_value_in_the_findings_of_a_seat_that_had_it_is_a_change(story: Story) -> None:
    find(story, "ana")
    tell(story, "ana", "ben")
    story.state("ben", {"n_sensors": SENSORS * 3})
    story.write("ben", REPORT, "# Results\nNothing.")
    fate = fate_of(story)
    assert fate.seats["ben"] == ("received", "changed")
    assert (fate.end, fate.lost_by, fate.corrected) == ("changed", "ben", False)


def test_a_change_that_somebody_states_right_later_is_corrected(story: Story) -> None:
    find(story, "ana")
    story.say("ana", f"From ana: the n_sensors is {SENSORS}.")
    story.state("ana", {"n_sensors": SENSORS * 3})
    tell(story, "ben", "ana")
    story.state("ana", {"n_sensors": SENSORS})
    story.write("ana", REPORT, "# Results\nNothing.")
    fate = fate_of(story)
    assert (fate.end, fate.corrected) == ("delivered", True)
    assert fate.seats["ana"] == ("found", "received", "stated", "changed")


@pytest.mark.parametrize("seats", [("ana", "ben"), ("ben", "ana")])
def test_seats_side_by_side_have_the_same_fates_in_any_order_of_events(story: Story, seats: tuple[str, str]) -> None:
    right = f"From ana: the n_sensors is {SENSORS}."
    for agent in seats:
        story.call(agent, "work/0")
        find(story, agent)
        if agent == "ana":
            story.say(agent, right)
        else:
            story.state(agent, {"n_sensors": SENSORS * 3})
    for agent in reversed(seats):
        story.call(agent, "write/1", heard=right)
    story.write("cho", REPORT, "# Results\nNothing.")
    fate = fate_of(story)
    assert [*fate.seats.items()] == [("ana", ("found", "stated")), ("ben", ("found", "received"))]
    assert (fate.first, fate.lost_by, fate.corrected) == ("ana", "ben", False)


def test_a_change_before_the_true_value_arrives_is_none(story: Story) -> None:
    said = f"From ana: the n_sensors is {SENSORS}."
    story.call("ana", "plan/0")
    story.say("ana", said)
    story.state("ben", {"n_sensors": SENSORS * 3})
    story.call("ben", "work/1", heard=said)
    story.write("cho", REPORT, "# Results\nNothing.")
    assert fate_of(story).seats["ben"] == ("received",)


def test_a_rule_that_merges_reports_is_no_seat(story: Story) -> None:
    find(story, "ana")
    story.state("", {"n_sensors": SENSORS})
    story.write("", REPORT, "# Results\nNothing.")
    fate = fate_of(story)
    assert (fate.seats, fate.end) == ({"ana": ("found",)}, "delivered")


def test_a_hand_over_from_a_rule_has_no_row(story: Story) -> None:
    story.write("", "notes", "The rate is 0.3391 for C01.")
    story.call("ana", "work/1", heard="The rate is 0.3391 for C01.")
    [received] = story.measured().hand_overs
    assert received.sender == ""
    assert list(hand_over_rows(story.measured())) == []


def test_a_wrong_value_of_a_seat_that_never_had_it_is_no_change(story: Story) -> None:
    story.state("ana", {"n_sensors": SENSORS * 3})
    story.write("ana", REPORT, "# Results\nNothing.")
    fate = fate_of(story)
    assert (fate.seats, fate.first, fate.end) == ({}, None, "never stated")


def test_all_findings_of_the_oracle_are_delivered_by_who_states_them(story: Story) -> None:
    story.state("ana", ORACLE)
    story.write("ana", REPORT, "# Results\nSee the findings.")
    found: list[Any] = fates(story.events, story.bodies, (), TASK, TRUTH)
    assert {fate.end for fate in found} == {"delivered"}
    assert len(found) > 10


@pytest.mark.parametrize(
    ("task", "finding", "true", "stated"),
    [
        ("anomaly", "most_affected_sensors", ["PT111", "FT222"], "FT222"),  # both are in as many anomalies
        ("geospatial", "anisotropy_azimuth", 1.0, 179.5),  # a direction: 0 and 180 degrees are the same
    ],
)
def test_another_value_that_earns_the_credit_is_delivered_by_who_states_it(
    story: Story, task: str, finding: str, true: Any, stated: Any
) -> None:
    work = get_task(task)
    truth = work.generate(0, "easy").truth.model_copy(update={finding: true})
    field = finding.removesuffix("s")
    [credit] = [c for c in work.score(work.findings(**{field: stated}), truth) if c.finding == field]
    assert credit.credit == 1
    story.code("ana", "work/0/0", "pass", f"{field}: {stated}")
    story.state("ben", {field: stated})
    story.write("ben", REPORT, "# Results\nSee the findings.")
    [fate] = [one for one in fates(story.events, story.bodies, (), work, truth) if one.finding == field]
    assert (fate.seats, fate.end) == ({"ana": ("found",), "ben": ("stated",)}, "delivered")
    story.state("ben", {field: "FT333" if field == "most_affected_sensor" else 90})
    [fate] = [one for one in fates(story.events, story.bodies, (), work, truth) if one.finding == field]
    assert fate.end == "changed"


def test_what_code_prints_by_chance_is_lost_by_nobody(story: Story) -> None:
    find(story, "ana")
    story.call("ben", "work/1")
    story.write("ben", REPORT, "# Results\nNothing.")
    fate = fate_of(story)
    assert (fate.seats, fate.first, fate.end, fate.lost_by) == ({"ana": ("found",)}, None, "never stated", None)


def test_the_summary_of_a_task_states_what_it_says(story: Story) -> None:
    story.tool("ana", "work/0/0", "mark_complete", {"summary": f"The n_sensors is {SENSORS}."})
    story.write("ben", REPORT, "# Results\nNothing.")
    fate = fate_of(story)
    assert (fate.seats, fate.end, fate.lost_by) == ({"ana": ("stated",)}, "lost", "ana")


def test_typed_findings_decide_whatever_number_the_prose_holds(story: Story) -> None:
    story.state("ana", {"n_sensors": SENSORS})
    story.call("ben", "write/1")
    story.state("ben", {"n_sensors": SENSORS * 3})
    story.write("ben", REPORT, f"# Results\nThe n_sensors is {SENSORS}.")
    assert fate_of(story).end == "changed"


def test_a_value_within_the_tolerance_that_is_not_the_one_handed_on_is_a_change(story: Story) -> None:
    share = ORACLE["anomalous_share"]
    story.state("ana", {"anomalous_share": share})
    story.call("ben", "write/1")
    story.state("ben", {"anomalous_share": round(share * 1.03, 6)})
    story.write("ben", REPORT, "# Results\nSee the findings.")
    assert fate_of(story, "anomalous_share").end == "changed"
    story.state("ben", {"anomalous_share": round(share, 3)})
    assert fate_of(story, "anomalous_share").end == "delivered"


def test_lists_in_another_order_are_the_same_findings(story: Story) -> None:
    turned = {name: value[::-1] for name, value in ORACLE.items() if isinstance(value, list)}
    turned["events"] = [{**event, "sensors": event["sensors"][::-1]} for event in turned["events"]]
    story.state("ana", ORACLE)
    story.call("ben", "write/1")
    story.state("ben", {**ORACLE, **turned})
    story.write("ben", REPORT, "# Results\nSee the findings.")
    found = fates(story.events, story.bodies, (), TASK, TRUTH)
    assert {fate.end for fate in found} == {"delivered"}
    assert "changed" not in {state for fate in found for states in fate.seats.values() for state in states}


def test_findings_that_no_judge_has_scored_are_not_followed(store: Store, story: Story) -> None:
    add(store, "science", story.events, story.bodies)
    with pytest.raises(TooFewRunsError, match="verified judge has scored none"):
        FATES.compute(Runs.given(store, list(store.runs())), Params())


def test_findings_of_a_recorded_run_end_in_exactly_one_way(recorded: Recorded) -> None:
    runs = Runs.given(recorded.store, [recorded.store.run(recorded.ids["science"])])
    [table] = FATES.compute(runs, Params()).tables
    assert sum(table.rows[0][end] for end in ENDS) == pytest.approx(1)
