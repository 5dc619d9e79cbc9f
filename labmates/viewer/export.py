"""Export of the pages as files with relative links, without a server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from starlette.datastructures import QueryParams

from labmates.errors import UsageError, telling
from labmates.pages.links import PER_PAGE, Links, run_folder
from labmates.pages.rendering import explain
from labmates.records.events import Event
from labmates.records.listing import PAGE, Chosen, facets, run_page
from labmates.records.reading import RunReader
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_record
from labmates.studies.runs import so_far
from labmates.viewer.app import ASSETS, asset
from labmates.viewer.event_items import HIDDEN
from labmates.viewer.files import AbsentError, figure, file_of
from labmates.viewer.pages.analyses import Computed, analyses_of, analyses_page
from labmates.viewer.pages.run import event_page, overview, pages_of, story
from labmates.viewer.pages.runs import Asked, listed, studies_page
from labmates.viewer.pages.transcript import pages_by_agent, transcript
from labmates.workflows.protocol.glossary import glossary

_MARK: Final = ".labmates-view"
"""The file that marks a folder as an export, which may be overwritten."""
_OURS: Final = ("index.html", "studies.html", "search.html", "analyses", "runs", "static", _MARK)


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    runs: int
    files: int


def export_pages(
    store: Store,
    folder: Path,
    *,
    run_ids: Sequence[str] = (),
    study: str | None = None,
    limit: int | None = None,
    events: bool = True,
    watch: Callable[[str], None] = lambda _: None,
) -> Exported:
    """Write the pages of runs (by id, of a study, or all; at most the newest `limit`) to a folder.

    The start page is ``index.html``. The folder may be new, empty or an earlier export, which is replaced. `events`
    adds a page per event with the model's prompt, most of the files. `watch` receives the progress as text. Raises
    `UsageError` if there are no such runs, or the folder has other content or can't be written.
    """
    rows = _rows(store, run_ids, study, limit)
    if not rows:
        raise UsageError(f"no runs to export in the store {store.shown_url}")
    explain(glossary)
    writer = _Writer(folder)
    with telling(f"can't write to '{folder}'"):
        writer.begin()
        for name in ASSETS:
            writer.write(f"static/{name}", asset(name))
        known = frozenset(row.id for row in rows)
        studies = frozenset(row.study for row in rows if row.study)
        links = Links(is_static=True, known=known, studies_known=studies, has_events=events)
        _lists(store, rows, links, writer)
        for name in sorted(studies):
            watch(f"the analyses of {name}")
            runs = [run for run in store.runs(study=name) if run.id in known]
            computed = Computed()
            for analysis in ("", *analyses_of(run.kind for run in runs)):
                page = analyses_page(store, name, runs, replace(links, depth=2), analysis, computed)
                writer.write(links.analyses(name, analysis), page)
        for place, row in enumerate(rows, start=1):
            watch(f"run {place:,} of {len(rows):,}: {row.id}, {writer.files:,} files")
            run = so_far(store, store.run(row.id))
            _run(RunReader(store, run), links, writer, events=events)
    return Exported(len(rows), writer.files)


class _Writer:
    """Writes files into one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files = 0

    def begin(self) -> None:
        """Prepare the folder. Raises `UsageError` if it has other content."""
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / _MARK).is_file():
            raise UsageError(f"the folder '{folder}' is not empty and not an earlier export; name a new one")
        for path in folder.iterdir():
            if path.name in _OURS or (path.name.startswith("runs-") and path.suffix == ".html"):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        (folder / _MARK).write_text("Pages written by labmates view --export; they are replaced by the next one.\n")

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file under a trusted name."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
        self.files += 1


def _rows(store: Store, run_ids: Sequence[str], study: str | None, limit: int | None) -> list[RunRecord]:
    if study is not None:
        study_record(store, study)
    ids = tuple(store.run(run_id).id for run_id in run_ids)
    return run_page(store, Chosen(study=study or "", ids=ids), size=limit)


def _lists(store: Store, rows: Sequence[RunRecord], links: Links, writer: _Writer) -> None:
    known = facets(store)
    asked = Asked(Chosen(), "started", descending=True)
    for page in range(1, pages_of(len(rows), PAGE) + 1):
        some = rows[(page - 1) * PAGE : page * PAGE]
        writer.write(links.runs(page=page), listed(store, known, asked, some, links, found=len(rows), page=page))
    writer.write("studies.html", studies_page(store, links))


def _run(reader: RunReader, links: Links, writer: _Writer, *, events: bool) -> None:
    folder = run_folder(reader.run.id)
    numbers = reader.numbers(without=HIDDEN)
    here = replace(links, depth=2, events=tuple(numbers))
    writer.write(f"{folder}/index.html", overview(reader, here))
    for page in range(1, pages_of(len(numbers), PER_PAGE) + 1):
        writer.write(f"{folder}/story-{page}.html", story(reader, {"page": str(page)}, here))
    below = replace(here, depth=3)
    for number in numbers if events else ():
        writer.write(f"{folder}/events/{number}.html", event_page(reader, number, below))
    if events:
        _transcripts(reader, here, writer)
    written: set[str] = set()
    for number, event in reader.events("artifact", "tool_call").items():
        for name, content in _files(reader, number, event, replace(links, depth=0)):
            if name not in written:
                written.add(name)
                writer.write(name, content)


def _transcripts(reader: RunReader, links: Links, writer: _Writer) -> None:
    root = replace(links, depth=0)
    writer.write(root.transcript(reader.run.id), transcript(reader, QueryParams(), links))
    for agent, pages in pages_by_agent(reader).items():
        for page in map(str, range(1, pages + 1)):
            html = transcript(reader, QueryParams({"page": page, "agent": agent}), links)
            writer.write(root.transcript(reader.run.id, int(page), agent=[agent]), html)


def _files(reader: RunReader, number: int, event: Event, links: Links) -> Iterator[tuple[str, bytes]]:
    run_id = reader.run.id
    if event.type == "artifact":
        yield links.file(run_id, number, 0), file_of(reader, number, 0).content
    elif event.type == "tool_call":
        for image in event.images:
            with suppress(AbsentError):  # pages show a broken picture's alternative text
                yield links.figure(run_id, image), figure(reader, image)
        for place in range(1, len(event.files) + 1):
            yield links.file(run_id, number, place), file_of(reader, number, place).content
