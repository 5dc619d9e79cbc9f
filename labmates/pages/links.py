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
    """Addresses as a server has them.

    Attributes
    ----------
    is_static
        Whether these are files: then there is nothing that a server would do.
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
        kept = {**({"page": page} if page > 1 else {}), **query}
        return _with_query(f"{self.run(run_id)}/story", kept) + (f"#e{anchor}" if anchor is not None else "")

    def event(self, run_id: str, number: int) -> str:
        """The address of a page of one event, with all that belongs to it."""
        return f"{self.run(run_id)}/events/{number}"

    def figure(self, run_id: str, body: int) -> str:
        """The address of a picture."""
        return f"{self.run(run_id)}/figures/{body}.png"

    def file(self, run_id: str, event: int, place: int) -> str:
        """The address of the artifact of an event (place 0), or of one of the files that its code wrote."""
        return f"{self.run(run_id)}/files/{event}/{place}"

    def live(self, run_id: str) -> str:
        """The address of what is new in a run."""
        return f"{self.run(run_id)}/live"

    def approval(self, run_id: str) -> str:
        """The address of the question that a run asks a person."""
        return f"{self.run(run_id)}/approval"

    def turn(self, run_id: str, agent: str = "") -> str:
        """The address of what a person who takes part in a run is to answer."""
        return _with_query(f"{self.run(run_id)}/turn", {"agent": agent})

    def replies(self, run_id: str) -> str:
        """The address of the replies under way in a run."""
        return f"{self.run(run_id)}/replies"

    def notes(self, run_id: str) -> str:
        """The address that takes notes on a run."""
        return f"{self.run(run_id)}/notes"

    def judging(self, **query: Any) -> str:
        """The address of the page on which a person scores the runs of a study."""
        return _with_query("/judging", query)

    def match(self, run_id: str, **query: Any) -> str:
        """The address of the page of one match."""
        return _with_query(f"{self.run(run_id)}/match", query)

    def transcript(self, run_id: str, page: int = 1, **query: Any) -> str:
        """The address of a page of the transcript of agents."""
        return _with_query(f"{self.run(run_id)}/transcript", {"page": page if page > 1 else "", **query})

    def analysis_figure(self, **query: Any) -> str:
        """The address of a figure of an analysis as a file."""
        return _with_query("/analyses/figure", query)

    def search(self, **query: Any) -> str:
        """The address of a full-text search."""
        return _with_query("/search", query)

    def study_live(self, study: str) -> str:
        """The address for changes of a study."""
        return _with_query("/studies/live", {"study": study})

    def compare(self, *runs: str) -> str:
        """The address of runs side by side."""
        return _with_query("/compare", {"run": runs})

    def asset(self, name: str) -> str:
        """The address of a file of the viewer itself."""
        return f"/static/{name}"


@dataclass(frozen=True)
class FileLinks(Links):
    """Addresses within an export, from a file that lies `depth` folders deep.

    Attributes
    ----------
    known, studies_known
        The runs that are there, and the studies whose analyses are.
    told
        The numbers of the events that the story of the run at hand tells.
    has_events
        Whether events have pages of their own; otherwise they are found in the story.
    """

    is_static: bool = True
    depth: int = 0
    known: frozenset[str] = frozenset()
    studies_known: frozenset[str] = frozenset()
    told: tuple[int, ...] = ()
    has_events: bool = True

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
        """The address of a study's analyses, or of one of them; empty for a study that is not there."""
        if study not in self.studies_known:
            return ""
        return self._to(f"analyses/{_file_name(study)}/{_plain_name(name) or 'index'}.html")

    def run(self, run_id: str) -> str:
        """The address of a run's first page; empty for a run that is not there."""
        return self._to(f"{run_folder(run_id)}/index.html") if run_id in self.known else ""

    def story(self, run_id: str, page: int = 1, anchor: int | None = None, **query: Any) -> str:
        """The address of a page of a run's events."""
        return self._to(f"{run_folder(run_id)}/story-{page}.html") + (f"#e{anchor}" if anchor is not None else "")

    def event(self, run_id: str, number: int) -> str:
        """The address of the page of one event, or of its place in the story."""
        at = max(0, bisect_right(self.told, number) - 1)
        if self.has_events and at < len(self.told) and self.told[at] == number:
            return self._to(f"{run_folder(run_id)}/events/{number}.html")
        return self.story(run_id, at // PER_PAGE + 1, self.told[at] if self.told else None)

    def figure(self, run_id: str, body: int) -> str:
        """The address of a picture."""
        return self._to(f"{run_folder(run_id)}/figures/{body}.png")

    def file(self, run_id: str, event: int, place: int) -> str:
        """The address of a file that an agent or its code wrote; all are text or bytes that no browser runs."""
        return self._to(f"{run_folder(run_id)}/files/{event}-{place}.{'txt' if place == 0 else 'bin'}")

    def transcript(self, run_id: str, page: int = 1, **query: Any) -> str:
        """The address of a page of an agent's transcript, by default the first one's; empty without events."""
        [name] = query.get("agent") or [""]
        place = f"-{_file_name(name)}-{page}" if name else ""
        return self._to(f"{run_folder(run_id)}/transcript{place}.html") if self.has_events else ""

    def search(self, **query: Any) -> str:
        """The address of the page that searches the exported texts."""
        return self._to("search.html")

    def texts(self, run_id: str) -> str:
        """The address of the texts of a run, as the page that searches loads them."""
        return self._to(f"{run_folder(run_id)}/texts.js")

    def asset(self, name: str) -> str:
        """The address of a file of the viewer itself."""
        return self._to(f"static/{name}")

    def _nothing(self, *_parts: str, **_query: Any) -> str:
        return ""

    # Nothing executes, asks anybody, plays a match again or chooses runs where there is no server.
    live = approval = turn = replies = match = compare = _nothing


def run_folder(run_id: str) -> str:
    """The folder of a run within an export: its id, which is letters and digits, without anything else."""
    return f"runs/{_plain_name(run_id)}"


def _file_name(name: str) -> str:
    return f"{_plain_name(name)[:40]}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _plain_name(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)


def _with_query(path: str, query: dict[str, Any]) -> str:
    kept = {name: value for name, value in query.items() if value not in ("", None, ())}
    return f"{path}?{urlencode(kept, doseq=True)}" if kept else path
