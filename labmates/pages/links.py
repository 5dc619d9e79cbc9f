"""Addresses of pages and files: those of the server, or relative ones in an export."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

PER_PAGE: Final = 100
"""Events on a page of a run's story."""


@dataclass(frozen=True)
class Links:
    """Addresses of pages: those of a server, or in an export those of files, relative to one of its pages."""

    is_static: bool = False  # whether the addresses are files, without the functions of a server
    depth: int = 0  # how many folders deep the page lies in the export
    known: frozenset[str] = frozenset()  # exported runs
    studies_known: frozenset[str] = frozenset()  # studies with exported analyses
    events: tuple[int, ...] = ()  # numbers of the events in the story of the current run
    has_events: bool = True  # whether events have pages; otherwise they are only in the story

    def _at(self, path: str, file: str = "", /, **query: Any) -> str:
        """The address of a page by its path and query on the server, or its file; empty in an export without it."""
        if not self.is_static:
            return _with_query(path, query)
        return "../" * self.depth + file if file else ""

    def runs(self, **query: Any) -> str:
        """The address of the list of runs, or of a page of it in an export; empty values are left out."""
        page = query.get("page", 1)
        return self._at("/", "index.html" if page == 1 else f"runs-{page}.html", **query)

    def studies(self) -> str:
        """The address of the list of studies."""
        return self._at("/studies", "studies.html")

    def analyses(self, study: str, name: str = "") -> str:
        """The address of a study's analyses, or of one of them; empty for a missing study."""
        file = f"analyses/{_file_name(study)}/{_plain_name(name) or 'index'}.html"
        return self._at("/analyses", file * (study in self.studies_known), study=study, analysis=name)

    def run(self, run_id: str) -> str:
        """The address of a run's first page; empty for a missing run."""
        return self._at(_of_run(run_id), f"{run_folder(run_id)}/index.html" * (run_id in self.known))

    def story(self, run_id: str, page: int = 1, anchor: int | None = None, **query: Any) -> str:
        """The address of a page of a run's events; `anchor` is the number of an event on it."""
        at = self._at(f"{_of_run(run_id)}/story", f"{run_folder(run_id)}/story-{page}.html", page=_later(page), **query)
        return at if anchor is None else f"{at}#e{anchor}"

    def event(self, run_id: str, number: int) -> str:
        """The address of the page of one event, or of its place in the story."""
        at = max(0, bisect_right(self.events, number) - 1)
        has_page = self.has_events and at < len(self.events) and self.events[at] == number
        if self.is_static and not has_page:
            return self.story(run_id, at // PER_PAGE + 1, self.events[at] if self.events else None)
        return self._at(f"{_of_run(run_id)}/events/{number}", f"{run_folder(run_id)}/events/{number}.html")

    def figure(self, run_id: str, body: int) -> str:
        """The address of a picture."""
        return self._at(f"{_of_run(run_id)}/figures/{body}.png", f"{run_folder(run_id)}/figures/{body}.png")

    def file(self, run_id: str, event: int, place: int) -> str:
        """The address of an event's artifact (place 0), or of one of the files of its code.

        The extension in an export is one that browsers don't execute.
        """
        file = f"{run_folder(run_id)}/files/{event}-{place}.{'txt' if place == 0 else 'bin'}"
        return self._at(f"{_of_run(run_id)}/files/{event}/{place}", file)

    def transcript(self, run_id: str, page: int = 1, **query: Any) -> str:
        """The address of a page of the transcript of agents, by default the first agent's; empty without events."""
        place = f"-{_file_name(query['agent'][0])}-{page}" if query.get("agent") else ""
        file = f"{run_folder(run_id)}/transcript{place}.html" * self.has_events
        return self._at(f"{_of_run(run_id)}/transcript", file, page=_later(page), **query)

    def asset(self, name: str) -> str:
        """The address of a static file of the viewer."""
        return self._at(f"/static/{name}", f"static/{name}")

    def of_run(self, run_id: str, page: str, **query: Any) -> str:
        """The address of a run's page that needs a server, such as ``live``; empty in an export."""
        return self._at(f"{_of_run(run_id)}/{page}", **query)

    def page(self, path: str, **query: Any) -> str:
        """The address of another page that needs a server, such as ``search``; empty in an export."""
        return self._at(f"/{path}", **query)


def _of_run(run_id: str) -> str:
    return f"/runs/{quote(run_id, safe='')}"


def _later(page: int) -> int | str:
    return page if page > 1 else ""


def run_folder(run_id: str) -> str:
    """The folder of a run within an export, named by its id."""
    return f"runs/{_plain_name(run_id)}"


def _file_name(name: str) -> str:
    return f"{_plain_name(name)[:40]}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _plain_name(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)


def _with_query(path: str, query: dict[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value not in ("", None, ())}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
