"""The reference describes every field of events and every parameter that a user can set."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import BaseModel

from labmates.models.options import ModelOptions
from labmates.records.events import Event, EventBase
from labmates.studies.settings import RunSettings
from labmates.studies.spec import Concurrency, Connection, Sample, StudySpec
from sitegen.markup import read_docstring
from sitegen.reference import events_page

EVENTS: tuple[type[EventBase], ...] = get_args(get_args(Event)[0])


@pytest.mark.parametrize("event", [EventBase, *EVENTS])
def test_each_field_of_an_event_has_a_description(event: type[EventBase]) -> None:
    about, descriptions = read_docstring(event)
    own = [name for name in event.model_fields if name in event.__annotations__ and name != "type"]
    assert own
    assert about
    assert [name for name in own if not descriptions.get(name, "").strip()] == []


def test_the_page_of_events_has_no_empty_description() -> None:
    rows = [line for line in events_page().splitlines() if line.startswith("| `")]
    assert len(rows) > 80
    assert [row for row in rows if not row.split(" | ")[-1].strip(" |")] == []


@pytest.mark.parametrize("model", [ModelOptions, RunSettings, StudySpec, Sample, Concurrency, Connection])
def test_each_parameter_of_settings_and_studies_has_a_description(model: type[BaseModel]) -> None:
    assert [name for name, field in model.model_fields.items() if not field.description] == []
