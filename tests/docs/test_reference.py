"""What pages of the site are made of: the whole reference, formulas without a script, and nothing of another host."""

from __future__ import annotations

import re
from typing import get_args

import click
import pytest
from pydantic import BaseModel

from labmates.cli.main import labmates
from labmates.models.options import ModelOptions
from labmates.records.events import Event, EventBase
from labmates.records.run import RunRecord, Usage
from labmates.records.view import run_json
from labmates.studies.settings import RunSettings
from labmates.studies.spec import Concurrency, Connection, Sample, StudySpec
from labmates.workflows.protocol.experiment import EXPERIMENTS
from sitegen.commands import command_pages
from sitegen.markup import read_docstring
from sitegen.maths import draw_formulas
from sitegen.reference import events_page, reference_pages
from tests.support.plugins import ROOT

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


def test_the_reference_has_every_verb_kind_and_key() -> None:
    pages = dict([*reference_pages(), *command_pages()])
    for verb in labmates.list_commands(click.Context(labmates)):
        assert f"reference/commands/{verb}.md" in pages
    for kind in EXPERIMENTS.names():
        page = pages[f"reference/conditions/{kind}.md"]
        for name, field in EXPERIMENTS.get(kind).condition.model_fields.items():
            assert f"`{name}`" in page
            assert field.description
    sample = RunRecord(id="", kind="", key="", replicate=0, seed=0, condition={}, models=[])
    for key in (*run_json(sample, []), *vars(Usage())):
        row = re.search(rf"^\| `{key}` \|(.*)\|", pages["reference/record.md"], re.MULTILINE)
        assert row is not None, key
        assert row[1].strip() or key == "scores"


def test_no_page_is_written_with_a_file_of_another_host() -> None:
    loads = re.compile(
        r"""!\[[^]]*\]\((?:https?:)?//|(?:src|srcset|data)=["']?(?:https?:)?//|@import|url\((?:https?:)?//"""
    )
    folders = [ROOT / "docs", *ROOT.glob("packages/*/docs")]
    pages = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".md", ".css", ".html")]
    assert len(pages) > 40
    assert [path for path in pages if loads.search(path.read_text("utf-8"))] == []
    assert "font: false" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_formulas_are_drawn_without_a_script() -> None:
    drawn = draw_formulas('<p>so <span class="arithmatex">\\(x_i^2\\)</span></p>', "page.md")
    assert "<math" in drawn
    assert "arithmatex" not in drawn
