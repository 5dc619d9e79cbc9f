"""Full-text search in the viewer: texts with their surroundings, escaped, and clear words for a query that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from labmates.records.bodies import Bodies
from labmates.records.events import MessageEvent
from labmates.records.search import index_texts
from labmates.records.store import Store
from tests.support.recorded import add
from tests.support.site import Site, served

HOSTILE = "<img src=x onerror=alert(1)> noon \u202e reversed"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        for at in range(30):
            bodies = Bodies()
            said = [bodies.keep(f"The leak of number {at}."), bodies.keep(HOSTILE if at == 7 else f"Nothing {at}.")]
            events = [MessageEvent(to="model", text=number) for number in said]
            add(store, "science", events, bodies, id=f"run{at}", key=str(at), study="pilot" if at < 5 else "main")
        index_texts(store)
        with served(store) as site:
            yield site


def test_texts_are_shown_with_their_events_and_escaped(site: Site) -> None:
    page = site.get("/search?search=noon").text
    assert "&lt;img src=x onerror=alert(1)&gt; <mark>noon</mark> \ufffd reversed" in page
    assert "<img" not in page
    assert 'event <a href="/runs/run7/events/1">1</a>' in page
    assert '<a class="id" href="/runs/run7">run7</a> science ' in page
    assert site.get("/runs/run7/events/1").status == 200
    assert "/runs/run7" in site.get("/?search=noon").text
    assert "/runs/run8" not in site.get("/?search=noon").text


def test_a_store_that_the_viewer_only_reads_is_indexed_all_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    with Store(url) as store:
        bodies = Bodies()
        add(store, "science", [MessageEvent(to="model", text=bodies.keep("a leak"))], bodies, id="only")
    with Store(url, read_only=True) as store, served(store) as site:
        while "not indexed yet" in (page := site.get("/search?search=leak").text):
            pass  # the page waits for a moment, and a busy machine may need some
        assert "<mark>leak</mark>" in page


def test_what_agents_are_told_again_is_shown_once_with_all_events(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        bodies = Bodies()
        told = [bodies.keep(f"For {name}: {'and so on ' * 40} a leak.") for name in ("ana", "ben")]
        add(store, "science", [MessageEvent(to="model", text=number) for number in told], bodies, id="only")
        index_texts(store)
        with served(store) as site:
            page = site.get("/search?search=leak").text
    assert page.count("<mark>leak</mark>") == 1
    assert 'events <a href="/runs/only/events/0">0</a>, <a href="/runs/only/events/1">1</a>:' in page


def test_texts_come_in_pages_and_of_one_study(site: Site) -> None:
    page = site.get("/search?search=leak").text
    assert page.count("<mark>leak</mark>") == 20
    more = re.search(r'rel="next" href="([^"]+)"', page)
    assert more is not None
    rest = site.get(unescape(more[1])).text
    assert rest.count("<mark>leak</mark>") == 10
    assert 'rel="next"' not in rest
    assert site.get("/search?search=leak&study=pilot").text.count("<mark>") == 5
    assert "No matches." in site.get("/search?search=zebra").text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("search=%22leak", "a quotation mark is missing"),
        ("search=-leak", "name a word that must be there"),
        ("search=***", "no letter and no digit"),
        ("search=leak&before=x", "is not a position in this list"),
    ],
)
def test_a_wrong_query_is_told_beside_the_field(site: Site, query: str, said: str) -> None:
    answer = site.get(f"/search?{query}")
    assert answer.status == 400
    assert said in unescape(answer.text)
    assert 'name="search"' in answer.text


def test_a_search_without_words_or_in_an_unknown_study(site: Site) -> None:
    assert site.get("/search").status == 200
    assert site.get("/search?search=a&study=mian").status == 400
    assert "400" not in site.get("/?search=").text
