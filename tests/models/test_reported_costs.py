"""The bill of a call is what the server says that it cost, else its price."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.conftest import Ask
from tests.support.openai_server import Answer, OpenAIServer

COUNTS = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
REPORTED: dict[str, tuple[dict[str, Any], dict[str, str], int | None]] = {
    "OpenRouter": ({"cost": 2, "is_byok": False, "cost_details": {"upstream_inference_cost": 2}}, {}, 2_000_000),
    "OpenRouter, own key": ({"cost": 0.95, "cost_details": {"upstream_inference_cost": 19}}, {}, 19_950_000),
    "OpenRouter, own key alone": ({"cost": 0, "cost_details": {"upstream_inference_cost": 0.000001}}, {}, 1),
    "OpenRouter, free": ({"cost": 0, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}, {}, 0),
    "a fraction of a micro-dollar": ({"cost": 0.00001234}, {}, 13),
    "no fraction by way of floats": ({"cost": 0.000007}, {}, 7),
    "Perplexity": ({"cost": {"input_tokens_cost": 0.1, "total_cost": 0.006}}, {}, 6_000),
    "xAI": ({"cost_in_usd_ticks": 37_756_000}, {}, 3_776),
    "DeepInfra": ({"estimated_cost": 0.0000268}, {}, 27),
    "LiteLLM": ({}, {"x-litellm-response-cost": "0.000415"}, 415),
    "LiteLLM, unknown price": ({}, {"x-litellm-response-cost": "0.0"}, None),
    "both": ({"cost": 0.5}, {"x-litellm-response-cost": "0.4"}, 500_000),
    "nothing": ({}, {}, None),
    "text": ({"cost": "much"}, {}, None),
    "negative": ({"cost": -1}, {}, None),
    "endless": ({"cost": 1e300}, {"x-litellm-response-cost": "inf"}, None),
    "true": ({"cost": True}, {"x-litellm-response-cost": "None"}, None),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", REPORTED)
async def test_a_reported_cost_is_the_bill(ask: Ask, case: str, stream: bool) -> None:
    usage, headers, cost = REPORTED[case]
    with OpenAIServer(Answer(usage={**COUNTS, **usage}, headers=headers)) as server:
        reply = await ask(server, stream=stream)
    assert (reply.bill, reply.bill_from) == (cost, "" if cost is None else "server")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (100, 10)


async def test_a_failed_attempt_is_billed_by_what_it_reports(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Usage by the price, a cost as it is, and neither nothing; the bill of the run has all of it."""
    import labmates
    from labmates.models.connection import Backoff
    from labmates.records.events import ChargeEvent
    from labmates.records.store import Store
    from labmates.studies.replay import replay
    from tests.support.form_filler import FormFiller
    from tests.support.openai_server import Json, serve_model

    monkeypatch.setattr("labmates.models.hub.Backoff", lambda: Backoff(first=0.001, longest=0.002))
    failing = [
        Answer(text="half", finish="error", usage={**COUNTS}),
        Answer(body={"choices": [{"error": {"message": "lost"}}], "usage": {**COUNTS, "cost": 0.01}}),
        Answer(body={"error": {"message": "lost"}, "usage": {"prompt_tokens": 0, "cost": 0}}),
    ]
    play = serve_model(FormFiller(), latency=0)

    async def behave(request: Json, number: int) -> Answer:
        if number < len(failing):
            return failing[number]
        answer = play(request, number)
        return answer if isinstance(answer, Answer) else await answer

    store = f"sqlite:///{tmp_path}/runs.db"
    with OpenAIServer(behave) as server:
        model = f"openai:m?base_url={server.base_url}&price.input=1&price.output=2"
        game: Any = {"game": "public-goods", "rounds": 1, "group_size": 2, "groups": 1}
        settings = {"models": {"max_concurrent_calls": 1}}
        [run] = await labmates.arun("game", store=store, model=model, settings=settings, **game)
    with Store(store) as database:
        charges = [event for event in database.events(run.id) if isinstance(event, ChargeEvent)]
        failed = [charge for charge in charges if charge.uncertain]
        assert sorted((charge.bill, charge.estimated) for charge in failed) == [(120, False), (10_000, False)]
        assert run.usage.failed_replies == 0
        assert float(run.bill or 0) == sum(charge.bill or 0 for charge in charges) / 1e6
        assert (await replay(database, database.run(run.id))).is_same
