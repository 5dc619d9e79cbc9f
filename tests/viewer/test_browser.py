"""The pages in use: keys, themes, sharing, phones, without scripts, and while a run goes on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from labmates.records.bodies import Bodies
from labmates.records.events import PhaseEvent, WarningEvent
from labmates.records.store import Store
from labmates.viewer.export import export_pages
from tests.support.browser import page_of
from tests.support.recorded import Recorded, a_record, long_run
from tests.support.site import TOKEN, Site, served
from tests.support.steps import append, finish

pytestmark = [pytest.mark.needs("browser"), pytest.mark.xdist_group("viewer")]


def test_a_user_finds_a_run_reads_it_and_comes_back(browser: Browser, site: Site, recorded: Recorded) -> None:
    run = recorded.ids["science"]
    with page_of(browser, site.url) as (page, seen):
        page.goto(f"{site.url}/?token={TOKEN}")
        assert page.url == f"{site.url}/"
        page.select_option("select[name=kind]", "science")
        page.get_by_role("button", name="Filter").click()
        assert "kind=science" in page.url
        page.get_by_role("link", name=run).click()
        expect(page.get_by_role("heading", level=2, name="Findings and truth")).to_be_visible()
        page.get_by_role("link", name=re.compile("^Story")).click()
        page.locator(".t-llm_call .when a").first.click()
        expect(page.get_by_role("heading", name="Request to the model")).to_be_visible()
        page.get_by_role("link", name="in the story").click()
        assert re.search(r"/story#e\d+$", page.url)
        expect(page.locator(".event.marked")).to_be_in_viewport()
        figure = page.locator("img").first
        figure.scroll_into_view_if_needed()
        assert figure.evaluate("async (one) => { await one.decode(); return one.naturalWidth }") > 50
        assert seen.errors == []


def test_an_empty_store_shows_runs_once_there_are_some(browser: Browser, tmp_path: Path) -> None:
    with (
        Store(f"sqlite:///{tmp_path}/runs.db") as store,
        served(store) as site,
        page_of(browser, site.url) as (page, seen),
    ):
        page.goto(site.url)
        expect(page.get_by_text("This store has no runs")).to_be_visible()
        store.create(a_record(id="aaaa"))
        expect(page.get_by_role("link", name="aaaa")).to_be_visible(timeout=30_000)
        assert seen.errors == []


def test_a_table_is_copied_without_its_bars(browser: Browser, site: Site, recorded: Recorded) -> None:
    with page_of(browser, site.url, permissions=["clipboard-read", "clipboard-write"]) as (page, seen):
        page.goto(f"{site.url}/runs/{recorded.ids['science']}#scores")
        page.locator("#scores").get_by_role("button", name="Copy as CSV").click()
        expect(page.locator("#scores").get_by_role("button", name="Copied")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()").splitlines()
        assert copied[0] == '"Judge","Metric","Score","Reason"'
        scores = page.locator("#scores tbody tr")
        assert len(copied) == 1 + scores.count()
        cells = scores.first.locator("th, td").all_inner_texts()
        assert copied[1].startswith(f'"{cells[0]}","{cells[1]}","{cells[2]}","')
        assert seen.errors == []


def test_keys_move_open_turn_and_help(browser: Browser, site: Site, recorded: Recorded) -> None:
    with page_of(browser, site.url) as (page, seen):
        page.goto(f"{site.url}/")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        rows = page.locator("tbody tr")
        expect(rows.nth(0)).to_have_class(re.compile("marked"))
        page.keyboard.press("Enter")
        page.wait_for_url("**/runs/*")
        page.keyboard.press("u")
        page.wait_for_url(f"{site.url}/")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        page.keyboard.press("/")
        page.keyboard.type("jk?")
        assert page.locator("[data-search]").input_value() == "jk?"
        page.goto(f"{site.url}/runs/{recorded.ids['long']}/story")
        page.keyboard.press("n")
        page.wait_for_url("**page=2*")
        page.keyboard.press("p")
        page.wait_for_url(re.compile("story$"))
        page.keyboard.press("Tab")
        expect(page.get_by_text("Skip to the content")).to_be_focused()
        assert seen.errors == []


def test_the_theme_follows_the_system_until_it_is_chosen(browser: Browser, site: Site) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with page_of(browser, site.url, color_scheme="dark") as (page, _):
        page.goto(site.url)
        dark = page.evaluate(ground)
        page.get_by_role("button", name="Theme").click()
        light = page.evaluate(ground)
        assert light != dark
        page.reload()
        assert page.evaluate(ground) == light
        page.keyboard.press("t")
        assert page.evaluate(ground) == dark


def test_two_runs_are_marked_and_compared(browser: Browser, site: Site, recorded: Recorded) -> None:
    one, other = recorded.ids["contract"], recorded.ids["repetition"]
    with page_of(browser, site.url) as (page, _):
        page.goto(f"{site.url}/?kind=dilemma")
        button = page.get_by_role("button", name="Compare selected")
        expect(button).to_be_disabled()
        page.get_by_label(f"Compare {one}").check()
        page.get_by_label(f"Compare {other}").check()
        button.click()
        page.wait_for_url("**/compare?run=*")
        expect(page.get_by_role("heading", name="Parameters with differences")).to_be_visible()


def test_every_page_works_without_scripts(browser: Browser, site: Site, recorded: Recorded) -> None:
    with page_of(browser, site.url, java_script_enabled=False) as (page, _):
        page.goto(f"{site.url}/?kind=game")
        page.get_by_role("link", name=recorded.ids["game"]).click()
        expect(page.get_by_role("heading", name="Rounds")).to_be_visible()
        expect(page.get_by_role("button", name="Theme")).to_be_hidden()
        page.get_by_role("link", name=re.compile("^Story")).click()
        assert page.locator(".event").count() > 5


def test_what_is_new_comes_by_itself_until_the_run_ends(browser: Browser, tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    run = a_record(status="running", attempt=1, worker="w")
    store.create(run, lease=60, events=[PhaseEvent(step="0", team="data", status="started", number=0)])
    with served(store) as site, page_of(browser, site.url) as (page, seen):
        page.goto(f"{site.url}/runs/{run.id}/story")
        expect(page.get_by_text("This run is in progress")).to_be_visible()
        append(store, run, [(1, WarningEvent(text="something is slow"))], [])
        expect(page.get_by_text("something is slow")).to_be_visible(timeout=30_000)
        asked = [url for url in seen.requests if "/live" in url]
        assert asked[0].endswith("after=0&mode=append")
        finish(store, a_record(id=run.id, attempt=1, status="completed"), [(2, WarningEvent(text="the end"))], [])
        expect(page.get_by_text("the end")).to_be_visible(timeout=30_000)
        expect(page.locator(".heading .status")).to_have_text("completed")
        expect(page.get_by_text("This run is in progress")).to_be_hidden()
        assert page.locator("#e1").count() == 1
        assert seen.errors == []
    store.close()


def test_the_page_of_a_study_follows_its_runs(browser: Browser, tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        store.create(a_record(study="pilot", metrics={"accuracy": 0.25}))
        run = a_record(study="pilot", key="other", status="running", attempt=1, worker="w")
        store.create(run, lease=60)
        with served(store) as site, page_of(browser, site.url) as (page, seen):
            page.goto(f"{site.url}/analyses?study=pilot&metric=accuracy")
            expect(page.locator("#standing .live")).to_be_visible()
            finish(store, replace(run, status="completed", metrics={"accuracy": 0.75}), [], [])
            expect(page.locator("#matrices")).to_contain_text("0.500", timeout=30_000)
            expect(page.locator("#standing .live")).to_be_hidden()
            assert page.locator("#results .copy").count() == 1
            assert seen.errors == []


def test_an_export_opens_from_files_with_all_that_belongs_to_it(
    browser: Browser, recorded: Recorded, tmp_path: Path
) -> None:
    run = recorded.ids["science"]
    export_pages(recorded.store, tmp_path / "pages", run_ids=[run, recorded.ids["contract"]])
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
    export_pages(recorded.store, tmp_path / "pages", run_ids=[run, recorded.ids["game"]])
    with page_of(browser, "", token="", viewport={"width": 1000, "height": 900}) as (page, seen):
        page.goto((tmp_path / "pages" / "runs" / run / "index.html").as_uri())
        page.get_by_role("link", name="Transcripts").click()
        agent = page.get_by_role("navigation", name="Agents").get_by_role("link", name="data_lead")
        agent.click()
        expect(agent).to_have_attribute("aria-current", "page")
        expect(page.locator(".lanes")).to_contain_text("I look at the data.")
        assert seen.errors == []
    export_pages(recorded.store, tmp_path / "pages", run_ids=[run], events=False)
    assert not list((tmp_path / "pages").rglob("transcript*.html"))


def test_drawings_are_saved_as_they_look_and_with_their_numbers(
    browser: Browser, site: Site, recorded: Recorded
) -> None:
    with page_of(browser, site.url) as (page, seen):
        page.goto(f"{site.url}/runs/{recorded.ids['evolution']}")
        part = page.locator("section", has=page.get_by_role("heading", name="Generations"))
        saved = {}
        for ending in ("SVG", "PNG", "CSV"):
            with page.expect_download() as download:
                part.get_by_role("button", name=f"Save as {ending}").click()
            assert download.value.suggested_filename == f"Shares-of-genes-by-generation.{ending.lower()}"
            saved[ending] = download.value.path().read_bytes()
        assert b"class=" not in saved["SVG"]
        assert re.search(rb'style="[^"]*fill: (rgb|color)', saved["SVG"])
        assert saved["PNG"].startswith(b"\x89PNG")
        assert len(saved["PNG"]) > 2_000
        assert saved["CSV"].decode().startswith("series,x,y\n")
        with page.expect_event("console"):
            page.evaluate("window.print = () => console.log('asked')")  # a browser without a screen has no dialog
            part.get_by_role("button", name="Print or save as PDF").first.click()
        printed = page.pdf(prefer_css_page_size=True)
        assert printed.count(b"/Type /Page\n") == 1
        [box] = re.findall(rb"/MediaBox \[([^]]+)]", printed)
        left, bottom, right, top = map(float, box.split())
        assert left == bottom == 0
        assert right > top
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator(".alone").count() == 0
        assert seen.errors == []


@pytest.mark.slow("tests/viewer/test_large.py")
def test_a_long_story_is_walked_by_its_pages(browser: Browser, tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    run = long_run(store, 1_000)
    store.create(a_record(), events=[], bodies=Bodies().take_new())
    with served(store) as site, page_of(browser, site.url) as (page, _):
        page.goto(f"{site.url}/runs/{run}/story?at=900#e900")
        expect(page.locator("#e900")).to_be_in_viewport()
        page.get_by_role("link", name="← Earlier").first.click()
        assert page.locator("#e900").count() == 0
    store.close()
