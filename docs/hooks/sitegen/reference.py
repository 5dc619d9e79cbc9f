"""Reference pages generated from the code: conditions, settings, studies, events, records and names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from labmates.cli.options import flags_of
from labmates.games.dilemmas import DILEMMAS, get_dilemma
from labmates.games.registry import GAMES, make_game
from labmates.judges.registry import JUDGES, get_judge
from labmates.mechanisms.registry import MECHANISMS, make_mechanisms
from labmates.models.options import ModelOptions
from labmates.models.scripted import BASELINES, describe
from labmates.records.events import Event, ScoreEvent
from labmates.records.run import RunRecord, Usage
from labmates.records.view import run_json
from labmates.studies import ready
from labmates.studies.settings import RunSettings
from labmates.studies.source import find_study
from labmates.studies.spec import Concurrency, Connection, Sample, StudySpec, read_spec
from labmates.tasks.registry import TASKS, get_task
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Experiment, Metric
from sitegen.fields import field_types, fields_table
from sitegen.glossary import glossary_page
from sitegen.markup import cell, code, fence, read_docstring, table

Pages = Iterator[tuple[str, str]]


def reference_pages() -> Pages:
    """Return path and Markdown of every page."""
    for name in EXPERIMENTS.names():
        yield f"reference/conditions/{name}.md", condition_page(EXPERIMENTS.get(name))
    yield "reference/settings.md", settings_page()
    yield "reference/study-file.md", study_page()
    yield "reference/events.md", events_page()
    yield "reference/record.md", record_page()
    yield "reference/names.md", names_page()
    yield "reference/glossary.md", glossary_page()


def condition_page(kind: Experiment[Condition]) -> str:
    """Return the page of one kind of experiment."""
    about, _ = read_docstring(kind.condition)
    parts = [
        f"# `{kind.name}`",
        about,
        fence("sh", kind.example) if kind.example else "",
        "## Parameters",
        "A condition sets all of these. Use the same names under `fixed:` and `grid:` of a "
        "[study](../study-file.md) and as keywords of `labmates.run`; data frames have columns `condition.NAME`.",
        fields_table(kind.condition, flags_of(kind.condition)),
        "A condition does not include how models are reached and where code runs: see [settings](../settings.md).",
        "## Metrics",
        metrics_table(kind.metrics),
    ]
    return "\n\n".join(part for part in parts if part)


def metrics_table(metrics: tuple[Metric, ...]) -> str:
    """The metrics with their meaning and the better direction."""
    return table(
        ("Metric", "Meaning", "Better"), [(code(one.name), cell(one.text), one.better or "") for one in metrics]
    )


def settings_page() -> str:
    """Return the page of settings."""
    return "\n\n".join(
        [
            "# Settings",
            "Settings are independent of conditions. They are stored with each run, so that it can be resumed; API "
            "keys are never stored. In Python, pass them as `settings=`.",
            "## How models are reached",
            fields_table(ModelOptions, flags_of(ModelOptions)),
            "## Everything else",
            fields_table(RunSettings, lambda name: "" if name in ("models", "salt") else flags_of(RunSettings)(name)),
        ]
    )


def study_page() -> str:
    """Return the page of a study's file."""
    parts = [
        "# The file of a study",
        "One YAML file; [Studies](../studies/README.md) shows one. Parameters under `fixed:` and `grid:` are those "
        "of the kind's condition.",
        fields_table(StudySpec),
    ]
    for name, model in (("sample", Sample), ("concurrency", Concurrency), ("connection", Connection)):
        parts += [f"## `{name}`", read_docstring(model)[0], fields_table(model)]
    return "\n\n".join([*parts, "## Studies that come with labmates", _ready_studies()])


def events_page() -> str:
    """Return the page of events, a section for each type."""
    parts = [
        "# Events",
        "The events of a run, in order. `labmates show RUN --events --json` prints one JSON object per event, and "
        '`labmates.load("events")` returns them as a data frame. Long texts and pictures are stored once, as '
        "bodies; an event holds their numbers.",
        "Every event has `at` (Unix time in seconds), `step` (the stable name of its step, the same when a run is "
        "resumed), `team` and `agent`.",
    ]
    for event in get_args(get_args(Event)[0]):
        about, attributes = read_docstring(event)
        schema = event.model_json_schema()["properties"]
        common = {"at", "step", "team", "agent", "type"}
        rows = [[name, attributes.get(name, "")] for name in schema if name not in common]
        types = field_types(event)
        cells = [[f"`{name}`", types[name], cell(said)] for name, said in rows]
        names = schema["type"].get("enum") or [schema["type"]["const"]]
        heading = "## " + ", ".join(f"`{name}`" for name in names)
        parts += [heading, about, table(["Field", "Type", "Description"], cells)]
    return "\n\n".join(parts)


def record_page() -> str:
    """Return the page of the JSON object that stands for a run."""
    sample = RunRecord(id="", kind="", key="", replicate=0, seed=0, condition={}, models=[])
    _, attributes = read_docstring(RunRecord)
    _, of_usage = read_docstring(Usage)
    _, of_score = read_docstring(ScoreEvent)
    keys = [[f"`{name}`", cell(attributes.get(name, ""))] for name in run_json(sample, [])]
    usage = [[f"`{name}`", cell(text)] for name, text in of_usage.items()]
    score = [[f"`{name}`", cell(of_score[name])] for name in ("judge", "metric", "value", "reason")]
    return "\n\n".join(
        [
            "# The record of a run",
            "`labmates run`, `labmates show` and `labmates fork` with `--json` print one such object per run, one per "
            "line, and nothing else on standard output. `labmates export` writes the same keys as columns and "
            "joins nested keys with dots, for instance `condition.task` and `scores.verified.accuracy`.",
            table(["Key", "Description"], keys),
            "## `usage`",
            table(["Key", "Description"], usage),
            "## Each of `scores`",
            table(["Key", "Description"], score),
            "## Exit codes",
            table(
                ["Code", "What it means"],
                [
                    ["0", "all runs ended as they should; an exhausted budget counts as ended"],
                    ["1", "a run failed or is invalid, or a request could not be carried out"],
                    ["2", "wrong usage; the message is on standard error"],
                    ["75", "paused: a provider takes no calls for hours; the message says when to resume"],
                    ["130", "interrupted"],
                ],
            ),
        ]
    )


def names_page() -> str:
    """Return the page of names: tasks, games, dilemmas, mechanisms, judges, baselines."""
    lists = (
        ("Science tasks", "--task", TASKS.names(), lambda name: get_task(name).title),
        ("Behavioural games", "--game", GAMES.names(), lambda name: make_game(name).title),
        ("Social dilemmas", "--game", DILEMMAS.names(), lambda name: get_dilemma(name).title),
        ("Mechanisms", "--mechanism", MECHANISMS.names(), lambda name: make_mechanisms(name)[0].summary),
        ("Judges", "--judge", JUDGES.names(), lambda name: read_docstring(type(get_judge(name)))[0].split("\n\n")[0]),
        ("Scripted baselines", "--model scripted:", BASELINES.names(), describe),
    )
    parts = [
        "# What comes with labmates",
        "All tasks, games, mechanisms, judges and baselines. [Plug-ins](../plugins.md) can add to each list.",
    ]
    for title, option, names, said in lists:
        joined = option if option.endswith(":") else f"{option} "
        parts += [
            f"## {title}",
            table(["Name", "Description"], [[code(joined + one), cell(said(one))] for one in names]),
        ]
    return "\n\n".join([*parts, "## Studies", _ready_studies()])


def _ready_studies() -> str:
    found = {name: read_spec(find_study(name)) for name in ready.names()}
    return table(["Study", "Description"], [[f"`{name}`", cell(study.description)] for name, study in found.items()])
