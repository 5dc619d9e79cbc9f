"""Each word over a column of a table, and each metric, has its meaning in the glossary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from markupsafe import Markup

import labmates
from labmates.errors import UsageError
from labmates.pages.rendering import environment, explained, render
from labmates.records.listing import select_runs
from labmates.records.store import Store
from labmates.stats.tables import Column, Table
from labmates.workflows.protocol.analysis import shown_analyses
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates.workflows.protocol.glossary import glossary
from labmates_credit.fates import ENDS
from sitegen.glossary import glossary_page
from tests.support.plugins import ROOT

ENTRANTS: Final = ("scripted:defect", "scripted:equilibrium")
HEADING: Final = re.compile(r'<th scope="col"[^>]*>([^<{}]{2,})(?=</th>| <span)')
SOURCES = [*ROOT.glob("labmates/**/*.py"), *ROOT.glob("packages/*/labmates_*/**/*.py")]


def text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def headings(source: str) -> Iterator[str]:
    """The written headings of columns, and of grids on the screen."""
    if "labmates.stats.tables import" not in source and "print_grid" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and [target.id for target in node.targets if isinstance(target, ast.Name)] == [
            "headings"
        ]:
            yield from map(text, getattr(node.value, "elts", ()))
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.func, ast.Name):
            continue
        if node.func.id == "print_grid":
            yield from map(text, getattr(node.args[0], "elts", ()))
        if node.func.id == "Column" and (key := text(node.args[0])):
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            heading = text(node.args[1]) if len(node.args) > 1 else text(named.get("heading"))
            shows = text(named.get("shows"))
            yield Column(key, heading, shows="interval" if shows == "interval" else "value").title


def test_every_heading_of_a_table_has_an_entry() -> None:
    found: dict[str, Path] = {}
    for path in SOURCES:
        found |= {word: path for word in headings(path.read_text(encoding="utf-8")) if word.strip()}
    assert len(found) > 100
    assert {word: path.name for word, path in found.items() if word not in glossary()} == {}


def test_every_metric_and_parameter_has_an_entry() -> None:
    for name in EXPERIMENTS.names():
        kind = EXPERIMENTS.get(name)
        words = {*(metric.name for metric in kind.metrics), *kind.condition.model_fields, *ENDS}
        assert {word.replace("_", " ") for word in words} <= glossary().keys()


def test_each_word_is_on_the_page_with_a_meaning() -> None:
    rows = [line for line in glossary_page().splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(glossary())
    assert all(meaning.strip() for meaning in glossary().values())


def test_a_heading_without_an_entry_is_found() -> None:
    source = "from labmates.stats.tables import Column\nColumn('no_such_word')\nColumn('key', 'No such heading')"
    assert set(headings(source)) == {"no such word", "No such heading"}
    assert not {"no such word", "No such heading"} & glossary().keys()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("game", {"game": "weakest-link", "model": "scripted:random", "group_size": 2, "rounds": 1}),
        *(
            ("dilemma", {"game": "prisoners", "mechanism": mechanism, "entrants": ENTRANTS, "reasoning": "none"})
            for mechanism in ("repetition(rounds=2)", "contract", "mediation")
        ),
        ("tournament", {"structure": "gc", "model": "scripted:random", "team_size": "1", "rounds": 2}),
    ],
)
def test_pages_explain_every_heading_of_an_analysis(kind: Any, values: dict[str, Any], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    labmates.run(kind, store=url, replicates=2, **values)
    with Store(url) as store:
        tables: list[Table] = []
        for analysis in shown_analyses(kind)[0]:
            with suppress(UsageError):  # too few runs
                tables += analysis.shown(store, select_runs(store)).tables
    assert len(tables) > 1
    headings = {(table.title, column.title) for table in tables for column in table.columns if column.title.strip()}
    explained = {(table.title, word) for table in tables for word in table.meanings(glossary())}
    assert headings - explained == set()
    assert 'href="#' in str(render("table.html", table=tables[0], prefix="", words=glossary))


def test_every_heading_written_in_a_template_has_an_entry() -> None:
    templates = [*ROOT.glob("labmates/**/templates/*.html"), *ROOT.glob("packages/*/labmates_*/**/templates/*.html")]
    written = {word: path.name for path in templates for word in HEADING.findall(path.read_text("utf-8"))}
    assert len(written) > 40
    known = {word.lower() for word in glossary()}
    assert {word: name for word, name in written.items() if word.lower() not in known} == {}


def test_a_page_links_the_words_over_columns_and_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(environment().globals, "words", lambda: {"tokens in": "Input tokens.", "skill": "Unused."})
    page = explained(Markup('<th scope="col" class="end">Tokens in</th><th scope="col">skill_a</th><td>skill</td>'))
    assert page.startswith('<th scope="col" class="end"><a class="word" href="#word-Tokens-in">Tokens in</a></th>')
    assert '<th scope="col">skill_a</th><td>skill</td>' in page
    assert page.count("<dt>") == 1
    assert '<div id="word-Tokens-in"><dt>Tokens in</dt><dd>Input tokens.</dd></div>' in page
