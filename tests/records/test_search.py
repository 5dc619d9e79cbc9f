"""Full-text search: the same in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.bodies import Bodies, Value
from labmates.records.events import ArtifactEvent, LLMCallEvent, MessageEvent, ToolCallEvent
from labmates.records.listing import Chosen, run_page
from labmates.records.pruning import prune
from labmates.records.reading import RunReader
from labmates.records.search import excerpt, hits, index_texts, parse_query, unindexed
from labmates.records.store import Store
from tests.support.recorded import add

TEXTS: dict[str, Value] = {
    "code": {"code": "from sklearn.ensemble import RandomForestClassifier"},
    "prose": "The random forest finds the leak at noon.",
    "other": "A forest is random: leaks, leaking, Größe, NUL \0, half a pair \ud800.",
    "call": {"role": "assistant", "content": "I ask for the noon values."},
}


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A run for each text."""
    with Store(store_url) as store:
        for name, text in TEXTS.items():
            enter(store, name, [text])
        yield store


def enter(store: Store, run_id: str, texts: Sequence[Value]) -> None:
    bodies = Bodies()
    numbers = [bodies.keep(text) for text in texts]
    events = [ArtifactEvent(team="t", name="a", version=1, content=number) for number in numbers]
    add(store, "science", events, bodies, id=run_id, key=run_id, started=float(len(list(store.runs()))))


def found(store: Store, text: str) -> set[str]:
    index_texts(store)
    return {hit.run for hit in hits(store, parse_query(text), most=50)}


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("forest", {"prose", "other"}),
        ("FOREST random", {"prose", "other"}),
        ('"random forest"', {"prose"}),
        ("sklearn.ensemble", {"code"}),
        ("RandomForest*", {"code"}),
        ("leak", {"prose"}),
        ("leak*", {"prose", "other"}),
        ('"at noo"*', {"prose"}),
        ("noon -leak", {"call"}),
        ('noon -"random forest"', {"call"}),
        ("sklearn OR noon -leak", {"code", "call"}),
        ("größe", {"other"}),
        ("GRÖSSE", {"other"}),
        ("grosse", set()),
        ("assistant", set()),
        ("x' OR 1=1; --drop", set()),
        ("NEAR(forest*)", set()),
    ],
)
def test_both_databases_find_the_same_texts(store: Store, query: str, runs: set[str]) -> None:
    assert found(store, query) == runs


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "the query is empty"),
        ("   ", "the query is empty"),
        ('say "hello', "quotation mark"),
        ("-leak", "beside '-leak'"),
        ("a OR -b", "beside '-b'"),
        ("leak OR", "OR stands between"),
        ("OR leak", "OR stands between"),
        ("***", "no letter and no digit"),
        ('""', "no letter and no digit"),
        ("x" * 501, "501 characters"),
    ],
)
def test_a_query_that_can_t_be_read_is_refused_with_the_reason(query: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_query(query)


def test_texts_are_indexed_once_and_those_that_come_later_too(store: Store) -> None:
    index_texts(store)
    assert unindexed(store) == 0
    bodies = Bodies(store.bodies("prose"))
    number = bodies.keep("A later verdict.")
    store.add("prose", [(1, MessageEvent(to="t", text=number))], bodies.take_new())
    assert unindexed(store) == 1
    assert found(store, "verdict") == {"prose"}
    index_texts(store)
    count = sa.select(sa.func.count()).select_from(schema.search_texts)
    assert store.read(lambda connection: connection.execute(count).scalar_one()) == len(TEXTS) + 1


def test_deleted_runs_are_no_longer_found(store: Store) -> None:
    assert found(store, "noon") == {"prose", "call"}
    prune(store, Chosen(ids=("prose",)), replies=False)
    assert found(store, "noon") == {"call"}
    enter(store, "prose", ["nothing of it"])
    assert found(store, "noon") == {"call"}


def test_a_long_text_is_found_in_all_of_its_parts(store: Store) -> None:
    enter(store, "long", [" ".join(f"word{at}" for at in range(60_000)), "x" * 2_000_000 + " tail"])
    assert found(store, "word0") == found(store, '"word59998 word59999"') == found(store, "tail") == {"long"}


def test_a_list_of_runs_is_filtered_by_their_texts(store: Store) -> None:
    index_texts(store)
    page = run_page(store, Chosen(search="noon", text="prose"))
    assert [run.id for run in page] == ["prose"]
    with pytest.raises(UsageError, match="quotation mark"):
        run_page(store, Chosen(search='"noon'))


def test_hits_come_in_pages_and_of_chosen_runs_alone(store: Store) -> None:
    index_texts(store)
    query = parse_query("forest OR noon")
    first = hits(store, query, most=2)
    rest = hits(store, query, before=first[-1].place, most=5)
    assert {hit.run for hit in (*first, *rest)} == {"prose", "other", "call"}
    assert len(first) + len(rest) == 3
    [only] = hits(store, query, [schema.runs.c.id == "call"], most=5)
    assert only.run == "call"


def test_a_text_leads_to_the_event_that_shows_or_sent_it(store: Store) -> None:
    bodies = Bodies()
    texts: list[Value] = ["the prompt", {"role": "assistant"}, {"code": "1"}, "one"]
    prompt, reply, code, output = map(bodies.keep, texts)
    call = LLMCallEvent(
        model="m", messages=[prompt], reply=reply, finish="stop", input_tokens=1, output_tokens=1, seed=1
    )
    tool = ToolCallEvent(tool="run_code", arguments=code, result=output, ok=True, status="ok")
    run = add(store, "science", [call, tool, call.model_copy(update={"at": 5.0})], bodies)
    assert RunReader(store, store.run(run)).places([prompt, reply, code, output, 99]) == {
        prompt: 0,
        reply: 0,
        code: 1,
        output: 1,
    }


def test_the_surroundings_of_a_match_are_cut_around_it() -> None:
    text = "before " * 100 + "the Random--Forest stands here" + " after" * 100
    pieces = excerpt(text, parse_query('"random forest" OR stand*'))
    assert [piece for piece, is_match in pieces if is_match] == ["Random--Forest", "stands"]
    assert pieces[0] == ("… ", False)
    assert pieces[-1][0].endswith(" …")
    assert sum(len(piece) for piece, _ in pieces) < 400
    assert excerpt({"role": "user", "content": [{"type": "text", "text": "noon"}]}, parse_query("noon"))[1] == (
        "noon",
        True,
    )
