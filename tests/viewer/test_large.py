"""A large run and a large store: what is read and sent for a page does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from labmates.pages.links import PER_PAGE
from labmates.records import schema
from labmates.records.bodies import Bodies
from labmates.records.events import (
    ErrorEvent,
    Event,
    FailedReplyEvent,
    RequestEvent,
    ScoreEvent,
    ToolCallEvent,
    WarningEvent,
)
from labmates.records.rows import run_row
from labmates.records.store import Store
from tests.support.recorded import a_record, add, long_run
from tests.support.site import Site, served


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path_factory.mktemp('large')}/runs.db")
    yield made
    made.close()


@pytest.fixture(scope="module")
def site(store: Store) -> Iterator[Site]:
    with served(store) as found:
        yield found


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """Collect the statements that are sent to the store."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    sa.event.listen(store.engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(store.engine, "before_cursor_execute", note)


@pytest.fixture(scope="module")
def long(store: Store) -> str:
    return long_run(store, 10_000)


def test_a_page_of_a_long_story_is_as_small_as_one_of_a_short_story(store: Store, site: Site, long: str) -> None:
    short = long_run(store, 300)
    seen = {}
    for run in (short, long):
        with statements(store) as sent:
            page = site.get(f"/runs/{run}/story?page=2")
        assert page.text.count('<li class="event') == PER_PAGE
        seen[run] = (len(sent), len(page.body))
    assert seen[long][0] == seen[short][0]
    assert seen[long][1] < 1.05 * seen[short][1]
    last = -(-7_500 // PER_PAGE)
    assert site.get(f"/runs/{long}/story?page={last}").text.count('<li class="event') > 0
    assert f"page 2 of {last}" in site.get(f"/runs/{long}/story?page=2").text


def test_the_first_page_of_a_long_run_stays_small(store: Store, site: Site, long: str) -> None:
    page = site.get(f"/runs/{long}")
    assert page.status == 200
    assert len(page.body) < 100_000
    with statements(store) as sent:
        site.get(f"/runs/{long}")
    assert not [one for one in sent if "FROM bodies" in one]


def test_a_long_text_is_sent_only_where_it_is_asked_for(store: Store, site: Site) -> None:
    run = long_run(store, 5, text=lambda _: "x" * 100_000)
    assert len(site.get(f"/runs/{run}/story").body) < 20_000
    assert len(site.get(f"/runs/{run}/events/3").body) > 100_000


def test_words_without_end_in_every_place_are_cut_or_kept_to_the_page_of_their_event(store: Store, site: Site) -> None:
    endless = "x" * 300_000
    bodies = Bodies()
    text = bodies.keep({"role": "assistant", "content": endless, "tool_calls": [{"name": endless, "args": {}}]})
    who = {"team": "data", "agent": "data_lead"}
    told: list[Event] = [
        ToolCallEvent(**who, tool=endless, arguments=text, result=text, ok=False, status="error"),
        FailedReplyEvent(**who, reason=endless),
        RequestEvent(**who, to="model", kind="redo", request=endless, justification=endless),
        ScoreEvent(judge="verified", version="1", metric="accuracy", value=0.5, reason=endless),
        WarningEvent(text=endless),
        ErrorEvent(text=endless),
    ]
    run = add(store, "science", told, bodies, error=endless, status="failed")
    for path in ("/", f"/runs/{run}", f"/runs/{run}/story", f"/compare?a={run}&b={run}"):
        assert len(site.get(path).body) < 100_000, path
    assert endless in site.get(f"/runs/{run}/events/3").text


def test_the_list_of_many_runs_reads_a_page_of_them(tmp_path: Path) -> None:
    seen = []
    for number in (60, 3_000):
        store = Store(f"sqlite:///{tmp_path}/{number}.db")
        rows = [run_row(a_record(id=f"{at:010x}", key=str(at), started=float(at))) for at in range(number)]
        with store.engine.begin() as connection:
            connection.execute(sa.insert(schema.runs), rows)
        with served(store) as site, statements(store) as sent:
            page = site.get("/")
            assert page.text.count("<tr data-step") == 50
            assert f"{number:,} runs in" in page.text
        seen.append((len(sent), len(page.body)))
        store.close()
    assert seen[0][0] == seen[1][0]
    assert seen[1][1] == pytest.approx(seen[0][1], rel=0.05)


def test_the_page_of_a_large_study_reads_none_of_its_runs_until_it_is_asked_for_results(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        for study, number in (("small", 1_000), ("large", 1_001)):
            rows = [
                run_row(
                    a_record("game", id=f"{study}{at}", study=study, key=str(at % 9), replicate=at, metrics={"m": 1.0})
                )
                for at in range(number)
            ]
            with store.engine.begin() as connection:
                connection.execute(sa.insert(schema.runs), rows)
        with served(store) as site:
            for query, reads in (("study=small", True), ("study=large", False), ("study=large&results=all", True)):
                with statements(store) as sent:
                    page = site.get(f"/analyses?{query}").text
                assert any("runs.condition" in one and "LIMIT" not in one for one in sent) == reads, query
                assert ('id="matrices"' in page) == reads
                assert ("study=large&amp;results=all" in page) == (not reads)
            assert "1,001 runs of" in site.get("/analyses?study=large").text
