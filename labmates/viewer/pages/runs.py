"""The lists of runs and of studies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from markupsafe import Markup
from starlette.datastructures import QueryParams

from labmates.errors import LabmatesError, unknown_name
from labmates.pages.links import Links
from labmates.pages.rendering import render
from labmates.records.listing import PAGE, Chosen, Facets, facets, run_count, run_page
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import WAITING, Counts, failure_reasons, invalid_reasons, study_counts, study_record
from labmates.reports.results import NAMED, headline, listed_parameters, shown_name
from labmates.viewer.pages.run import page_number, pages_of

_STUDIES_SHOWN: Final = 6
_REASONS: Final = 5
_METRICS: Final = 3
"""That fit into a line of a list."""
NUMERIC: Final = ("started", "seconds", "spent")
"""Columns that are sorted in descending order by default."""


@dataclass(frozen=True)
class Asked:
    """A request for a list of runs."""

    chosen: Chosen
    sort: str
    descending: bool

    def query(self, **changes: Any) -> dict[str, Any]:
        """The query of the same list with `changes`, from its first page."""
        order = "" if self.descending == (self.sort in NUMERIC) else "desc" if self.descending else "asc"
        sort = "" if self.sort == "started" else self.sort
        return {**asdict(self.chosen), "sort": sort, "order": order, **changes}


def asked_for(query: QueryParams, known: Facets) -> Asked:
    """The request in the query of an address.

    Raises `UsageError` if the study, kind or direction is unknown.
    """
    texts: dict[str, Any] = {
        name: query.get(name, "").strip() for name in asdict(Chosen()) if name not in ("key", "ids")
    }
    chosen = Chosen(**texts, key=tuple(query.getlist("key")))
    for what, name, names in (
        ("study", chosen.study, known.studies),
        ("kind", chosen.kind, known.kinds),
        ("direction", query.get("order", ""), ("asc", "desc")),
    ):
        if name and name not in names:
            raise unknown_name(what, name, names)
    sort = query.get("sort") or "started"
    order = query.get("order") or ("desc" if sort in NUMERIC else "asc")
    return Asked(chosen, sort, order == "desc")


def runs_page(store: Store, query: QueryParams, links: Links, *, unindexed: int, waiting: Collection[str]) -> Markup:
    """The page of the list of runs for a query; `waiting` runs are marked. `UsageError` if the query is invalid."""
    known = facets(store)
    asked = asked_for(query, known)
    found = known.total if asked.chosen.is_all else run_count(store, asked.chosen)
    page = page_number(query, pages_of(found, PAGE))
    runs = run_page(store, asked.chosen, sort=asked.sort, descending=asked.descending, page=page)
    return listed(store, known, asked, runs, links, found=found, page=page, unindexed=unindexed, waiting=waiting)


def listed(
    store: Store,
    known: Facets,
    asked: Asked,
    runs: Sequence[RunRecord],
    links: Links,
    *,
    found: int,
    page: int,
    unindexed: int = 0,
    waiting: Collection[str] = (),
) -> Markup:
    """A page of a list of `found` runs."""
    chosen = asked.chosen
    [kind, *others] = dict.fromkeys(run.kind for run in runs) or [chosen.kind]
    kind = "" if others else kind
    return render(
        "runs.html",
        links=links,
        store=store.shown_url,
        facets=known,
        asked=asked,
        runs=runs,
        page=page,
        pages=pages_of(found, PAGE),
        found=found,
        kind=kind,
        columns=headline(kind)[:_METRICS] if kind else (),
        headline=headline,
        fractional={name for run in runs for name, value in run.metrics.items() if value % 1},
        study=standing(store, chosen.study) if chosen.study else None,
        chips=listed_parameters(runs),
        plain_chips=NAMED,
        shown_name=shown_name,
        shown_studies=dict(list(known.studies.items())[:_STUDIES_SHOWN]),
        unindexed=unindexed,
        waiting=waiting,
    )


def standing(store: Store, study: str) -> dict[str, Any]:
    """The progress and cost of a study, and the reasons of failed and invalid runs."""
    counts = study_counts(store, study)
    return {
        "name": study,
        "counts": counts,
        "reasons": failure_reasons(store, study, _REASONS),
        "invalid": invalid_reasons(store, study, _REASONS),
        "record": _record(store, study),
        **study_news(counts),
    }


def study_news(counts: Counts) -> dict[str, Any]:
    """Whether a study has unfinished runs, and a stamp that changes with its progress."""
    numbers = [f"{name}{number}" for name, number in sorted(counts.runs.items())]
    return {"is_live": counts.of("running", *WAITING) > 0, "stamp": "-".join([*numbers, str(counts.spent)])}


def studies_page(store: Store, links: Links) -> Markup:
    """The list of studies."""
    return render("studies.html", links=links, store=store.shown_url, facets=facets(store))


def _record(store: Store, name: str) -> Any:
    """A study's plan; None if the store has only its runs."""
    try:
        return study_record(store, name)
    except LabmatesError:
        return None
