"""Pages as files: those of the viewer, without a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from labmates.cli.view import sample_store
from labmates.records.store import Store
from labmates_doors.exports.pages import export_pages
from tests.support.axe import faults
from tests.support.browser import chromium, page_of
from tests.support.command_line import Labmates
from tests.support.recorded import Recorded, a_record, long_run

pytestmark = [pytest.mark.needs("browser"), pytest.mark.xdist_group("viewer")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module: while it is open, no others could run an event loop."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def store(labmates: Labmates) -> Store:
    """The store of the command line, with two runs."""
    made = Store(f"sqlite:///{labmates.folder}/labmates.db")
    made.create(a_record(id="aaaa", study=None, started=1.0))
    made.create(a_record(id="bbbb", key="other", started=2.0))
    return made


def test_the_store_is_left_as_it_is(labmates: Labmates, store: Store) -> None:
    before = store.run("aaaa")
    assert labmates("export", "--all", "--format", "pages", "--out", "pages").code == 0
    assert store.run("aaaa") == before


def test_runs_are_exported_all_or_some(labmates: Labmates, store: Store) -> None:
    done = labmates("export", "--all", "--format", "pages", "--out", "pages")
    assert done.code == 0
    assert done.err == "2 runs in pages\n"
    assert sorted(path.name for path in (labmates.folder / "pages/runs").iterdir()) == ["aaaa", "bbbb"]
    assert labmates("export", "bbbb", "--format", "pages", "--out", "pages").err == "1 runs in pages\n"
    assert [path.name for path in (labmates.folder / "pages/runs").iterdir()] == ["bbbb"]  # the earlier one is replaced


def test_an_export_without_events_leads_to_the_story_instead(labmates: Labmates, store: Store) -> None:
    run = long_run(store, 120)
    assert labmates("export", run, "--format", "brief-pages", "--out", "pages").code == 0
    folder = labmates.folder / "pages/runs" / run
    assert not (folder / "events").exists()
    assert 'href="../../runs/' in (folder / "index.html").read_text()
    assert f'href="../../runs/{run}/story-1.html#e1"' in (folder / "story-1.html").read_text()


def test_a_folder_of_something_else_is_not_touched(labmates: Labmates, store: Store) -> None:
    folder = labmates.folder / "mine"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    done = labmates("export", "--all", "--format", "pages", "--out", "mine")
    assert done.code == 2
    assert "the folder 'mine' is not empty and not an earlier export" in done.err
    assert [path.read_text() for path in folder.iterdir()] == ["mine"]


def test_exported_pages_have_the_analyses_too(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    with sample_store() as url, Store(url, read_only=True) as sample:
        export_pages(sample, folder, sample.runs(study="sample-science"), events=False)
    [link] = re.findall(r'href="(analyses/[^"]+)"', (folder / "studies.html").read_text())
    listed = (folder / link).read_text()
    [scores] = set(re.findall(r'href="../../(analyses/[^"]+scores.html)"', listed))
    assert "Scores by judge" in (folder / scores).read_text()


def test_an_export_opens_from_files_with_all_that_belongs_to_it(
    browser: Browser, recorded: Recorded, tmp_path: Path
) -> None:
    run = recorded.ids["science"]
    export_pages(recorded.store, tmp_path / "pages", map(recorded.store.run, [run, recorded.ids["contract"]]))
    with page_of(browser, "", token="", viewport={"width": 1000, "height": 900}) as (page, seen):
        page.goto((tmp_path / "pages" / "index.html").as_uri())
        assert page.locator("tbody tr").count() == 2
        page.get_by_role("link", name=run).click()
        expect(page.get_by_role("heading", name="Findings and truth")).to_be_visible()
        page.get_by_role("link", name=re.compile("^Story")).click()
        figure = page.locator("img").first
        figure.scroll_into_view_if_needed()
        assert figure.evaluate("async (one) => { await one.decode(); return one.naturalWidth }") > 50
        page.locator(".t-llm_call .when a").first.click()
        expect(page.get_by_role("heading", name="Request to the model")).to_be_visible()
        page.wait_for_load_state()
        page.keyboard.press("t")
        assert page.evaluate("document.documentElement.dataset.theme") in ("dark", "light")
        assert seen.errors == []


def test_an_export_has_transcripts_without_a_server(browser: Browser, recorded: Recorded, tmp_path: Path) -> None:
    run = recorded.ids["science"]
    export_pages(recorded.store, tmp_path / "pages", map(recorded.store.run, [run, recorded.ids["game"]]))
    with page_of(browser, "", token="", viewport={"width": 1000, "height": 900}) as (page, seen):
        page.goto((tmp_path / "pages" / "runs" / run / "index.html").as_uri())
        page.get_by_role("link", name="Transcripts").click()
        agent = page.get_by_role("navigation", name="Agents").get_by_role("link", name="data_lead")
        agent.click()
        expect(agent).to_have_attribute("aria-current", "page")
        expect(page.locator(".lanes")).to_contain_text("I look at the data.")
        assert seen.errors == []
    export_pages(recorded.store, tmp_path / "pages", [recorded.store.run(run)], events=False)
    assert not list((tmp_path / "pages").rglob("transcript*.html"))


def test_no_exported_page_has_a_serious_fault(browser: Browser, recorded: Recorded, tmp_path: Path) -> None:
    run = recorded.ids["game"]
    export_pages(recorded.store, tmp_path / "pages", [recorded.store.run(run)], events=False)
    with page_of(browser, "", token="") as (page, _):
        for name in ("index.html", f"runs/{run}/index.html", f"runs/{run}/story-1.html"):
            page.goto((tmp_path / "pages" / name).as_uri())
            assert faults(page) == {}, name
