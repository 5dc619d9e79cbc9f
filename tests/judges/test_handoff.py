"""How findings pass through the teams' hands: traced claims, and where true findings first appear and are lost."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel

from labmates.judges.base import Report, Trace
from labmates.judges.findings_rules import items_of
from labmates.judges.handoff import Audit, HandoffJudge, audit, is_unseen
from labmates.judges.verified import VerifiedJudge
from labmates.tasks.base import Dataset
from labmates.tasks.findings import read_findings
from labmates.tasks.registry import TASKS, get_task
from labmates.tasks.report import oracle_report

STAGES = ("data", "model", "eval", "writing")


@cache
def made(task: str, seed: int = 0) -> Dataset[Any]:
    return get_task(task).generate(seed, "easy")


def artifact(team: str, text: str, name: str = "") -> Trace:
    return Trace(team, "artifact", name or f"{team}_artifact", text)


def output(team: str, text: str) -> Trace:
    return Trace(team, "output", f"{team}_agent", text)


def audited(text: str | None, *trail: Trace, task: str = "anomaly") -> Audit:
    report = Report(text, get_task(task), made(task).truth, {}, trail, STAGES)
    return audit(report, read_findings(text or "", report.task.findings).findings)


def block(task: str = "anomaly", **only: Any) -> str:
    """Return the oracle's findings block, all fields or those given."""
    findings = get_task(task).oracle(made(task).truth).model_dump(mode="json")
    return f"```findings\n{json.dumps(only or findings)}\n```\n"


def ways(found: Audit, finding: str) -> Counter[tuple[str | None, str | None]]:
    return Counter((one.first, one.lost) for one in found.passages if one.finding == finding)


def true(task: str = "anomaly") -> Any:
    return made(task).truth


@pytest.mark.parametrize("task", list(TASKS))
def test_what_every_team_hands_on_is_found_first_by_the_first_and_never_lost(task: str) -> None:
    trail = [artifact(team, block(task)) for team in STAGES[:3]]
    found = audited(block(task), *trail, task=task)
    assert {(one.first, one.lost) for one in found.passages} == {("data", None)}
    assert found.traced == found.claims > 10
    assert found.untraced == ()


@pytest.mark.parametrize("task", ["anomaly", "ecology"])
def test_the_summary_in_prose_is_found_as_well_as_the_block(task: str) -> None:
    prose = get_task(task).summary(true(task))
    found = audited(block(task), Trace("model", "summary", "ml_engineer", prose), task=task)
    at = Counter(one.first for one in found.passages)
    assert at["model"] > 0.6 * len(found.passages)


def test_another_data_sets_findings_are_nobodys_true_ones() -> None:
    task = get_task("anomaly")
    other = oracle_report(task, made("anomaly", 1).truth)
    found = audited(other, artifact("model", other))
    assert ways(found, "events")[None, None] >= len(true().events) - 1
    assert ways(found, "drifting_sensors") == {(None, None): len(true().drifting_sensors)}


def test_a_finding_is_lost_at_the_team_after_the_last_that_handed_it_on() -> None:
    event = true().events[0].model_dump(mode="json")
    states = block(events=[event])
    assert ways(audited("Nothing.", artifact("data", states)), "events")["data", "model"] == 1
    assert ways(audited("Nothing.", artifact("data", states), artifact("model", states)), "events")["data", "eval"] == 1
    assert ways(audited("Nothing.", artifact("eval", states)), "events")["eval", "writing"] == 1
    assert ways(audited(states, artifact("eval", states)), "events")["eval", None] == 1


def test_a_finding_that_code_showed_and_nobody_wrote_down_is_found_and_lost_by_nobody() -> None:
    event = true().events[0].model_dump(mode="json")
    shown = json.dumps({"events": [event]})
    found = audited("Nothing.", output("model", shown), artifact("model", "We found events."))
    assert set(ways(found, "events")) == {(None, None)}
    later = audited("Nothing.", artifact("data", block(events=[event])), output("eval", shown))
    assert ways(later, "events")["data", "model"] == 1


def test_a_team_hands_on_what_the_summary_of_a_task_says() -> None:
    told = Trace("model", "summary", "ml_engineer", f"There are {len(true().sensors)} sensors.")
    assert ways(audited("Nothing.", told), "n_sensors") == {("model", "eval"): 1}


def test_a_version_that_was_replaced_does_not_count_as_handed_on() -> None:
    event = true().events[0].model_dump(mode="json")
    trail = [artifact("model", block(events=[event])), artifact("model", "All of it was wrong.")]
    assert ways(audited("Nothing.", *trail), "events")["model", "model"] == 1


def test_what_stands_in_the_paper_alone_appeared_there() -> None:
    found = audited(block(), artifact("data", "There are some sensors."))
    assert ways(found, "events") == {("writing", None): len(true().events)}
    assert found.traced == 0


def test_without_a_paper_everything_found_is_lost() -> None:
    found = audited(None, artifact("eval", block()))
    assert {(one.first, one.lost) for one in found.passages} == {("eval", "writing")}
    assert (found.claims, found.traced) == (0, 0)


def test_a_finding_has_to_be_right_by_the_tasks_own_tolerance() -> None:
    event = true().events[-1].model_dump(mode="json")
    near = {**event, "start": event["start"] + 1, "end": event["end"] + 1}
    far = {**event, "start": event["start"] + 700, "end": event["end"] + 700}
    assert ways(audited("Nothing.", artifact("eval", block(events=[near]))), "events")["eval", "writing"] == 1
    assert ways(audited("Nothing.", artifact("eval", block(events=[far]))), "events")["eval", "writing"] == 0


def test_a_wrong_sign_in_a_record_is_no_finding() -> None:
    effect = true("ecology").interactions[0].model_dump(mode="json")
    turned = {**effect, "sign": "-" if effect["sign"] == "+" else "+"}
    for stated, times in ((effect, 1), (turned, 0)):
        found = audited("Nothing.", artifact("eval", block("ecology", interactions=[stated])), task="ecology")
        assert ways(found, "interactions")["eval", "writing"] == times


def test_a_name_counts_only_where_the_text_speaks_of_the_finding() -> None:
    [sensor, *_] = true().drifting_sensors
    listed = audited("Nothing.", artifact("data", f"The columns are sample, {sensor} and shift."))
    told = audited("Nothing.", artifact("data", f"Only {sensor} drifts, slowly."))
    assert ways(listed, "drifting_sensors")["data", "model"] == 0
    assert ways(told, "drifting_sensors")["data", "model"] == 1


def test_kinds_and_signs_are_no_names_that_a_text_has_to_hold() -> None:
    event = true().events[0].model_dump(mode="json")
    [item] = items_of(get_task("anomaly").findings.model_validate({"events": [event]}))
    assert item.names == tuple(event["sensors"])


def test_numbers_of_the_paper_are_traced_to_the_digits_they_are_written_with() -> None:
    paper = (
        "We kept 4341 rows. The error fell to 0.53, the share is 5.7 %. The model has an R2 of 0.91. We saw 3 groups."
    )
    found = audited(paper, output("data", "rows 4341"), output("model", "rmse=0.5342 share=0.0572"))
    assert (found.claims, found.traced) == (4, 3)
    assert found.untraced == ("0.91",)
    # 0.05 less half of its last digit is no float that is equal to 0.045.
    assert audited("The error is 0.05.", output("data", "0.045")).untraced == ()


def test_what_the_writing_team_wrote_itself_traces_nothing() -> None:
    found = audited("The error is 0.53.", artifact("writing", "The error is 0.53.", "notes"))
    assert (found.claims, found.traced) == (1, 0)


def test_a_finding_is_traced_only_if_its_parts_stand_together() -> None:
    one, two = (event.model_dump(mode="json") for event in true().events[:2])
    paper = block(events=[one])
    whole = audited(paper, output("model", json.dumps({"events": [one, two]})))
    swapped = {**two, "start": one["start"]}, {**one, "start": two["start"]}
    apart = audited(paper, output("model", json.dumps({"events": list(swapped)})))
    assert whole.traced == 1
    assert apart.traced == 0
    assert apart.untraced[0].startswith("events: ")


@pytest.mark.parametrize("text", ["", "\x00" * 9, '{"events": [' * 400, "```findings\n{}", "9" * 9_000, "[" * 9_999])
def test_hostile_trails_and_papers_are_audited(text: str) -> None:
    found = audited(f"Text. {text}", artifact("data", text), output("model", text))
    assert {(one.first, one.lost) for one in found.passages} == {(None, None)}


async def test_the_judge_gives_the_traced_share_or_says_why_not() -> None:
    task, truth = get_task("anomaly"), true()
    judge = HandoffJudge()
    trail = (output("data", "rows 4341"),)
    [half] = await judge.score(Report("4341 rows, 0.91.", task, truth, {}, trail, STAGES))
    assert (half.metric, half.value) == ("traced", 0.5)
    assert half.reason.startswith("1 of 2 claims stand in earlier work")
    [nothing] = await judge.score(Report("Words.", task, truth, {}, trail, STAGES))
    [unknown] = await judge.score(Report("4341 rows", task, truth))
    assert nothing.value is unknown.value is None
    assert json.loads(json.dumps(dict(half.details))) == half.details


async def test_the_verified_judge_tells_the_handoff_in_its_details() -> None:
    task, truth = get_task("anomaly"), true()
    report = Report(block(), task, truth, {}, (artifact("model", block()),), STAGES)
    [score, *_] = await VerifiedJudge().score(report)
    told = score.details["handoff"]
    assert told["claims"] == told["traced"] > 0
    assert {"finding", "item", "first", "lost"} == set(told["findings"][0])
    [alone, *_] = await VerifiedJudge().score(Report(block(), task, truth))
    assert "handoff" not in alone.details


async def test_a_task_that_fails_in_the_audit_leaves_the_accuracy_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    task = get_task("anomaly")

    def fails(_truth: BaseModel) -> BaseModel:
        raise KeyError("sensors")

    monkeypatch.setattr(task, "oracle", fails)
    text = block()
    [score, *_] = await VerifiedJudge().score(Report(text, task, true(), {}, (artifact("model", text),), STAGES))
    assert score.value == pytest.approx(1.0)
    assert "KeyError" in score.details["handoff"]["problem"]


def test_findings_that_a_team_stated_are_followed_like_an_artifact() -> None:
    count = len(true().sensors)
    stated = Trace("data", "findings", "data_lead", json.dumps({"n_sensors": count}))
    wrong = Trace("model", "findings", "ml_engineer", json.dumps({"n_sensors": 3 * count}))
    assert ways(audited(block(n_sensors=count), stated), "n_sensors") == {("data", None): 1}
    assert ways(audited("Nothing.", stated, wrong), "n_sensors") == {("data", "model"): 1}
    mended = Trace("data", "findings", "data_lead", json.dumps({"n_sensors": 3 * count}))
    assert ways(audited("Nothing.", stated, mended), "n_sensors") == {("data", "data"): 1}


def test_what_the_author_stated_with_the_tool_is_in_the_paper() -> None:
    count = len(true().sensors)
    earlier = Trace("eval", "findings", "eval_lead", json.dumps({"n_sensors": count}))
    report = Report("Nothing.", get_task("anomaly"), true(), {}, (earlier,), STAGES, stated={"n_sensors": count})
    found = audit(report, report.task.findings(n_sensors=count))
    assert ways(found, "n_sensors") == {("eval", None): 1}
    assert (found.claims, found.traced) == (1, 1)


async def test_the_details_say_what_the_findings_of_each_team_were_worth() -> None:
    task = get_task("anomaly")
    right = json.dumps(task.oracle(true()).model_dump(mode="json"))
    trail = (
        Trace("data", "findings", "a", right),
        Trace("data", "findings", "a", "{}"),
        Trace("eval", "findings", "b", right),
    )
    score, *_ = await VerifiedJudge().score(Report("Nothing.", task, true(), {}, trail, STAGES))
    assert score.value == 0.0
    assert {team: said["accuracy"] for team, said in score.details["teams"].items()} == {
        "data": 0.0,
        "eval": pytest.approx(1.0),
    }
    assert score.details["teams"]["data"]["findings"] == {}


@pytest.mark.parametrize(("stated", "unseen"), [("PT111", False), ("FT222", True), ("FT333", False)])
async def test_a_finding_is_unseen_if_only_a_tied_name_is_stated(stated: str, unseen: bool) -> None:
    truth = true().model_copy(update={"most_affected_sensors": ["PT111", "FT222"]})
    paper = block(most_affected_sensor=stated)
    report = Report(paper, get_task("anomaly"), truth, {}, (artifact("data", paper),), STAGES)
    [accuracy, *_] = await VerifiedJudge().score(report)
    assert is_unseen(accuracy.details, "most_affected_sensor") == unseen
