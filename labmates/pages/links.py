"""Addresses of pages and files."""

from __future__ import annotations

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


def _with_query(path: str, query: dict[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value not in ("", None, ())}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
