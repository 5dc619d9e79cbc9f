"""Decisions that the server holds to their schema: what is sent, and what is refused before anything is."""

from __future__ import annotations

import json
from typing import Any

import pytest

import labmates
from labmates.condition_types import Kind
from labmates.models.names import name_given
from labmates.models.scripted import make_baseline
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.protocol.experiment import make_condition
from tests.support.form_filler import FormFiller
from tests.support.openai_server import Answer, Json, OpenAIServer, fault, serve_model

GAME = {"game": "o-ring", "group_size": 3, "rounds": 1}
DILEMMA = {"game": "prisoners", "mechanism": "none", "reasoning": "none"}


async def played(store: Store, server: OpenAIServer, kind: str, **condition: Any) -> RunRecord:
    settings = {"models": {"base_url": server.base_url, "max_retries": 0}}
    [run] = await labmates.arun(Kind(kind), store=store.url, settings=settings, **condition)
    return run


async def test_every_decision_of_a_game_has_its_schema(store: Store) -> None:
    with OpenAIServer(serve_model(FormFiller(), latency=0)) as server:
        run = await played(store, server, "game", model="openai:m", structured=True, **GAME)
        assert run.status == "completed"
        formats = [request.body["response_format"] for request in server.requests]
        plain = await played(store, server, "game", model="openai:m", **GAME)
        assert all("response_format" not in one.body for one in server.requests[len(formats) :])
    for one in formats:
        assert (one["type"], one["json_schema"]["strict"]) == ("json_schema", True)
        schema = one["json_schema"]["schema"]
        assert schema["additionalProperties"] is False
        [(name, field)] = schema["properties"].items()
        assert schema["required"] == [name]
        assert (field["type"], field["minimum"]) == ("integer", 0)
    assert run.key != plain.key


async def test_scripted_and_real_models_meet_in_a_structured_dilemma(store: Store) -> None:
    def answer(request: Json, _: int) -> Answer:
        schema = request["response_format"]["json_schema"]["schema"]
        return Answer(text=json.dumps(dict.fromkeys(schema["required"], 50)))

    with OpenAIServer(answer) as server:
        entrants = ["openai:m", "scripted:defect"]
        run = await played(store, server, "dilemma", entrants=entrants, structured=True, **DILEMMA)
        assert server.requests
    assert run.status == "completed"
    assert run.metrics["failed_decision_rate"] == 0


async def test_a_server_that_refuses_the_format_is_an_error(store: Store) -> None:
    body = {"error": {"message": "response_format is not supported", "param": "response_format"}}
    with OpenAIServer(lambda request, _: fault(400, body) if "response_format" in request else Answer()) as server:
        run = await played(store, server, "game", model="openai:m", structured=True, **GAME)
    assert run.status == "failed"
    assert "response_format" in str(run.error)


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (
            "game",
            {**GAME, "model": name_given(make_baseline("random"))},
            "structured: the provider 'object' of object:",
        ),
        ("game", {**GAME, "model": "openai:m", "reasoning": "cot"}, "no room for reasoning (cot)"),
        ("game", {**GAME, "model": "openai:m?response_format.type=text"}, "sets response_format itself"),
        ("dilemma", {**DILEMMA, "entrants": ["openai:m?reasoning=cot"]}, "no room for reasoning (cot)"),
    ],
)
def test_what_can_not_be_held_to_a_schema_is_refused(kind: str, values: dict[str, Any], said: str) -> None:
    condition = make_condition(kind, {**values, "structured": True})
    with pytest.raises(labmates.UsageError) as refused:
        condition.check()
    assert said in str(refused.value)
