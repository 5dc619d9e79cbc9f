"""A small real model plays one rollout of a dilemma, a game and a tournament."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from langchain_core.messages import AIMessage

from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates_gym.catalog import environments
from labmates_gym.parallel import LabmatesEnv
from labmates_gym.playing import Question
from tests.support.small_model import served

PLAYED = {listed.name: listed for listed in environments("train")}


@pytest.fixture(scope="module")
def small_model() -> Iterator[tuple[str, ModelOptions]]:
    with served() as model:
        yield model


@pytest.mark.slow("packages/labmates-gym/tests/gym/test_parallel.py")
@pytest.mark.needs("gguf")
@pytest.mark.parametrize("name", ["dilemma/prisoners/none", "game/weakest-link", "tournament/ri"])
def test_a_small_model_plays_a_rollout(name: str, small_model: tuple[str, ModelOptions]) -> None:
    listed = PLAYED[name]
    small: dict[str, dict[str, object]] = {
        "game": {"rounds": 1, "groups": 1, "group_size": 2},
        "tournament": {"rounds": 2, "team_size": "1"},
        "repetition": {"terms": {"rounds": 2}},
        "reputation": {"terms": {"rounds": 1}},
    }
    more = {**small.get(listed.kind, {}), **small.get(str(listed.condition.get("mechanism")), {})}
    values = {**listed.condition, "repair_turns": 0, "max_output_tokens": 256, **more}
    env = LabmatesEnv(listed.kind, **values)
    with asyncio.Runner() as runner:
        model, options = small_model
        hub = runner.run(ModelHub(options).__aenter__())
        try:
            _, infos = env.reset(seed=0)
            texts: list[str] = []
            while env.agents:
                asked = {agent: info["question"] for agent, info in infos.items() if info["question"] is not None}
                said = runner.run(_answers(hub, model, asked))
                texts += [str(message.text) for message in said.values()]
                *_, infos = env.step(said)
        finally:
            env.close()
            runner.run(hub.__aexit__(None, None, None))
    assert any(texts)
    assert all(info["rewards"].keys() == {"own", "welfare"} for info in infos.values())


async def _answers(hub: ModelHub, model: str, asked: dict[str, Question]) -> dict[str, AIMessage]:
    replies = {}
    for agent, question in asked.items():
        tools = [dict(tool) for tool in question.tools]
        reply = await hub.call(model, question.messages, tools=tools, seed=1, max_output_tokens=32)
        replies[agent] = reply.message
    return replies
