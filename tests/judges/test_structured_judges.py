"""Answers of judges that the server holds to their schema: what is sent, and what is refused before anything is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import labmates
from labmates.errors import UsageError
from labmates.judges.extraction import Extractor
from labmates.judges.panel import make_panel
from labmates.judges.rubric import RubricJudge
from labmates.judges.verified import VerifiedJudge
from labmates.models.catalog import Catalog
from labmates.models.check import check_models
from labmates.models.options import ModelOptions
from labmates.models.structured import format_of
from labmates.records.store import Store
from labmates.tasks.registry import TASKS, get_task
from labmates.workflows.calls.assessing import JudgeCall
from tests.judges.conftest import MODEL, answer, interviewing, plant, report_of
from tests.support.openai_server import Answer, OpenAIServer

HELD = f"{MODEL}?structured=true"


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a JSON schema that have members."""
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        yield schema
    for part in parts:
        yield from objects(part)


async def test_a_rubric_judge_sends_a_strict_schema_where_it_is_asked_to() -> None:
    log: list[JudgeCall] = []
    with OpenAIServer(Answer(text=answer())) as server:
        async with interviewing(server, log) as interviewer:
            scores = await RubricJudge(HELD, *interviewer).score(report_of())
            await RubricJudge(MODEL, *interviewer).score(report_of())
    held, plain = (request.body for request in server.requests)
    told = held.pop("response_format")
    assert held["messages"] == plain["messages"]
    assert held.keys() == plain.keys(), "nothing else of the request changes"
    assert (told["type"], told["json_schema"]["name"], told["json_schema"]["strict"]) == ("json_schema", "Rating", True)
    found = list(objects(told["json_schema"]["schema"]))
    assert len(found) == 2
    for part in found:
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])
    assert "minLength" not in json.dumps(told), "OpenAI's strict mode refuses it"
    assert {score.judge for score in scores} == {f"rubric:{HELD}"}


async def test_extracted_findings_are_held_to_the_tasks_schema() -> None:
    log: list[JudgeCall] = []
    stated = get_task("anomaly").oracle(plant().truth).model_dump(mode="json")
    with OpenAIServer(Answer(text=json.dumps(stated))) as server:
        async with interviewing(server, log) as interviewer:
            [score, *_] = await VerifiedJudge(Extractor(HELD, *interviewer)).score(report_of("Some sensor drifts."))
    told = server.requests[0].body["response_format"]["json_schema"]
    assert told["strict"] is False, "findings may be left out"
    assert set(told["schema"]["properties"]) == set(get_task("anomaly").findings.model_fields)
    assert score.value == pytest.approx(1.0)
    assert HELD in score.version


@pytest.mark.parametrize("name", TASKS.names())
def test_every_task_has_a_schema_of_its_findings(name: str) -> None:
    schema = format_of(get_task(name).findings)
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("anthropic:m?structured=true", "the provider 'anthropic' of anthropic:m"),
        ("openai:m?structured=true&response_format.type=json_object", "sets response_format itself"),
        ("openai:m?structured=true&capabilities.json_replies=false", "capabilities.json_replies: false"),
    ],
)
async def test_a_judge_that_can_not_be_held_is_refused_before_the_first_call(reference: str, told: str) -> None:
    catalog = Catalog(ModelOptions(base_url="http://127.0.0.1:9/v1" if "openai" in reference else None), named={})
    panel = make_panel([catalog.name_of(reference)], always=())
    with pytest.raises(UsageError) as refused:
        await check_models(panel.models, catalog.options())
    assert told in str(refused.value)


async def test_a_player_can_not_be_structured_as_judges_are(store: Store) -> None:
    with OpenAIServer() as server:
        settings = {"models": {"base_url": server.base_url}}
        with pytest.raises(UsageError, match="structured is a setting of judges; players"):
            await labmates.arun("game", game="o-ring", model=HELD, store=store.url, settings=settings)
    assert server.requests == []


def test_a_setting_that_says_no_is_left_out_of_the_name() -> None:
    assert Catalog(named={}).name_of(f"{MODEL}?structured=false") == MODEL
