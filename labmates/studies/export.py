"""One row per run, for other programs: CSV, JSON lines or Parquet, in little memory however many runs there are."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, get_args

from labmates.errors import MissingExtraError, UsageError
from labmates.records.store import Store
from labmates.records.view import flat_run

Format = Literal["parquet", "csv", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)
_CHUNK = 1000


def export_runs(
    store: Store, path: Path, form: Format, *, study: str | None = None, watch: Callable[[int], None] | None = None
) -> int:
    """Write one row per run that was begun to a file and return how many there are.

    Columns are the keys of a run's JSON record, those of its parts joined by dots: ``condition.task``,
    ``metrics.accuracy``, ``usage.llm_calls``; scores stand as ``scores.JUDGE.METRIC``, and models are joined by ``;``.
    The file is there only when it is whole.

    Parameters
    ----------
    study
        Runs of this study only.
    watch
        Told how many rows were read so far.

    Raises
    ------
    UsageError
        If the file can't be written.
    MissingExtraError
        If Parquet is asked for and pyarrow is not installed.
    """
    write = {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}[form]
    if form == "parquet":
        _pyarrow()
    try:
        with _replacing(path) as target, tempfile.TemporaryFile("w+", encoding="utf-8", dir=path.parent) as spool:
            columns, rows = _spool(store, study, spool, watch)
            write(spool, target, columns)
        return rows
    except OSError as error:
        raise UsageError(f"can't write '{path}': {error.strerror or error}") from error


def _spool(
    store: Store, study: str | None, spool: IO[str], watch: Callable[[int], None] | None
) -> tuple[dict[str, set[str]], int]:
    """Write all rows as JSON lines; return the types of values that each column holds, and the number of rows."""
    columns: dict[str, set[str]] = {}
    count = 0
    runs = store.runs(study=study)
    while some := list(islice(runs, _CHUNK)):
        scores = store.score_values([run.id for run in some])
        for run in some:
            row = flat_run(run, scores[run.id])
            for name, value in row.items():
                columns.setdefault(name, set()).add(type(value).__name__)
            spool.write(json.dumps(row) + "\n")
        count += len(some)
        if watch is not None:
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
        writer.writerows(_rows(spool))


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
    held = types - {"NoneType"}
    for names, kind in (
        ({"bool"}, arrow.bool_()),
        ({"int"}, arrow.int64()),
        ({"int", "float"}, arrow.float64()),
    ):
        if held and held <= names:
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
    """Give a file to write beside `path`, and put it there when it is whole."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        target = Path(folder) / path.name
        yield target
        target.replace(path)
