"""People who take part in runs, in a real browser and by keyboard alone: games, a dilemma, and a seat of the lab."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from signal import Signals
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Browser, Page, TimeoutError, expect

import labmates
from labmates.agents.transcript import message_from_data
from labmates.condition_types import Kind
from labmates.models.scripted.base import DraftCall, Heard
from labmates.records.bodies import Bodies
from labmates.records.events import LLMCallEvent, ToolCallEvent
from labmates.records.store import Store
from labmates.studies.replay import replay
from labmates.workflows.people.live import ask_run
from tests.support.browser import page_of
from tests.support.children import Child
from tests.support.plays import industrious
from tests.support.puppet import puppet
from tests.support.seats import findings, seated
from tests.support.site import Site, served

T = TypeVar("T")

pytestmark = [
    pytest.mark.slow("tests/workflows/test_people.py"),
    pytest.mark.xdist_group("viewer"),
    pytest.mark.needs("browser"),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, Site]]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    with served(store) as site:
        yield store, site
    store.close()


def begun(store: Store, kind: str, *, after: str = "", **condition: Any) -> tuple[str, Future[list[Any]]]:
    """Begin a run in a thread; its id, and its end."""
    pool = ThreadPoolExecutor(1)
    ended = pool.submit(lambda: labmates.run(Kind(kind), store=store.url, **condition))
    pool.shutdown(wait=False)
    while not (runs := [run for run in store.runs() if run.id != after]):
        assert not ended.done(), ended.result()
    return runs[0].id, ended


def alone(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; while a browser is open, this thread can run none."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def tab_to(page: Page, selector: str) -> None:
    """Go to an element with the Tab key."""
    for _ in range(200):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} can't be reached by keyboard")


def test_a_person_plays_a_game_by_keyboard_and_the_run_replays(place: tuple[Store, Site], browser: Browser) -> None:
    store, site = place
    run_id, ended = begun(
        store, "game", game="public-goods", model="scripted:fair-share", model_for={"A2": "human:ann"},
        group_size=2, groups=1, rounds=2,
    )  # fmt: skip
    with page_of(browser, site.url) as (page, seen):
        page.goto(f"{site.url}/runs/{run_id}")
        expect(page.get_by_role("alert")).to_contain_text("Waits for a reply from A2")
        tab_to(page, "[data-notice=turn] a")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="A2: your instructions")).to_be_visible()
        for typed in (["a lot", "3"], ["3", "3"], ["3", "4"]):
            step = decide_by_keyboard(page, typed)
            if typed[0] == "a lot":
                expect(page.get_by_role("alert")).to_have_text("group: 'a lot' is not a whole number")
            elif typed[1] == "3":
                expect(page.locator("form[data-form=decision] input[name=step]")).not_to_have_value(step)
        [run] = ended.result(60)
        assert not [error for error in seen.errors if "409" not in error]
    assert (run.status, run.valid) == ("completed", True)
    assert answers(store, run_id) == [[3, 3], [3, 4]]
    assert alone(replay(store, store.run(run_id))).differences == ()


def test_what_a_person_answered_before_a_kill_is_not_asked_again(place: tuple[Store, Site], browser: Browser) -> None:
    store, site = place
    condition: dict[str, Any] = {
        "game": "public-goods", "model": "scripted:fair-share", "model_for": {"A2": "human:ann"},
        "group_size": 2, "groups": 1, "rounds": 2,
    }  # fmt: skip
    code = f"from labmates.api import run\nrun('game', store={store.url!r}, **{condition!r})"
    with page_of(browser, site.url) as (page, seen):
        with Child(code) as playing:
            while not (runs := [*store.runs()]):
                assert playing.returncode is None
            run_id = runs[0].id
            page.goto(f"{site.url}/runs/{run_id}/turn")
            first = decide_by_keyboard(page, ["3", "3"])
            expect(page.locator("form[data-form=decision] input[name=step]")).not_to_have_value(first)
            playing.send_signal(Signals.SIGKILL)
        before = replies_of_ann(store, run_id)
        assert [event.step for event in before] == [first]
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(labmates.resume, [run_id], store=store.url)
            while (alone(ask_run(run_id, {"do": "turn"})) or {}).get("turn") is None:
                assert not ended.done(), ended.result()
            page.goto(f"{site.url}/runs/{run_id}/turn")
            assert decide_by_keyboard(page, ["3", "4"]) != first
            [run] = ended.result(60)
        assert not [error for error in seen.errors if "409" not in error]
    assert (run.status, run.valid) == ("completed", True)
    assert replies_of_ann(store, run_id)[:1] == before
    assert answers(store, run_id) == [[3, 3], [3, 4]]


def shows_a_turn(page: Page) -> bool:
    """Whether the page shows a turn, or has loaded itself with one after a moment."""
    try:
        page.locator("form[data-form]").first.wait_for(state="attached", timeout=500)
    except TimeoutError:
        return False
    return True


def decide_by_keyboard(page: Page, numbers: list[str]) -> str:
    """Fill in the form of a decision and send it, without a mouse; the step that it answers."""
    step = page.locator("form[data-form=decision] input[name=step]").input_value()
    tab_to(page, "form[data-form=decision] input[name^='field:']")
    for number in numbers:
        page.keyboard.press("Control+a")
        page.keyboard.type(number)
        page.keyboard.press("Tab")  # after the last field: the button
    press_enter(page)
    return step


def press_enter(page: Page) -> None:
    """Press the button that has the focus, and wait for the next page."""
    with page.expect_navigation():
        page.keyboard.press("Enter")


def replies_of_ann(store: Store, run_id: str) -> list[LLMCallEvent]:
    """The replies of the person."""
    return [event for event in store.events(run_id) if isinstance(event, LLMCallEvent) and event.model == "human:ann"]


def answers(store: Store, run_id: str) -> list[list[int]]:
    """The numbers of the person's decisions."""
    bodies = Bodies(store.bodies(run_id))
    return [list(json.loads(bodies[event.reply]["content"]).values()) for event in replies_of_ann(store, run_id)]


def test_a_person_decides_a_dilemma_by_keyboard(place: tuple[Store, Site], browser: Browser) -> None:
    store, site = place
    models = ["scripted:cooperate", "human:ann"]
    run_id, ended = begun(store, "dilemma", game="prisoners", entrants=models, reasoning="none", seating="multisets")
    with page_of(browser, site.url) as (page, _):
        page.goto(f"{site.url}/runs/{run_id}/turn")
        while not ended.done():
            if shows_a_turn(page):
                number = page.locator("form[data-form=decision] input[name^='field:']").count()
                decide_by_keyboard(page, ["100", *["0"] * (number - 1)])
    [run] = ended.result()
    assert (run.status, run.valid) == ("completed", True)
    assert len(replies_of_ann(store, run_id)) == 3  # once against the baseline, and on both sides against itself


def test_a_person_on_a_seat_works_by_keyboard_as_the_mind_does_and_pays_tools(
    place: tuple[Store, Site], browser: Browser
) -> None:
    store, site = place
    with puppet(industrious) as model:
        values: dict[str, Any] = {
            "task": "anomaly",
            "difficulty": "easy",
            "model": model,
            "prices": {"tool_call": "0.001"},
        }
        settings = {"sandbox": "unsafe-local"}
        [inside] = labmates.run("science", store=store.url, organisation=seated(), settings=settings, **values)
        run_id, ended = begun(
            store, "science", organisation=seated(human=True), settings=settings, after=inside.id, **values
        )
        left: list[DraftCall] = []  # a form takes one call of a reply
        with page_of(browser, site.url) as (page, seen):
            page.goto(f"{site.url}/runs/{run_id}/turn")
            while not ended.done():
                if shows_a_turn(page) and (turn := (alone(ask_run(run_id, {"do": "turn"})) or {}).get("turn")):
                    draft = industrious(Heard(tuple(map(message_from_data, turn["messages"]))))
                    left = left or [*draft.calls]
                    answer(page, str(draft.content), left.pop(0) if left else None)
            assert not seen.errors
        [outside] = ended.result()
    assert (inside.status, outside.status) == ("completed", "completed")
    assert findings(store, run_id) == findings(store, inside.id)
    events = store.events(run_id)
    tools = [event for event in events if isinstance(event, ToolCallEvent)]
    assert outside.budget["spent"] == f"{0.001 * len(tools):.6f}".rstrip("0")
    assert [e.tool for e in tools] == [e.tool for e in store.events(inside.id) if isinstance(e, ToolCallEvent)]
    assert alone(replay(store, store.run(run_id))).differences == ()


def answer(page: Page, text: str, made: DraftCall | None) -> None:
    """Answer with a call of a tool, or with a text, without a mouse."""
    if made is None:
        tab_to(page, "textarea[name=text]")
        page.keyboard.insert_text(text)
        page.keyboard.press("Tab")
        press_enter(page)
        return
    form = f"form[data-form={made.name}]"
    tab_to(page, f"details:has({form}) > summary")
    page.keyboard.press("Enter")
    for name, value in json.loads(made.arguments).items():
        tab_to(page, f"{form} [name='field:{name}']")
        page.keyboard.insert_text(value if isinstance(value, str) else json.dumps(value))
    tab_to(page, f"{form} button")
    press_enter(page)
