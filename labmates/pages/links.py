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
    """Addresses of a server's pages.

    `is_static` tells that the addresses are files, without the functions of a server.
    """

    is_static: bool = False

    def runs(self, **query: Any) -> str:
        """The address of the list of runs; empty values are left out."""
        return _with_query("/", query)

    def studies(self) -> str:
        """The address of the list of studies."""
        return "/studies"

    def analyses(self, study: str, name: str = "") -> str:
        """The address of a study's analyses, or of one of them."""
        return _with_query("/analyses", {"study": study, "analysis": name})

    def run(self, run_id: str) -> str:
        """The address of a run's first page."""
        return f"/runs/{quote(run_id, safe='')}"

    def story(self, run_id: str, page: int = 1, anchor: int | None = None, **query: Any) -> str:
        """The address of a page of a run's events; `anchor` is the number of an event on it."""
        pages = {"page": page if page > 1 else ""}
        return _with_query(f"{self.run(run_id)}/story", {**pages, **query}) + (
            f"#e{anchor}" if anchor is not None else ""
        )

    def event(self, run_id: str, number: int) -> str:
        """The address of the page of one event."""
        return f"{self.run(run_id)}/events/{number}"

    def figure(self, run_id: str, body: int) -> str:
        """The address of a picture."""
        return f"{self.run(run_id)}/figures/{body}.png"

    def file(self, run_id: str, event: int, place: int) -> str:
        """The address of an event's artifact (place 0), or of one of the files of its code."""
        return f"{self.run(run_id)}/files/{event}/{place}"

    def of_run(self, run_id: str, page: str, **query: Any) -> str:
        """The address of a run's page that needs a server, such as ``live``."""
        return _with_query(f"{self.run(run_id)}/{page}", query)

    def page(self, path: str, **query: Any) -> str:
        """The address of another page that needs a server, such as ``search``."""
        return _with_query(f"/{path}", query)

    def transcript(self, run_id: str, page: int = 1, **query: Any) -> str:
        """The address of a page of the transcript of agents."""
        return _with_query(f"{self.run(run_id)}/transcript", {"page": page if page > 1 else "", **query})

    def asset(self, name: str) -> str:
        """The address of a static file of the viewer."""
        return f"/static/{name}"


@dataclass(frozen=True)
class FileLinks(Links):
    """Addresses within an export, from a file that lies `depth` folders deep."""

    is_static: bool = True
    depth: int = 0
    known: frozenset[str] = frozenset()  # exported runs
    studies_known: frozenset[str] = frozenset()  # studies with exported analyses
    events: tuple[int, ...] = ()  # numbers of the events in the story of the current run
    has_events: bool = True  # whether events have pages; otherwise they are only in the story

    def _to(self, path: str) -> str:
        return "../" * self.depth + path

    def runs(self, **query: Any) -> str:
        """The address of a page of the list of runs."""
        page = query.get("page", 1)
        return self._to("index.html" if page == 1 else f"runs-{page}.html")

    def studies(self) -> str:
        """The address of the list of studies."""
        return self._to("studies.html")

    def analyses(self, study: str, name: str = "") -> str:
        """The address of a study's analyses, or of one of them; empty for a missing study."""
        if study not in self.studies_known:
            return ""
        return self._to(f"analyses/{_file_name(study)}/{_plain_name(name) or 'index'}.html")

    def run(self, run_id: str) -> str:
        """The address of a run's first page; empty for a missing run."""
        return self._to(f"{run_folder(run_id)}/index.html") if run_id in self.known else ""

    def story(self, run_id: str, page: int = 1, anchor: int | None = None, **query: Any) -> str:
        """The address of a page of a run's events."""
        return self._to(f"{run_folder(run_id)}/story-{page}.html") + (f"#e{anchor}" if anchor is not None else "")

    def event(self, run_id: str, number: int) -> str:
        """The address of the page of one event, or of its place in the story."""
        at = max(0, bisect_right(self.events, number) - 1)
        if self.has_events and at < len(self.events) and self.events[at] == number:
            return self._to(f"{run_folder(run_id)}/events/{number}.html")
        return self.story(run_id, at // PER_PAGE + 1, self.events[at] if self.events else None)

    def figure(self, run_id: str, body: int) -> str:
        """The address of a picture."""
        return self._to(f"{run_folder(run_id)}/figures/{body}.png")

    def file(self, run_id: str, event: int, place: int) -> str:
        """The address of a file by an agent or its code, with an extension that browsers don't execute."""
        return self._to(f"{run_folder(run_id)}/files/{event}-{place}.{'txt' if place == 0 else 'bin'}")

    def transcript(self, run_id: str, page: int = 1, **query: Any) -> str:
        """The address of a page of an agent's transcript, by default the first agent's; empty without events."""
        [name] = query.get("agent") or [""]
        place = f"-{_file_name(name)}-{page}" if name else ""
        return self._to(f"{run_folder(run_id)}/transcript{place}.html") if self.has_events else ""

    def asset(self, name: str) -> str:
        """The address of a static file of the viewer."""
        return self._to(f"static/{name}")

    def of_run(self, run_id: str, page: str, **query: Any) -> str:
        """Empty, since there is no server."""
        return ""

    def page(self, path: str, **query: Any) -> str:
        """Empty, since there is no server."""
        return ""


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
