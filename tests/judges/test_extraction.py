"""Findings read out of prose by a model: used only where a report has no block, marked, and compared by code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from labmates.judges.base import Score
from labmates.judges.extraction import Extractor
from labmates.judges.verified import VerifiedJudge
from labmates.tasks.registry import get_task
from labmates.workflows.calls.assessing import JudgeCall
from tests.judges.conftest import MODEL, interviewing, plant, report_of
from tests.support.openai_server import Answer, OpenAIServer, fault

PROSE = "The plant has some sensors, and one of them drifts."


def right() -> dict[str, Any]:
    findings: dict[str, Any] = get_task("anomaly").oracle(plant().truth).model_dump(mode="json")
    return findings


async def verified(answers: Answer | Sequence[Answer] | str, text: str | None = PROSE) -> tuple[Score, OpenAIServer]:
    log: list[JudgeCall] = []
    behave = Answer(text=answers) if isinstance(answers, str) else answers
    with OpenAIServer(behave) as server:
        async with interviewing(server, log) as interviewer:
            [score, *_] = await VerifiedJudge(Extractor(MODEL, *interviewer)).score(report_of(text))
    assert len(log) == len([request for request in server.requests if score.value is not None or not score.failed])
    return score, server


async def test_a_report_with_a_block_needs_no_model_and_keeps_the_plain_version() -> None:
    score, server = await verified("", text=None)
    assert score.value == pytest.approx(1.0)
    assert score.version == VerifiedJudge.version
    assert "extracted" not in score.details
    assert server.requests == []


@pytest.mark.parametrize("form", ["```findings\n{}\n```", "```json\n{}\n```", "{}", "Here you are: {} That is all."])
async def test_findings_that_a_model_reads_out_are_scored_by_code_and_marked(form: str) -> None:
    score, server = await verified(form.replace("{}", json.dumps(right())))
    assert score.value == pytest.approx(1.0)
    assert score.version.startswith(f"{VerifiedJudge.version}+{MODEL}@")
    assert score.details["extracted"]["model"] == MODEL
    assert "states no findings" in score.details["extracted"]["because"][0]
    assert (score.details["source"], score.details["readable"]) == ("extracted", True)
    assert score.reason.startswith(f"extracted by {MODEL}")
    prompt = server.requests[0].body["messages"][-1]["content"]
    assert PROSE in prompt
    assert "drifting_sensors" in prompt


async def test_the_model_that_extracts_is_not_told_the_truth() -> None:
    _, server = await verified("```findings\n{}\n```")
    sent = json.dumps(server.requests[0].body["messages"])
    assert not any(sensor in sent for sensor in plant().truth.sensors)


async def test_what_is_wrong_is_sent_back_and_in_the_end_what_is_valid_counts() -> None:
    partly = Answer(text='{"n_sensors": 99, "n_point": "some"}')
    score, server = await verified([Answer(text="It has 12."), partly, partly])
    assert score.value == 0.0
    assert "states no findings" in server.requests[1].body["messages"][-1]["content"]
    assert "'n_point'" in server.requests[2].body["messages"][-1]["content"]
    assert "1 of 8 findings stated" in score.reason
    [problem] = score.details["problems"]
    assert "'n_point'" in problem


async def test_findings_put_right_count_in_full() -> None:
    wrong = {**right(), "n_sensors": "twelve"}
    score, server = await verified([Answer(text=json.dumps(wrong)), Answer(text=json.dumps(right()))])
    assert score.value == pytest.approx(1.0)
    assert score.details["problems"] == []
    assert len(server.requests) == 2


async def test_an_object_that_is_about_something_else_is_no_findings() -> None:
    score, _ = await verified('{"completeness": 5, "quality": 5, "accuracy": 5}')
    assert score.value is None


@pytest.mark.parametrize("answer", ["```findings\n{}\n```", "```json\n{}\n```", "{}"])
async def test_a_report_that_states_nothing_earns_nothing(answer: str) -> None:
    score, _ = await verified(answer)
    assert score.value == 0.0


async def test_without_a_usable_answer_the_report_stays_unscored() -> None:
    score, server = await verified("I can't.")
    assert (score.value, score.failed) == (None, False)
    assert "could not be extracted" in score.reason
    assert len(server.requests) == 3


async def test_a_model_that_can_not_be_reached_is_to_be_tried_again() -> None:
    score, _ = await verified(fault(500))
    assert (score.value, score.failed) == (None, True)


async def test_a_missing_report_scores_zero_without_a_call() -> None:
    score, server = await verified("", text=" ")
    assert (score.value, score.version, server.requests) == (0.0, VerifiedJudge.version, [])
