"""Personas: a text for one model, player or seat, after what all share, in games, dilemmas, tournaments and the lab."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.api import arun, compare
from labmates.condition_types import Kind
from labmates.errors import UsageError
from labmates.models.scripted import make_baseline
from labmates.records.store import Store
from labmates.studies.replay import replay
from tests.support.openai_server import Answer, Json, OpenAIServer, serve_model

TEXT = "You care about what everyone earns."
PLAIN, KIND = "openai:test-model", f"openai:test-model?persona={TEXT}"
NAMED = "openai:test-model?persona=you-care-about-080fc30d"
CONDITIONS: list[tuple[str, dict[str, Any]]] = [
    ("game", {"game": "public-goods", "group_size": 2, "groups": 1, "rounds": 2, "model_for": {"A1": KIND}}),
    ("dilemma", {"game": "prisoners", "mechanism": "repetition(rounds=2)", "entrants": [PLAIN, KIND]}),
    ("tournament", {"structure": "gc", "rounds": 2, "team_size": "2", "model_for": {"B": KIND}}),
    (
        "science",
        {"task": "anomaly", "difficulty": "easy", "max_turns": 1, "team_size": 2, "model_for": {"eval": KIND}},
    ),
]


def settings_for(server: OpenAIServer) -> dict[str, Any]:
    models = {"base_url": server.base_url, "max_retries": 0}
    return {"models": models, "sandbox": "unsafe-local"}


def system_texts(server: OpenAIServer) -> list[str]:
    return [str(request.body["messages"][0]["content"]) for request in server.requests]


@pytest.mark.parametrize(("kind", "condition"), CONDITIONS)
async def test_only_its_model_gets_a_persona_once_and_after_what_all_share(
    store: Store, kind: str, condition: dict[str, Any]
) -> None:
    model = {} if kind == "dilemma" else {"model": PLAIN}
    with OpenAIServer(Answer(text="I can't say.")) as server:
        [run] = await arun(Kind(kind), store=store.url, settings=settings_for(server), **model, **condition)
        texts = system_texts(server)
    assert run.error is None
    assert set(run.models) == {PLAIN, NAMED}
    told = [text for text in texts if TEXT in text]
    assert 0 < len(told) < len(texts)
    assert all(text.endswith(f"\n\n{TEXT}") and text.count(TEXT) == 1 for text in told)
    if kind in ("game", "dilemma"):
        assert {text.removesuffix(f"\n\n{TEXT}") for text in told} <= set(texts) - set(told), "all else is the same"
    assert (await replay(store, store.run(run.id))).follows


async def test_a_persona_is_part_of_the_condition_and_its_text_of_the_record(store: Store) -> None:
    game: dict[str, Any] = {"game": "public-goods", "group_size": 2, "groups": 1, "rounds": 1}
    with OpenAIServer(Answer(text="I can't say.")) as server:
        runs = [
            (await arun("game", store=store.url, settings=settings_for(server), model=model, **game))[0]
            for model in (PLAIN, KIND)
        ]
        assert len({store.run(run.id).key for run in runs}) == 2
        assert store.run(runs[1].id).settings["models"]["entries"][NAMED]["persona_text"] == TEXT
        with pytest.raises(UsageError, match="text of its persona is not known"):
            await arun("game", store=store.url, settings=settings_for(server), model=NAMED, **game)


@pytest.mark.parametrize("model", [f"scripted:random?persona={TEXT}", f"human:ann?persona={TEXT}"])
async def test_baselines_and_people_have_no_persona(store: Store, model: str) -> None:
    with pytest.raises(UsageError, match=r"takes no settings|has one setting"):
        await arun("game", store=store.url, game="public-goods", model=model)


@pytest.mark.slow("tests/workflows/test_personas.py")
async def test_the_effect_of_a_persona_on_the_lab_is_recovered(store: Store) -> None:
    """The server's model is a colleague who hardly takes trouble, and who does where the persona asks for it."""
    selfish, generous = (
        serve_model(make_baseline(f"colleague/generosity={x}/care={x}"), latency=0) for x in (0.1, 0.9)
    )

    async def behave(request: Json, number: int) -> Answer:
        chosen = generous if TEXT in str(request["messages"][0]["content"]) else selfish
        return await chosen(request, number)

    lab: dict[str, Any] = {"task": "ecology", "difficulty": "easy", "max_turns": 1, "deliberation_rounds": 0}
    with OpenAIServer(behave) as server:
        settings = settings_for(server)
        for model in (PLAIN, KIND):
            await arun("science", store=store.url, replicates=8, settings=settings, model=model, team_size=2, **lab)
    [found, *_costs] = compare(store=store.url, by=("model",), metric="heuristic_quality").json_objects()
    sign = 1 if found["first"] == NAMED else -1
    assert sign * found["difference"] > 0.1
    assert found["p"] < 0.05


async def test_an_empty_persona_is_refused_in_plain_words(store: Store) -> None:
    with pytest.raises(UsageError, match="persona is empty: write its text, or leave it out"):
        await arun("game", store=store.url, game="public-goods", model="openai:test-model?persona=")
