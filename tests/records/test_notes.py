"""Notes by hand: in both databases, on runs and events, with clear refusals, and never a part of the record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from labmates.errors import UsageError
from labmates.records.bodies import Bodies
from labmates.records.copying import copy_store
from labmates.records.events import WarningEvent
from labmates.records.listing import Chosen, run_page
from labmates.records.notes import LONGEST_NOTE, add_note, notes_of, remove_note
from labmates.records.store import Store
from labmates.studies.audit import unproven
from tests.support.recorded import add


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store(store_url) as store:
        for name in ("one", "two"):
            add(store, "science", [WarningEvent(text="slow")], Bodies(), id=name, key=name)
        yield store


def test_notes_stand_on_runs_and_events_until_they_are_removed(store: Store) -> None:
    database = store.database
    add_note(database, "one", "odd \0 end", author="Ada")
    add_note(database, "one", "", flag="wrong", event=0)
    first, second = notes_of(database, "one")
    assert (first.number, first.text, first.author, first.event, first.flag) == (1, "odd  end", "Ada", None, "")
    assert (second.number, second.event, second.flag) == (2, 0, "wrong")
    remove_note(database, "one", 1)
    add_note(database, "one", "later")
    assert [(note.number, note.text) for note in notes_of(database, "one")] == [(2, ""), (3, "later")]
    assert notes_of(database, "two") == []


def test_runs_are_found_by_their_flags_and_their_records_stay(store: Store) -> None:
    add_note(store.database, "one", "look", flag="discuss")
    assert [row.run.id for row in run_page(store.database, Chosen(flag="discuss")).rows] == ["one"]
    assert run_page(store.database, Chosen(flag="wrong")).rows == ()
    assert list(unproven(store, "one")) == []


def test_notes_are_copied_with_their_runs(store: Store, tmp_path_factory: pytest.TempPathFactory) -> None:
    add_note(store.database, "one", "look")
    target = f"sqlite:///{tmp_path_factory.mktemp('copy')}/copy.db"
    copy_store(store.url, target)
    with Store(target) as copied:
        assert [note.text for note in notes_of(copied.database, "one")] == ["look"]


def test_a_wrong_note_is_refused_with_the_reason(store: Store) -> None:
    database = store.database
    for run, text, flag, author, message in (
        ("one", " ", "", "", "needs a text or a flag"),
        ("one", "a", "rong", "", "unknown flag 'rong'"),
        ("one", "x" * (LONGEST_NOTE + 1), "", "", "4,001 characters"),
        ("one", "a", "", "x" * 81, "the author has 81"),
        ("nope", "a", "", "", "there is no run 'nope'"),
    ):
        with pytest.raises(UsageError, match=message):
            add_note(database, run, text, flag=flag, author=author)
    with pytest.raises(UsageError, match="has no event 7"):
        add_note(database, "one", "a", event=7)
    assert notes_of(database, "one") == []
