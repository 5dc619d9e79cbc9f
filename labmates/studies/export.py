"""Rows of a store for other programs: CSV, JSON lines or Parquet, in little memory however many runs there are."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from labmates.errors import MissingExtraError, telling
from labmates.records.frames import COLUMNS, Rows, rows
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.util.csv_rows import inert

_CHUNK = 1000


def export_rows(
    store: Store,
    path: Path,
    runs: Iterable[RunRecord],
    *,
    what: Rows = "runs",
    watch: Callable[[int], None] | None = None,
) -> int:
    """Write one row per run, score, player, decision, payoff, message or event, and return their number.

    The columns are those of `labmates.records.frames.frame`; the ending of the path, one of
    `labmates.workflows.protocol.export.TABLES`, is the format. The file appears only when complete. `watch` receives
    the number of rows so far. A text in a CSV cell that a spreadsheet would run as a formula is made inert. Raises
    `UsageError` if the file can't be written; `MissingExtraError` if Parquet is requested and pyarrow is not installed.
    """
    writers = {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}
    form = path.suffix.removeprefix(".")
    if form == "parquet":
        _pyarrow()
    with telling(f"can't write '{path}'"):
        path.parent.mkdir(parents=True, exist_ok=True)
    with (
        telling(f"can't write '{path}'"),
        _replacing(path) as target,
        tempfile.TemporaryFile("w+", encoding="utf-8", dir=path.parent) as spool,
    ):
        columns, number = _spool(rows(store, what, runs), COLUMNS[what], spool, watch)
        writers[form](spool, target, columns)
    return number


def _spool(
    stored: Iterable[dict[str, Any]], always: Iterable[str], spool: IO[str], watch: Callable[[int], None] | None
) -> tuple[dict[str, set[str]], int]:
    """Write all rows as JSON lines; return the types of values by column, and the number of rows."""
    columns: dict[str, set[str]] = {name: set() for name in always}
    count = 0
    for row in stored:
        for name, value in row.items():
            columns.setdefault(name, set()).add(type(value).__name__)
        spool.write(json.dumps(row) + "\n")
        count += 1
        if watch is not None and count % _CHUNK == 0:
            watch(count)
    return columns, count


def _rows(spool: IO[str]) -> Iterator[dict[str, Any]]:
    spool.seek(0)
    return map(json.loads, spool)


def _write_jsonl(spool: IO[str], target: Path, _columns: dict[str, set[str]]) -> None:
    spool.seek(0)
    with target.open("w", encoding="utf-8") as file:
        while text := spool.read(1 << 20):
            file.write(text)


def _write_csv(spool: IO[str], target: Path, columns: dict[str, set[str]]) -> None:
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: inert(cell) for name, cell in row.items()} for row in _rows(spool))


def _write_parquet(spool: IO[str], target: Path, columns: dict[str, set[str]]) -> None:
    arrow, parquet = _pyarrow()
    schema = arrow.schema([(name, _arrow_type(arrow, types)) for name, types in columns.items()])
    texts = [name for name in columns if schema.field(name).type == arrow.string()]
    rows = _rows(spool)
    with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        while some := list(islice(rows, 10 * _CHUNK)):
            for row in some:
                row.update({name: _text(row.get(name)) for name in texts})
            writer.write_table(arrow.Table.from_pylist(some, schema=schema))


def _arrow_type(arrow: Any, types: set[str]) -> Any:
    present = types - {"NoneType"}
    for names, kind in (
        ({"bool"}, arrow.bool_()),
        ({"int"}, arrow.int64()),
        ({"int", "float"}, arrow.float64()),
    ):
        if present and present <= names:
            return kind
    return arrow.string()


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError("an export as Parquet", "parquet") from error
    return pyarrow, parquet


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside `path`, and rename it when complete."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        target = Path(folder) / path.name
        yield target
        target.replace(path)
