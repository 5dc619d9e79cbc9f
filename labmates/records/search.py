"""Full-text search over the texts of runs: messages, code, outputs and artifacts.

The index is built from the bodies at the first search, so writing a run is not slower, and older stores are indexed
too. SQLite uses FTS5 and PostgreSQL a ``tsvector``; both receive words that are split here, so results are the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.bodies import Body, Unpacker, Value
from labmates.records.database import Database

_RUNS, _TEXTS, _INDEXED, _BODIES = schema.runs, schema.search_texts, schema.search_runs, schema.bodies
_PART: Final = 32_000
"""Characters per indexed text: a ``tsvector`` numbers at most 16,383 words."""
_MOST_QUERY: Final = 500
_TERM = re.compile(r'(-?)(?:"([^"]*)"(\*?)|([^\s"]+))')
_WORD = re.compile(r"[^\W_]+")
_GAP = r"[\W_]+"
_REPEATED: Final = "tool"
"""Messages in this role repeat the results of tool calls."""
_EXCERPT: Final = 160

Watch = Callable[[int, int], None]
"""Receives the number of indexed runs, and of all."""


@dataclass(frozen=True)
class Term:
    """A word or a phrase.

    `words` are in lower case, each of letters and digits. With `is_prefix`, the last word also matches longer words
    that begin with it.
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    is_excluded: bool = False


@dataclass(frozen=True)
class Query:
    """A query; a text matches if all terms of one group match."""

    groups: tuple[tuple[Term, ...], ...]

    @property
    def pattern(self) -> re.Pattern[str]:
        """A regular expression of the terms, for highlighting."""
        terms = [term for group in self.groups for term in group if not term.is_excluded]
        parts = [_GAP.join(map(re.escape, term.words)) + (r"[^\W_]*" if term.is_prefix else "") for term in terms]
        return re.compile(rf"(?<![^\W_])(?:{'|'.join(parts)})(?![^\W_])", re.IGNORECASE)

    def of_sqlite(self) -> str:
        """The query in the syntax of FTS5."""
        return " OR ".join(f"({_joined(group, _fts_term, ' AND ', ' NOT ')})" for group in self.groups)

    def of_postgresql(self) -> str:
        """The query in the syntax of ``to_tsquery``."""
        return " | ".join(f"({_joined(group, _ts_term, ' & ', ' & !')})" for group in self.groups)


@dataclass(frozen=True)
class Hit:
    """A matching text: a part of a body of a run.

    `place` is the position from which the list of hits can continue; `number` is the body's number.
    """

    place: int
    run: str
    number: int


def parse_query(text: str) -> Query:
    """Parse a user's query.

    All words must match. Syntax: ``"a phrase"``, ``prefix*``, ``-excluded``, ``this OR that``. Raises `UsageError` if
    the query is invalid.
    """
    if len(text) > _MOST_QUERY:
        raise UsageError(f"search: the query has {len(text):,} characters; {_MOST_QUERY} are allowed")
    if text.count('"') % 2:
        raise UsageError(f"search: a quotation mark is missing in: {text}")
    groups: list[list[Term]] = [[]]
    for minus, phrase, star, plain in _TERM.findall(text):
        if plain == "OR" and not minus:
            groups.append([])
            continue
        words = tuple(_words(plain or phrase))
        if not words:
            raise UsageError(f"search: '{minus}{plain or phrase}' has no letter and no digit to search for")
        groups[-1].append(Term(words, bool(star) or plain.endswith("*"), bool(minus)))
    if groups == [[]]:
        raise UsageError('search: the query is empty; enter words, "a phrase", begin*, -without, or this OR that')
    if not all(groups):
        raise UsageError("search: OR stands between two words or phrases")
    for group in groups:
        if all(term.is_excluded for term in group):
            raise UsageError(f"search: name a word that must be there beside '-{' '.join(group[0].words)}'")
    return Query(tuple(map(tuple, groups)))


def unindexed(database: Database) -> int:
    """The number of runs with unindexed texts."""
    query = sa.select(sa.func.count()).select_from(_runs_with_state()).where(_IS_STALE)
    return database.read(lambda connection: int(connection.execute(query).scalar_one()))


def index_texts(database: Database, *, watch: Watch | None = None) -> None:
    """Index the unindexed texts of all runs, one run per transaction.

    Several processes can index at once. A read-only store stays unchanged. Raises `UsageError` if this SQLite lacks
    FTS5.
    """
    _check(database)
    if database.is_read_only:
        return
    columns = _RUNS.c.id, _RUNS.c.chain, sa.func.coalesce(_INDEXED.c.bodies, 0)
    query = sa.select(*columns).select_from(_runs_with_state()).where(_IS_STALE).order_by(_RUNS.c.started.desc())
    stale = database.rows(query)
    for place, (run_id, chain, done) in enumerate(stale):
        if watch is not None:
            watch(place, len(stale))
        _index_run(database, run_id, chain, done)
    if watch is not None:
        watch(len(stale), len(stale))


def matching_runs(query: Query, *, is_sqlite: bool) -> sa.Select[Any]:
    """The ids of runs with a matching text, as a database query."""
    return sa.select(_TEXTS.c.run).where(_matches(query, is_sqlite))


def hits(
    database: Database, query: Query, conditions: Iterable[sa.ColumnElement[bool]] = (), *, before: int = 0, most: int
) -> list[Hit]:
    """At most `most` matching texts, newest in the index first.

    `conditions` filter the runs; `before` is the position of the previous call's last hit, 0 for the first call. Raises
    `UsageError` if this SQLite lacks FTS5.
    """
    _check(database)
    rows = sa.select(_TEXTS).where(_matches(query, database.is_sqlite))
    if chosen := list(conditions):
        rows = rows.where(_TEXTS.c.run.in_(sa.select(_RUNS.c.id).where(*chosen)))
    if before:
        rows = rows.where(_TEXTS.c.id < before)
    rows = rows.order_by(_TEXTS.c.id.desc()).limit(most)
    return [Hit(*row) for row in database.rows(rows)]


def searchable_text(value: Value) -> str:
    """The indexed text of a body: all its strings; empty for bytes."""
    if isinstance(value, dict) and "role" in value:
        return "" if value["role"] == _REPEATED else "\n".join(_strings(value.get("content")))
    return "\n".join(_strings(value))


def excerpt(value: Value, query: Query) -> list[tuple[str, bool]]:
    """The text around the first match in a body, in pieces with a flag for matches."""
    text, pattern = searchable_text(value), query.pattern
    first = pattern.search(text)
    start = max(0, first.start() - _EXCERPT // 2) if first else 0
    part = text[start : start + 2 * _EXCERPT]
    pieces = [("… ", False)] if start else []
    at = 0
    for match in pattern.finditer(part):
        pieces += [(part[at : match.start()], False), (match.group(), True)]
        at = match.end()
    pieces.append((part[at:] + (" …" if start + 2 * _EXCERPT < len(text) else ""), False))
    return [(piece, is_match) for piece, is_match in pieces if piece]


_IS_STALE = sa.and_(_RUNS.c.chain != "", _RUNS.c.chain != sa.func.coalesce(_INDEXED.c.chain, ""))


def _check(database: Database) -> None:
    there = database.read(lambda connection: sa.inspect(connection).has_table("search_words"))
    if not there:
        raise UsageError("search: this Python's SQLite was built without FTS5, which full-text search needs")


def _runs_with_state() -> sa.FromClause:
    return _RUNS.outerjoin(_INDEXED, _INDEXED.c.run == _RUNS.c.id)


def _index_run(database: Database, run_id: str, chain: str, done: int) -> None:
    """Index the bodies of a run after the first `done`, unless another process does."""
    rows = database.rows(sa.select(_BODIES).where(_BODIES.c.run == run_id).order_by(_BODIES.c.number))
    unpacker, texts = Unpacker(), list[tuple[int, str]]()
    for row in rows:
        body = Body(row.number, row.media, row.data)
        if row.number <= done or row.media not in ("json", "text"):
            unpacker.raw(body)
            continue
        words = " ".join(_words(searchable_text(unpacker.value(body))))
        texts += [(row.number, words[at : at + _PART]) for at in range(0, len(words), _PART)]
    state = {"run": run_id, "chain": chain, "bodies": rows[-1].number if rows else done}

    def write(connection: sa.Connection) -> None:
        if _claimed(database, connection, state, done):
            _insert(connection, run_id, texts)

    database.write(write)


def _claimed(database: Database, connection: sa.Connection, state: dict[str, Any], done: int) -> bool:
    """Mark the run as indexed, unless another process has; returns whether it did."""
    is_there = sa.select(_RUNS.c.id).where(_RUNS.c.id == state["run"]).with_for_update(read=True)
    if connection.execute(is_there).one_or_none() is None:
        return False
    if not done and database.insert_new(connection, _INDEXED, [state]):
        return True
    same = sa.and_(_INDEXED.c.run == state["run"], _INDEXED.c.bodies == done, _INDEXED.c.chain != state["chain"])
    return bool(connection.execute(sa.update(_INDEXED).where(same).values(state)).rowcount)


def _insert(connection: sa.Connection, run_id: str, texts: Sequence[tuple[int, str]]) -> None:
    if not texts:
        return
    rows = [{"run": run_id, "number": number} for number, _ in texts]
    added = sa.insert(_TEXTS).returning(_TEXTS.c.id, sort_by_parameter_order=True)
    ids = connection.execute(added, rows).scalars().all()
    words = "insert into search_words (rowid, words) values (:id, :words)"
    if connection.dialect.name == "postgresql":
        words = "insert into search_words (id, words) values (:id, to_tsvector('simple', :words))"
    connection.execute(sa.text(words), [{"id": id_, "words": text} for id_, (_, text) in zip(ids, texts, strict=True)])


def _matches(query: Query, is_sqlite: bool) -> sa.ColumnElement[bool]:
    if is_sqlite:
        statement, words = "select rowid from search_words where search_words match :words", query.of_sqlite()
    else:
        statement = "select id from search_words where words @@ to_tsquery('simple', :words)"
        words = query.of_postgresql()
    return _TEXTS.c.id.in_(sa.text(statement).bindparams(words=words).columns(id=sa.Integer))


def _joined(group: Sequence[Term], shown: Callable[[Term], str], between: str, without: str) -> str:
    wanted = between.join(shown(term) for term in group if not term.is_excluded)
    return wanted + "".join(without + shown(term) for term in group if term.is_excluded)


def _fts_term(term: Term) -> str:
    return f'"{" ".join(term.words)}"{" *" if term.is_prefix else ""}'


def _ts_term(term: Term) -> str:
    return f"({' <-> '.join(term.words)}{':*' if term.is_prefix else ''})"


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif isinstance(value, int | float):
        yield json.dumps(value)
