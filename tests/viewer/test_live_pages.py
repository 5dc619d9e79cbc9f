"""A running run in a real browser: replies under way, and a question that a person answers by keyboard alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from labmates.budgets.money import show_dollars
from labmates.models.reply import LISTENER, Piece
from labmates.records.claims import Claims
from labmates.records.events import ApprovalEvent, ChargeEvent, LLMCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.util.process_ids import this_worker
from labmates.workflows.people.approval import Answer, Question
from labmates.workflows.people.live import Live, live_run
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support.approving import LAB, improving
from tests.support.browser import page_of
from tests.support.interrupting import CODE, working
from tests.support.puppet import puppet
from tests.support.site import Site, served

pytestmark = [pytest.mark.xdist_group("viewer")]

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></pre><script>alert(1)</script>\u202e"

_STARTED = 60_000.0
"""Milliseconds for a whole run to come to a question on a busy machine."""


class RunningRun:
    """A run that a thread of this process executes: it does what a test says."""

    def __init__(self, run: RunRecord) -> None:
        self.run = run
        self.loop = asyncio.new_event_loop()
        self.live: Live | None = None
        self.answer: Future[Answer] = Future()
        self._begun, self._ended = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self.loop.run_until_complete(self._execute()))

    async def _execute(self) -> None:
        async with live_run(self.run.id) as self.live:
            self._begun.set()
            await self._ended.wait()

    def __enter__(self) -> RunningRun:
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self.loop.close()

    def reply(self, text: str, until: threading.Event) -> Future[None]:
        async def replying() -> None:
            assert self.live is not None
            with self.live.reply("group/0/ana/work/0", "ana"):
                listener = LISTENER.get()
                assert listener is not None
                listener(None)
                listener(Piece(text))
                await asyncio.to_thread(until.wait)

        return asyncio.run_coroutine_threadsafe(replying(), self.loop)

    def ask(self, question: Question) -> Future[Answer]:
        assert self.live is not None
        return asyncio.run_coroutine_threadsafe(self.live.ask(question), self.loop)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, RunningRun]]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    condition = ScienceCondition.model_validate({"task": "anomaly", "model": "scripted:hasty", "organisation": LAB})
    [planned] = new_runs(condition, seed=0, replicates=1, settings=RunSettings())
    run = Claims(store, this_worker()).new(planned)
    with served(store) as site, RunningRun(run) as running:
        yield site, running
    store.close()


def test_a_reply_under_way_is_shown_as_text_and_goes_when_it_has_ended(
    running: tuple[Site, RunningRun], browser: Browser
) -> None:
    site, run = running
    over = threading.Event()
    with page_of(browser, site.url) as (page, seen):
        page.goto(f"{site.url}/runs/{run.run.id}")
        while run.live is None or not run.live.is_followed:
            page.wait_for_timeout(20)
        replying = run.reply(HOSTILE, over)
        shown = page.locator(".reply pre")
        expect(shown).to_have_text(HOSTILE.replace("\u202e", "\N{REPLACEMENT CHARACTER}"))
        assert shown.locator("*").count() == 0
        assert "owned" not in page.title()
        over.set()
        expect(page.locator(".reply")).to_have_count(0)
        replying.result(30)
        assert not seen.errors


def test_a_question_is_answered_by_keyboard_and_another_one_follows(
    running: tuple[Site, RunningRun], browser: Browser
) -> None:
    site, run = running
    question = Question(run.run.id, "authors/0/ben/plan/0", "authors", "ben", "plan", "authors", HOSTILE)
    first = run.ask(question)
    with page_of(browser, site.url) as (page, seen):
        page.goto(site.url)
        page.get_by_role("link", name="waits for you").click()
        link = page.get_by_role("alert").get_by_role("link")
        expect(link).to_have_text("Waits for your answer: ben (authors) plans for the team authors")
        link.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="ben (authors) plans for the team authors")).to_be_visible()
        assert page.locator("section pre").locator("*").count() == 0
        page.get_by_label("Reason for a refusal (shown to the agent)").focus()
        page.keyboard.type("use the <b>median</b>")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert first.result(30) == Answer(approved=False, reason="use the <b>median</b>")
        page.wait_for_url(f"{site.url}/runs/{run.run.id}")

        page.goto(f"{site.url}/runs/{run.run.id}/approval")
        expect(page.locator(".empty")).to_contain_text("No question is waiting")
        second = run.ask(replace(question, step="authors/0/ben/plan/1"))
        page.get_by_role("button", name="Yes, approve").press("Enter")
        assert second.result(30) == Answer(approved=True)
        assert not seen.errors


@pytest.mark.parametrize(
    "function", ["each", pytest.param("function", marks=pytest.mark.slow("tests/viewer/test_live_pages.py"))]
)
def test_interrupts_of_a_run_are_answered_in_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Browser, function: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "asking.py").write_text(CODE)
    settings = RunSettings(sandbox="unsafe-local", approve_in_viewer=True, approval_timeout=900)
    with puppet(working) as model, Store(f"sqlite:///{tmp_path}/runs.db") as store:
        values = {"task": "anomaly", "difficulty": "easy", "model": model}
        organisation = f"{tmp_path}/asking.py:{function}"
        condition = ScienceCondition.model_validate({**values, "organisation": organisation})
        [run] = new_runs(condition, seed=0, replicates=1, settings=settings)
        executing = threading.Thread(target=lambda: asyncio.run(Session(store, settings).execute([run])))
        with served(store) as site, page_of(browser, site.url) as (page, seen):
            executing.start()
            while run.id not in {known.id for known in store.runs()}:
                page.wait_for_timeout(50)
            page.goto(f"{site.url}/runs/{run.id}/approval")
            if function == "each":
                expect(page.get_by_role("heading", name="graph (lab) asks at tools")).to_be_visible(timeout=_STARTED)
                expect(page.locator("section pre")).to_contain_text("calls write_artifact\nname: final_paper")
                expect(page.locator("form .quiet")).to_contain_text("Without an answer within 900 s")
                page.get_by_label("Reason for a refusal (shown to the agent)").fill("Make it better.")
                press(page.get_by_role("button", name="No, refuse"))
                page.goto(f"{site.url}/runs/{run.id}/approval")
                expect(page.locator("section pre")).to_contain_text("A better paper", timeout=_STARTED)
                press(page.get_by_role("button", name="Yes, approve"))
            else:
                expect(page.get_by_role("heading", name="graph (lab) asks at its code")).to_be_visible(timeout=_STARTED)
                expect(page.locator("section pre")).to_have_text("What about?")
                page.get_by_label("Answer: any text, or JSON").fill('{"b": "<b>bold</b>"}')
                press(page.get_by_role("button", name="Send this answer"))
                page.goto(f"{site.url}/runs/{run.id}/approval")
                expect(page.locator("section pre")).to_contain_text('"deliver": "heard', timeout=_STARTED)
                press(page.get_by_role("button", name="Yes", exact=True))
            executing.join(60)
            page.goto(f"{site.url}/runs/{run.id}/approval")
            expect(page.locator("ol li")).to_have_count(2)
            assert not seen.errors
        answers = [event for event in store.events(run.id) if isinstance(event, ApprovalEvent)]
        assert store.run(run.id).status == "completed"
    if function == "each":
        assert [(event.approved, event.reason) for event in answers] == [(False, "Make it better."), (True, "")]
    else:
        assert [event.answer for event in answers] == [{"b": "<b>bold</b>"}, True]


def test_pages_of_a_running_run_count_what_is_recorded_and_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Browser
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    settings = RunSettings(sandbox="unsafe-local", approve_in_viewer=True)
    with puppet(improving) as model, Store(f"sqlite:///{tmp_path}/runs.db") as store:
        values = {"task": "anomaly", "difficulty": "easy", "model": model, "organisation": LAB, "budget": "2"}
        [run] = new_runs(ScienceCondition.model_validate(values), seed=0, replicates=1, settings=settings)
        executing = threading.Thread(target=lambda: asyncio.run(Session(store, settings).execute([run])), daemon=True)
        with (
            served(store) as site,
            page_of(browser, site.url) as (overview, seen),
            page_of(browser, site.url, java_script_enabled=False) as (approval, _),  # it doesn't load itself again
        ):
            story = overview.context.new_page()
            executing.start()
            while run.id not in {known.id for known in store.runs()}:
                overview.wait_for_timeout(50)
            overview.goto(f"{site.url}/runs/{run.id}")
            expect(overview.get_by_role("alert")).to_be_visible(timeout=_STARTED)
            calls = sum(isinstance(event, LLMCallEvent) for event in store.events(run.id))
            spent = sum(event.amount for event in store.events(run.id) if isinstance(event, ChargeEvent))
            assert calls
            for page, tab in ((overview, ""), (story, "/story")):
                page.goto(f"{site.url}/runs/{run.id}{tab}")
                expect(number_of(page, "calls")).to_have_text(str(calls))
                expect(number_of(page, "spent")).to_have_text(show_dollars(spent))
                expect(number_of(page, "left of $2.0000")).to_have_text(show_dollars(2_000_000 - spent))
                expect(number_of(page, "tokens")).not_to_have_text("0")
            answer_yes(approval, site, run)
            for page in (overview, story):
                expect(number_of(page, "calls")).not_to_have_text(str(calls), timeout=_STARTED)
                expect(number_of(page, "spent")).not_to_have_text(show_dollars(spent))
            assert store.run(run.id).status == "running"
            while executing.is_alive():
                answer_yes(approval, site, run)
            assert not seen.errors
        assert store.run(run.id).status == "completed"


def number_of(page: Page, name: str) -> Locator:
    """The number of this name in the head of a run's page."""
    return page.locator("dl.numbers div").filter(has=page.get_by_text(name, exact=True)).locator("dd")


def answer_yes(page: Page, site: Site, run: RunRecord) -> None:
    page.goto(f"{site.url}/runs/{run.id}/approval")
    if (yes := page.get_by_role("button", name="Yes, approve")).count():
        press(yes)


def press(button: Locator) -> None:
    """Press a button that sends a form, and wait for the page that follows."""
    with button.page.expect_navigation():
        button.click()


def test_an_answer_that_comes_too_late_is_told_so(running: tuple[Site, RunningRun], browser: Browser) -> None:
    site, run = running
    question = Question(run.run.id, "authors/0/ben/plan/0", "authors", "ben", "plan", "authors", "A plan.")
    asked = run.ask(question)
    with page_of(browser, site.url) as (page, _):
        page.goto(f"{site.url}/runs/{run.run.id}/approval")
        asked.cancel()
        page.get_by_role("button", name="Yes, approve").click()
        expect(page.get_by_role("alert")).to_have_text("This question no longer waits for an answer.")
