"""All that the package is for can be had from `labmates` itself, and stands on one page."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import labmates
from labmates import api
from labmates.records.bodies import Bodies
from labmates.records.events import ScoreEvent, ToolCallEvent
from labmates.studies.result import Run, RunList
from labmates.workflows.protocol.verb import VERBS
from tests.support.plugins import ROOT

GAME: dict[str, Any] = {"game": "o-ring", "model": "scripted:random", "rounds": 1, "group_size": 2}
PAGE = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")


def test_every_verb_stands_at_the_top_of_the_package() -> None:
    verbs = {name for name, one in vars(api).items() if inspect.isfunction(one) and one.__module__ == api.__name__}
    public = {name for name in verbs if not name.startswith("_")}
    assert {"arun", "judge", "load", "plan", "run"} <= public
    assert all(getattr(labmates, name) is getattr(api, name) for name in public)
    types = {name for name in labmates.__all__ if inspect.isclass(getattr(labmates, name))}
    assert public == set(labmates.__all__) - types - {"__version__"}


def test_the_page_on_python_lists_exactly_what_is_public() -> None:
    listed = re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE)
    brought = [name for name in VERBS.names() if getattr(VERBS.get(name).command.target, "function", None)]
    assert sorted([*listed, "__version__"]) == sorted([*labmates.__all__, *brought])
    assert all(callable(getattr(labmates, name)) for name in brought)


def test_shells_complete_what_is_public() -> None:
    brought = {name for name in VERBS.names() if getattr(VERBS.get(name).command.target, "function", None)}
    assert set(dir(labmates)) == {*labmates.__all__, *brought}
    assert {"analyze", "load", "replay", "run", "study"} <= set(dir(labmates))


def test_a_notebook_shows_an_error_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    shell: Any = InteractiveShell
    shell().run_cell("import labmates; labmates.run('game', gaem='o-ring')")
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("UsageError: unknown parameter of game 'gaem'. Did you mean 'game'?")


def test_a_run_has_its_events_messages_scores_artifacts_and_report(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    [run] = labmates.run("game", store=store, deliberation=True, **GAME)
    assert [event.type for event in run.events].count("payoff") >= 1
    assert len(run.messages()) == 4
    assert all(message.text and message.agent and message.role == "message" for message in run.messages())
    transcript = run.messages("A1")
    calls = [event for event in run.events if event.type == "llm_call" and event.agent == "A1"]
    assert [message.role for message in transcript][:3] == ["system", "user", "assistant"]
    assert [message.role for message in transcript].count("assistant") == len(calls) > 1
    assert len({message.text for message in transcript if message.role == "system"}) == 1
    with pytest.raises(labmates.UsageError, match="unknown agent of this run 'C9'"):
        run.messages("C9")
    assert (run.scores, run.artifacts, run.report) == ([], {}, None)
    frame = labmates.load("decisions", store=store, kind="game")
    assert len(frame) == sum(event.type == "decision" for event in run.events)
    with pytest.raises(labmates.UsageError, match="unknown kind 'games'"):
        labmates.load("decisions", store=store, kind="games")
    assert "sqlite" not in repr(run)
    assert labmates.show(store=store) == labmates.show(run.id, store=store)
    assert labmates.show(store=store).metrics == run.metrics
    assert labmates.show(run.id[:4], store=store) == labmates.show(run.id, store=store)
    assert labmates.replay("last", store=store).is_same
    with pytest.raises(labmates.UsageError, match="there is no run 'gone'"):
        labmates.show("gone", store=store)


def test_a_run_is_a_table_in_notebooks_without_markup_of_its_texts() -> None:
    run = Run("r1", "game", "k", 0, 3, {}, ["m:<b>"], "failed", error="<script>", metrics={"<i>": 0.51239})
    run.__dict__["events"] = [
        ScoreEvent(judge="j", version="1", metric="quality", value=None, reason="no report"),
        ToolCallEvent(team="A", agent="a", tool="run_code", arguments=1, result=1, ok=True, images=[1]),
    ]
    bodies = Bodies()
    assert bodies.keep(b"\x89PNG\r\n\x1a\n") == 1
    run.__dict__["bodies"] = bodies
    assert run.figures == [b"\x89PNG\r\n\x1a\n"]
    table = run._repr_html_()
    assert "<th>&lt;i&gt;</th><td>0.5124</td>" in table
    assert "<th>j: quality</th><td>unscored</td>" in table
    assert "m:&lt;b&gt;, seed 3): &lt;script&gt;" in table


def test_runs_are_a_table_in_notebooks_and_a_line_each_elsewhere(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    runs = labmates.run("game", game="o-ring", model="scripted:random", replicates=2, store=store)
    assert isinstance(runs, RunList)
    cells = "<td>game</td><td>scripted:random</td><td>1</td><td>completed</td><td>cooperation "
    assert f"<tr><td>{runs[1].id}</td>{cells}" in runs._repr_html_()
    assert repr(runs).splitlines()[0] == f"game {runs[0].id} (scripted:random, seed 0): completed"


def test_what_type_checkers_refuse_is_refused_with_the_allowed_words() -> None:
    """`make lint` reports each of these comments for which mypy sees no error."""
    with pytest.raises(labmates.UsageError, match=r"unknown parameter of game 'gaem'\. Did you mean 'game'\?"):
        labmates.run("game", gaem="o-ring", model="scripted:random")  # type: ignore[call-overload]
    with pytest.raises(labmates.UsageError, match="'none', 'cot' or 'tom'"):
        labmates.run("game", game="o-ring", model="scripted:random", reasoning="deep")  # type: ignore[call-overload]
    with pytest.raises(labmates.UsageError, match=r"unknown kind 'gmae'\. Did you mean 'game'"):
        labmates.run("gmae")  # type: ignore[call-overload]


def test_rows_that_there_are_not_are_refused(tmp_path: Path) -> None:
    labmates.run("game", store=f"sqlite:///{tmp_path}/runs.db", **GAME)
    with pytest.raises(labmates.UsageError, match="unknown sort of rows 'decision'"):
        labmates.load("decision", store=f"sqlite:///{tmp_path}/runs.db")  # type: ignore[arg-type]


def test_a_study_is_planned_before_it_is_run(tmp_path: Path) -> None:
    plan = labmates.plan("science-small", store=None)
    assert plan.runs > 0
    assert labmates.plan("science-small", store=f"sqlite:///{tmp_path}/none.db").runs == plan.runs
    assert not (tmp_path / "none.db").exists()


def test_a_study_is_a_mapping_as_well(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    wanted = {"name": "pair", "kind": "game", "replicates": 2, "fixed": {**GAME, "groups": 1}}
    assert labmates.plan(wanted, store=store).runs == 2
    runs = labmates.study(wanted, store=store)
    assert sorted(run.seed for run in runs) == [0, 1]
    with pytest.raises(labmates.UsageError, match=r"the study:1: replicats: unknown key"):
        labmates.plan({**wanted, "replicats": 2})
    with pytest.raises(labmates.UsageError, match="PosixPath is not JSON serializable; allowed are texts"):
        labmates.plan({**wanted, "fixed": {"game": tmp_path}})
