"""Runs as lines of a bundle, and back: every column, event and text of a run, except what belongs to a worker.

Texts stand uncompressed in a line, so that anybody can read them and no text unpacks to more than it shows.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from labmates.errors import explain
from labmates.records import schema
from labmates.records.bodies import Body, Media, Unpacker, UnreadableBodyError
from labmates.records.database import StoreError
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.audit import WholeRecord, whole_record
from labmates_doors.bundles.container import BundleError, decode, encode

_RUNS = schema.runs
LEFT_OUT: Final = ("worker", "lease", "place")
"""Columns of workers and of the queue; the order of the lines is that of the queue."""
_COLUMNS: Final = [column.name for column in _RUNS.c if column.name not in LEFT_OUT]
_RECORD: Final = TypeAdapter(RunRecord)
_TEXTS: Final = ("json", "text")


class Part(BaseModel):
    """A part of a bundle, held to its types."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Seal(Part):
    metrics: dict[str, int | float]
    chain: str
    digest: str = Field(max_length=80)


class _Body(Part):
    media: Media
    text: str  # in Base64 unless it is JSON or text


class _Event(Part):
    type: str = Field(max_length=20)
    at: float
    step: str
    team: str = Field(max_length=80)
    agent: str = Field(max_length=80)
    data: dict[str, Any]


class Line(Part):
    """One run of a bundle: its columns, earlier digests, texts and events."""

    run: dict[str, Any]
    seals: list[_Seal]
    bodies: list[_Body]
    events: list[_Event]


class Holdings:
    """What a bundle's runs hold, counted line by line: numbers, and the prices at which calls were charged."""

    def __init__(self) -> None:
        self._counts = {"runs": 0, "events": 0, "texts": 0}
        self._prices: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        self._made: defaultdict[str, set[str]] = defaultdict(set)
        self._versions: set[str] = set()

    def add(self, line: Line) -> None:
        """Count a line."""
        for name, many in (("runs", 1), ("events", len(line.events)), ("texts", len(line.bodies))):
            self._counts[name] += many
        models = {event.step: str(event.data.get("model")) for event in line.events if event.type == "llm_call"}
        for event in line.events:
            if event.type == "charge" and event.step in models:
                prices = (event.data.get("input_price", 0), event.data.get("output_price", 0))
                self._prices[models[event.step]].add(prices)
        for part, known in (line.run.get("made") or {}).items():
            self._made[part].update(known.split())
        self._versions.add(line.run["version"])

    def as_json(self) -> dict[str, Any]:
        """Numbers; prices by model, input and output in micro-dollars per million tokens; hashes of code by part."""
        prices = {model: [list(pair) for pair in sorted(pairs)] for model, pairs in sorted(self._prices.items())}
        made = {part: sorted(known) for part, known in sorted(self._made.items())}
        return {**self._counts, "versions": sorted(self._versions), "prices": prices, "made": made}


def lines_of(store: Store, study: str) -> Iterator[tuple[WholeRecord, Line]]:
    """Yield the runs of a study with their lines, in the order of its queue."""
    query = sa.select(_RUNS.c.id).where(_RUNS.c.study == study).order_by(_RUNS.c.place, _RUNS.c.replicate, _RUNS.c.id)
    for row in store.rows(query):
        record = whole_record(store, row.id)
        yield record, _line(record)


def _line(record: WholeRecord) -> Line:
    unpacker = Unpacker()
    bodies = []
    for body in record.bodies:
        raw = unpacker.raw(body)
        text = raw.decode() if body.media in _TEXTS else base64.b64encode(raw).decode()
        bodies.append(_Body(media=body.media, text=text))
    events = [{name: value for name, value in event.items() if name not in ("run", "seq")} for event in record.events]
    seals = [{name: value for name, value in seal.items() if name not in ("run", "number")} for seal in record.seals]
    return Line.model_construct(
        run={name: record.row[name] for name in _COLUMNS},
        seals=[_Seal.model_construct(**seal) for seal in seals],
        bodies=bodies,
        events=[_Event.model_construct(**event) for event in events],
    )


def text_of(line: Line) -> str:
    """A line as text."""
    return encode(line.model_dump())


def enter_lines(store: Store, study: Mapping[str, Any], lines: Iterable[str]) -> Holdings:
    """Enter a study and the runs of its bundle into an empty store.

    Raises `BundleError` if a line is malformed or a run is repeated or of another study.
    """
    holdings = Holdings()
    _insert(store, schema.studies, [dict(study)])
    for number, text in enumerate(lines, start=1):
        where = f"run {number}"
        line = _parsed(decode(text, where), where)
        if line.run["study"] != study["name"]:
            raise BundleError(f"{where} is not of the study")
        run = line.run["id"]
        _insert(store, _RUNS, [{**line.run, "worker": None, "lease": None, "place": number}])
        _insert(
            store, schema.seals, [{"run": run, "number": n, **seal.model_dump()} for n, seal in enumerate(line.seals)]
        )
        _insert(
            store, schema.events, [{"run": run, "seq": n, **each.model_dump()} for n, each in enumerate(line.events)]
        )
        _insert(store, schema.bodies, list(_packed(run, line.bodies, where)))
        holdings.add(line)
    return holdings


def _parsed(data: Any, where: str) -> Line:
    try:
        line = Line.model_validate(data)
        if line.run.keys() != set(_COLUMNS):
            odd = sorted(line.run.keys() ^ set(_COLUMNS))
            raise BundleError(f"{where} has other columns than a run of this version: {odd[0][:80]}")
        _RECORD.validate_json(encode(line.run), strict=True)
    except ValidationError as error:
        raise BundleError(f"{where}: {explain(error).splitlines()[0]}") from error
    return line


def _packed(run: str, bodies: Iterable[_Body], where: str) -> Iterator[dict[str, Any]]:
    unpacker = Unpacker()
    for number, body in enumerate(bodies, start=1):
        try:
            raw = body.text.encode() if body.media in _TEXTS else base64.b64decode(body.text, validate=True)
            packed = Body(number, body.media, raw, None if body.media == "png" else unpacker.before)
            stored = Body(number, body.media, packed.data)
            unpacker.value(stored)
        except (UnicodeEncodeError, binascii.Error, UnreadableBodyError, RecursionError) as error:
            raise BundleError(f"{where}: its text or file {number} is malformed: {error}") from error
        yield {"run": run, "number": number, "media": body.media, "data": stored.data}


def _insert(store: Store, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    try:
        new = store.write(lambda connection: store.insert_new(connection, table, rows))
    except (OverflowError, UnicodeEncodeError, StoreError) as error:
        raise BundleError(f"one of its {table.name} is repeated, or beyond what a store holds") from error
    if new != len(rows):
        raise BundleError(f"one of its {table.name} is repeated")
