"""Settings of stores that had one address for all judges (`judge_base_url`)."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from labmates.models.endpoints import endpoint_of
from labmates.models.names import parse_model
from labmates.records import schema
from labmates.records.events import ScoreEvent
from labmates.records.store import Store
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.studies.spec import StudySpec
from labmates.workflows.protocol.experiment import make_condition
from tests.judges.conftest import answer
from tests.support.openai_server import Answer, OpenAIServer

OLD = {"judge_base_url": "http://127.0.0.1:9/v1", "judges": ["openai:j", "handoff"], "extractor": "openai:e"}
ENVIRONMENT = {"LAB_KEY": "key-of-the-lab", "OPENAI_API_KEY": "another key"}


def places(settings: RunSettings) -> dict[str, tuple[str, str]]:
    """Return where each model of the judges is asked, and with which key."""
    judges = [judge for judge in (*settings.judges, settings.extractor) if judge and ":" in judge]
    found = {judge: endpoint_of(parse_model(judge), settings.models, ENVIRONMENT) for judge in judges}
    return {judge: (endpoint.address, endpoint.key) for judge, endpoint in found.items()}


def test_the_judges_of_an_old_run_are_asked_where_they_were() -> None:
    models = {"base_url": "http://127.0.0.1:8/v1", "api_key_env": "LAB_KEY"}
    settings = RunSettings.model_validate({**OLD, "models": models})
    where = ("http://127.0.0.1:9/v1", "key-of-the-lab")
    assert places(settings) == {"openai:j": where, "openai:e": where}
    player = endpoint_of(parse_model("openai:player"), settings.models, ENVIRONMENT)
    assert player.address == "http://127.0.0.1:8/v1"
    assert RunSettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize("models", [{}, {"models": {}}])
def test_old_settings_need_not_say_how_models_are_reached(models: dict[str, Any]) -> None:
    where = ("http://127.0.0.1:9/v1", "another key")
    assert places(RunSettings.model_validate({**OLD, **models})) == {"openai:j": where, "openai:e": where}


def test_an_old_run_without_an_address_of_judges_is_read_as_it_is() -> None:
    settings = RunSettings.model_validate({**OLD, "judge_base_url": None})
    assert settings.models.entries == {}
    assert settings.judges == ("openai:j", "handoff")


def test_the_judges_of_an_old_study_are_asked_where_they_were() -> None:
    data = {"name": "s", "kind": "game", "fixed": {"game": "o-ring"}, "models": ["scripted:random"]}
    spec = StudySpec.model_validate({**data, **OLD, "connection": {"api_key_env": "LAB_KEY"}})
    where = ("http://127.0.0.1:9/v1", "key-of-the-lab")
    assert places(spec.settings()) == {"openai:j": where, "openai:e": where}
    assert StudySpec.model_validate({**data, **OLD, "judge_base_url": None}).judges == tuple(OLD["judges"])


@pytest.mark.needs("bubblewrap")
async def test_a_run_of_an_old_store_goes_on_and_asks_its_judge_there(store: Store) -> None:
    condition = make_condition("science", {"task": "anomaly", "difficulty": "easy", "model": "scripted:hasty"})
    with OpenAIServer(Answer(text=answer())) as server:
        settings = RunSettings(sandbox="bubblewrap")
        session = Session(store, settings)
        [planned] = new_runs(condition, seed=0, replicates=1, settings=settings)
        old = {"judge_base_url": server.base_url, "judges": ["openai:j"], "sandbox": "bubblewrap", "models": {}}
        run = session.claims.new(planned)
        values = {"settings": old, "status": "interrupted", "worker": None, "lease": None}
        with store.database.engine.begin() as connection:
            connection.execute(sa.update(schema.runs).where(schema.runs.c.id == run.id).values(values))
        stopped = store.run(run.id)
        [ended] = await Session(store, RunSettings.model_validate(stopped.settings)).execute([stopped])
    assert ended.status == "completed"
    assert server.requests[0].body["model"] == "j"
    judges = {event.judge for event in store.events(run.id) if isinstance(event, ScoreEvent)}
    assert "rubric:openai:j" in judges
