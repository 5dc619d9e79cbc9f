"""Reports: everything that a reader needs of a study, nothing that a model's text could do, nothing from elsewhere."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import labmates
from labmates.errors import UsageError
from labmates.records.entering import Cell, Planned, enter_study
from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord, RunStatus, Usage
from labmates.records.store import Store
from labmates.records.studies import StudyRecord
from labmates.reports.report import Report, render, store_report, study_report, write_report
from labmates.stats import figures

HOSTILE = "<script>fetch('http://evil.example')</script><img src=x onerror=alert(1)> \x1b[31m"
SECRET = "sk-abcdefghijklmnop123456"


def a_run(number: int, status: RunStatus = "completed", kind: str = "science", **more: Any) -> RunRecord:
    condition = {
        "task": "ecology" if number % 2 else "anomaly",
        "model": more.pop("model", "openai:m_1"),
        "budget": "1",
    }
    settings = {"judges": ["openai:judge"], "models": {"base_url": f"http://user:hunter22@host/v1?api_key={SECRET}"}}
    metrics = {"accuracy": 0.5 + number / 100, "provenance": 0.4, "completeness": 1.0} if status == "completed" else {}
    return replace(
        RunRecord(f"run{number}", kind, f"k{condition['task']}{condition['model']}", number, number, condition, []),
        models=[str(condition["model"])],
        status=status,
        metrics=metrics,
        usage=Usage(llm_calls=10, input_tokens=1000, output_tokens=200, failed_replies=1),
        settings=settings,
        started=1_800_000_000.0 + number,
        seconds=3.0,
        version="0.1.0",
        sandbox="docker",
        **more,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('store')}/runs.db")
    spec: dict[str, Any] = {
        "name": "pilot",
        "kind": "science",
        "description": f"A first look {HOSTILE}",
        "models": ["openai:m_1"],
    }
    spec |= {"fixed": {"budget": "1"}, "grid": {"task": ["ecology", "anomaly"]}, "replicates": 4}
    spec |= {"connection": {"base_url": f"http://user:hunter22@host/v1?api_key={SECRET}"}}
    runs = [a_run(n, study="pilot") for n in range(8)]
    runs += [a_run(8, "failed", study="pilot", error=f"{HOSTILE} {SECRET}\nmore", attempt=2)]
    runs += [a_run(9, "running", study="pilot"), a_run(10, study="pilot", model="scripted:hasty")]
    enter_study(store, StudyRecord("pilot", spec, None, 0.0), runs[0], [], lambda *_: False)
    for run in runs:
        store.create(run)
        scores = [
            ScoreEvent(judge=judge, version="1", metric="quality", value=value, reason=HOSTILE)
            for judge, value in (("heuristic", 0.1 * run.replicate / 2), ("rubric:openai:judge", 0.3))
        ]
        if run.status == "completed":
            store.add(run.id, list(enumerate(scores)), [])
    planned = a_run(11, "planned", study="pilot")
    store.create(planned)
    yield store
    store.close()


@pytest.fixture(scope="module")
def page(store: Store) -> str:
    return render(study_report(store, "pilot"))


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("</style>")[1]))


def test_a_report_tells_what_was_run_how_it_ended_and_what_came_of_it(page: str) -> None:
    text = text_of(page)
    for told in (
        "Study pilot",
        "of 12 runs ended 9",
        "Runs in progress: 1",
        "Runs of the study that have not started yet: 1",
        "Failed runs: 1",
        "scripted:hasty scripted baseline",
        "openai:m_1 language model",
        "Reasons for failed or stopped runs",
        "run8",
        "By model and condition",
        "0.535 [0.295, 0.560]",
        "labmates study run pilot.yaml",
        "replicates: 4",
        "2027-01-15",
        "docker",
        "openai:judge",
        "10.0%",
    ):
        assert told in text or told in page, told
    assert text.index("0.535 [0.295, 0.560]") < text.index("Reasons for failed") < text.index("What is compared")
    assert "Equal in all conditions: organisation pipeline; budget 1" in text
    assert page.count("<figure>") == 1  # of two metrics all values are equal
    assert page.count('role="img"') == 1
    assert page.count("<img ") == len(
        re.findall(r'<img src="data:image/svg\+xml;base64,[A-Za-z0-9+/=]+" alt="[^"]+">', page)
    )


def test_nothing_that_a_model_or_user_wrote_is_markup(page: str) -> None:
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page


def test_each_heading_links_to_its_meaning_on_the_page(page: str) -> None:
    links = re.findall(r'<a class="word" href="#([^"]+)">([^<]+)</a>', page)
    meanings = dict(re.findall(r'<div id="(word-[^"]+)"><dt>[^<]+</dt><dd>([^<]+)</dd>', page))
    assert len(links) > 10
    assert {word for place, word in links if not meanings.get(place)} == set()
    headings = re.findall(r"<caption>.*?</thead>", page, re.DOTALL)
    assert "accuracy" in {word for _, word in links}
    assert [text for head in headings for text in re.findall(r'<th scope="col"[^>]*>(?!<a )([^<]+)</th>', head)] == []


def test_no_secret_is_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "visibly-secret-m_1x")
    store.create(a_run(20, "failed", kind="game", error="the server said visibly-secret-m_1x"))
    page = render(store_report(store, kind="game"))
    assert "the server said [key]" in page
    page += render(study_report(store, "pilot"))
    for secret in (SECRET, "hunter22", "visibly-secret"):
        assert secret not in page
    assert "[key]" in page


def test_nothing_is_loaded_from_elsewhere_and_the_same_store_gives_the_same_page(store: Store, page: str) -> None:
    assert not re.findall(r"<(?:script|link|iframe|object|embed|form)\b", page)
    assert not re.findall(r"""(?:src|href|action)=["'](?!data:|#)""", page)
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert render(study_report(store, "pilot")) == page


def test_runs_without_a_study_are_reported_with_files_that_repeat_them(store: Store, tmp_path: Path) -> None:
    page = render(store_report(store, kind="science"))
    assert "All runs of the kind science" in page
    assert "These runs belong to no study" in page
    assert "name: science-k" in page


def test_figures_need_an_extra_and_a_report_does_not(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    page = render(study_report(store, "pilot"))
    assert "<img" not in page
    assert "By model and condition" in page


def test_what_can_not_be_reported_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown study 'pilott'"):
        study_report(store, "pilott")
    spec = {"name": "empty", "kind": "science"}
    planned = [Planned(Cell("k", 1, "[]", "{}"), 0, 0, 0)]
    run = a_run(30, "planned", study="empty")
    enter_study(store, StudyRecord("empty", spec, None, 0.0), run, planned, lambda *_: True)
    with pytest.raises(
        UsageError, match=r"the study 'empty' has no started runs; start it with: labmates study run empty"
    ):
        study_report(store, "empty")
    with pytest.raises(UsageError, match="no run of the kind dilemma"):
        store_report(store, kind="dilemma")
    with pytest.raises(UsageError, match="name a study of"):
        study_report(store)


def test_a_report_that_cannot_be_written_leaves_the_old_one(store: Store, tmp_path: Path) -> None:
    made = Report("T", "", (), (), ())
    write_report(made, tmp_path / "new" / "r.html")
    write_report(made, tmp_path / "new" / "r.html")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["r.html"]
    assert stat.S_IMODE((tmp_path / "new" / "r.html").stat().st_mode) & 0o400
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").write_text("")
    for path, why in (("r.txt", "ends in .html"), ("folder.html", "it is a folder"), ("file/r.html", "can't write")):
        with pytest.raises(UsageError, match=why):
            write_report(made, tmp_path / path)


def test_python_writes_reports_too(store: Store, tmp_path: Path) -> None:
    path = labmates.report("pilot", out=tmp_path / "p.html", store=store.url)
    assert "Study pilot" in path.read_text()
    with pytest.raises(UsageError, match="a study or a kind, not both"):
        labmates.report("pilot", kind="game", out=tmp_path / "x.html", store=store.url)
    with pytest.raises(UsageError, match="unknown kind"):
        labmates.report(kind="nope", out=tmp_path / "x.html", store=store.url)
