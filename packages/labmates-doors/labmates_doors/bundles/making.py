"""Bundles of studies."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from labmates._version import __version__
from labmates.errors import UsageError
from labmates.models.redact import FRAGMENT, SECRET_NAME
from labmates.records import schema
from labmates.records.bodies import Unpacker
from labmates.records.copying import copy_store
from labmates.records.digests import digest_of_all
from labmates.records.run import ENDED
from labmates.records.store import Store
from labmates.records.studies import study_record
from labmates.studies.audit import WholeRecord, audit, begun_runs, overspent
from labmates_doors.bundles.container import MANIFEST, RUNS, TABLES, encode, pack, sha256, write_lines
from labmates_doors.bundles.rows import Holdings, lines_of, text_of
from labmates_doors.bundles.tables import REPLAY, REPORT, code_of, libraries, packages, tables_of

FORMAT: Final = 1


@dataclass(frozen=True)
class Made:
    """A written bundle; its digest covers every byte."""

    digest: str
    study: str
    runs: int


def make_bundle(store: str, study: str, target: Path) -> Made:
    """Write a study's bundle, of one snapshot of its store; runs in progress are interrupted in it.

    Parameters
    ----------
    store
        URL of the store.
    study
        Name of the study.
    target
        The file to write, a new one.

    Raises
    ------
    UsageError
        If the study is missing or not begun, its records contradict their digests, the file exists or can't be written,
        or a text holds the value of an environment variable that is a secret by its name.
    """
    if target.exists():
        raise UsageError(f"'{target}' exists; give a new file")
    with tempfile.TemporaryDirectory(prefix="labmates-bundle-") as name:
        folder = Path(name)
        copy = f"sqlite:///{folder}/runs.db"
        copy_store(store, copy, study=study)
        with Store(copy, must_exist=True) as copied:
            digest, runs = _write(copied, study, folder)
        try:
            pack(folder, folder / "bundle.zip")
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write((folder / "bundle.zip").read_bytes())
        except OSError as error:
            raise UsageError(f"can't write the bundle '{target}': {error.strerror or error}") from error
    return Made(digest, study, runs)


def _write(store: Store, study: str, folder: Path) -> tuple[str, int]:
    """Write the members into a folder; return the digest and the number of runs."""
    for fault in faults_of(store, study):
        raise UsageError(f"{fault}; a bundle of it would be refused (labmates store check)")
    holdings, guard, ended, kinds = Holdings(), _Guard(os.environ), [], dict[str, None]()

    def lines() -> Iterator[str]:
        for record, line in lines_of(store, study):
            text = text_of(line)
            guard.check(record, text)
            holdings.add(line)
            kinds[record.run.kind] = None
            ended.extend([record.run.digest] if record.run.digest and record.run.status in ENDED else [])
            yield text

    write_lines(folder / RUNS, lines())
    tables = tables_of(store, study)
    (folder / TABLES).write_text(encode(tables), encoding="ascii")
    counts = holdings.as_json()
    makers = dict.fromkeys([REPORT, REPLAY, *(str(table["by"]) for table in tables)])
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "labmates": __version__,
        "store": schema.VERSION,
        "study": asdict(study_record(store, study)),
        "holds": {**counts, "ended": len(ended), "digest": digest_of_all(ended)},
        "code": code_of(makers, kinds),
        "environment": {"libraries": libraries(), "packages": packages()},
        "files": {name: sha256(folder / name) for name in (TABLES, RUNS)},
    }
    text = encode(manifest, readable=True)
    guard.check(None, text)
    (folder / MANIFEST).write_text(text, encoding="ascii")
    return sha256(folder / MANIFEST), counts["runs"]


def faults_of(store: Store, study: str) -> Iterator[str]:
    """Yield what contradicts itself in the records of a study."""
    for run, faults in audit(store, begun_runs(store)):
        yield from (f"run {run}: {fault.text}" for fault in faults)
    yield from (f"study {name}: {text}" for name, text in overspent(store, study))


class _Guard:
    """Refuses texts that hold a secret of this process's environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        secret = {name: value for name, value in environment.items() if SECRET_NAME.search(name)}
        self._secrets = {name: value for name, value in secret.items() if len(value) >= FRAGMENT}

    def check(self, record: WholeRecord | None, text: str) -> None:
        """Check a member's text, and the texts and files of a run."""
        unpacker = Unpacker()
        raw = [unpacker.raw(body) for body in record.bodies] if record is not None and self._secrets else []
        for name, value in self._secrets.items():
            if encode(value)[1:-1] in text or any(value.encode() in body for body in raw):
                whose = f"run {record.run.id}" if record is not None else "the study"
                raise UsageError(
                    f"{whose} holds the value of {name}, which a bundle would publish; nothing was written"
                )
