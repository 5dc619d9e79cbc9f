"""Bodies and events that are read one by one are those that are read all together, and little is read for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labmates.records.bodies import Bodies
from labmates.records.events import MessageEvent
from labmates.records.reading import RunReader, stored_bodies
from labmates.records.store import Store
from tests.support.recorded import add, long_run

NUMBER = 300


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path_factory.mktemp('reading')}/runs.db")
    yield made
    made.close()


@pytest.fixture(scope="module")
def run_id(store: Store) -> str:
    bodies = Bodies()
    for at in range(NUMBER):
        match at % 4:
            case 0:
                bodies.keep({"content": f"number {at} " * (1 + at % 50)})
            case 1:
                bodies.keep(b"\x89PNG\r\n\x1a\n" + bytes([at % 256, at // 256]))
            case 2:
                bodies.keep(b"\x00" + str(at).encode())
            case _:
                bodies.keep(f"text {at} " * 300)
    return add(store, "science", [], bodies)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(asked=st.lists(st.lists(st.integers(-2, NUMBER + 50), max_size=8), min_size=1, max_size=5))
def test_any_bodies_in_any_order_are_the_right_ones(store: Store, run_id: str, asked: list[list[int]]) -> None:
    whole, reader = Bodies(store.bodies(run_id)), stored_bodies(store, run_id)
    for numbers in asked:
        found = reader.values(numbers)
        assert found == {number: whole[number] for number in numbers if 1 <= number <= NUMBER}


def test_a_second_look_reads_only_what_is_near(store: Store, run_id: str) -> None:
    reader, asked = stored_bodies(store, run_id), list[object]()
    reader.values([NUMBER])
    sa.event.listen(store.engine, "before_cursor_execute", lambda _c, _k, _s, parameters, *_: asked.append(parameters))
    reader.values([NUMBER // 2])
    [bounds] = [one for one in asked if isinstance(one, tuple) and len(one) == 3]
    assert bounds[2] - bounds[1] <= 64


def test_events_are_read_by_number_type_team_and_page(store: Store) -> None:
    run_id = long_run(store, 50)
    whole, reader = store.events(run_id), RunReader(store, store.run(run_id))
    assert reader.span(10, 19) == dict(list(enumerate(whole))[10:20])
    assert reader.events("message", "charge") == {
        at: event for at, event in enumerate(whole) if event.type in ("message", "charge")
    }
    assert reader.numbers(without=["charge"]) == [at for at, event in enumerate(whole) if event.type != "charge"]
    assert reader.numbers(types=["phase"], team="data", agent="") == [0]
    assert reader.numbers(team="nobody") == []
    assert [row.seq for row in reader.rows("charge", "message", holding="amount")] == [
        at for at, event in enumerate(whole) if event.type == "charge"
    ]
    assert sum(reader.counts.values()) == 50
    assert reader.last == 49


def test_what_is_said_to_the_own_team_can_be_left_out(store_url: str) -> None:
    made, bodies = Store(store_url), Bodies()
    said = bodies.keep("so")
    messages = [
        MessageEvent(team=team, to=to, text=said) for team, to in (("a_b", "a_b"), ("a_b", "axb"), ("a", "a_b"))
    ]
    reader = RunReader(made, made.run(add(made, "science", messages, bodies)))
    assert [row.data["to"] for row in reader.rows("message", to_others=True)] == ["axb", "a_b"]
    assert len(reader.rows("message", holding="text")) == 3
    assert reader.rows("message", holding="te_t") == []
    assert RunReader(made, made.run(add(made, "game", [], Bodies()))).last == -1
    made.close()
