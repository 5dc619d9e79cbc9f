"""The list of runs, and that of studies."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from markupsafe import Markup
from starlette.datastructures import QueryParams

from labmates.errors import LabmatesError, unknown_name
from labmates.pages.links import Links
from labmates.pages.rendering import render
from labmates.records.listing import SORTS, STATUSES, Chosen, Facets, RunPage, facets, run_page
from labmates.records.store import Store
from labmates.records.studies import failure_reasons, invalid_reasons, study_counts, study_record
from labmates.workflows.experiment import EXPERIMENTS

_STUDIES_SHOWN: Final = 6
_REASONS: Final = 5
NUMERIC: Final = ("started", "seconds", "spent")
"""Orders that begin with the greatest unless asked otherwise."""


@dataclass(frozen=True)
class Asked:
    """What a list was asked for.

    Attributes
    ----------
    descending
        Whether the greatest comes first.
    """

    chosen: Chosen
    sort: str
    descending: bool
    after: str = ""
    before: str = ""

    def query(self, **changes: Any) -> dict[str, Any]:
        """Return the query of an address that asks for the same, but for `changes`; it begins at the first page."""
        order = "" if self.descending == (self.sort in NUMERIC) else "desc" if self.descending else "asc"
        sort = "" if self.sort == "started" else self.sort
        return {**asdict(self.chosen), "sort": sort, "order": order, **changes}


def asked_for(query: QueryParams, known: Facets) -> Asked:
    """Return what the query of an address asks for.

    Raises
    ------
    UsageError
        If it asks for a study, a kind, a status or an order that there is not.
    """
    texts = {name: query.get(name, "").strip() for name in asdict(Chosen()) if name != "key"}
    chosen = Chosen(**texts, key=tuple(query.getlist("key")))
    for what, name, names in (
        ("study", chosen.study, known.studies),
        ("kind", chosen.kind, known.kinds),
        ("status", chosen.status, STATUSES),
        ("order", query.get("sort", ""), SORTS),
        ("direction", query.get("order", ""), ("asc", "desc")),
    ):
        if name and name not in names:
            raise unknown_name(what, name, names)
    sort = query.get("sort") or "started"
    order = query.get("order") or ("desc" if sort in NUMERIC else "asc")
    return Asked(chosen, sort, order == "desc", query.get("after", ""), query.get("before", ""))


def runs_page(store: Store, query: QueryParams, links: Links) -> Markup:
    """Return the page of the list that a query asks for.

    Raises
    ------
    UsageError
        If it asks for what there is not.
    """
    known = facets(store.database)
    asked = asked_for(query, known)
    page = run_page(
        store.database,
        asked.chosen,
        sort=asked.sort,
        descending=asked.descending,
        after=asked.after,
        before=asked.before,
    )
    return listed(store, known, asked, page, links)


def listed(store: Store, known: Facets, asked: Asked, page: RunPage, links: Links, **more: Any) -> Markup:
    """Return a page of the list of runs."""
    chosen = asked.chosen
    study = None
    if chosen.study:
        study = {
            "counts": study_counts(store.database, chosen.study),
            "reasons": failure_reasons(store.database, chosen.study, _REASONS),
            "invalid": invalid_reasons(store.database, chosen.study, _REASONS),
            "record": _record(store, chosen.study),
        }
    return render(
        "runs.html",
        links=links,
        store=store.shown_url,
        facets=known,
        asked=asked,
        page=page,
        columns=headline(chosen.kind) if chosen.kind else (),
        study=study,
        shown_studies=dict(list(known.studies.items())[:_STUDIES_SHOWN]),
        **{"static_pages": 0, "static_page": 1, **more},
    )


def studies_page(store: Store, links: Links) -> Markup:
    """Return the list of studies."""
    return render("studies.html", links=links, store=store.shown_url, facets=facets(store.database))


def headline(kind: str) -> tuple[str, ...]:
    """Return the metrics that lists of runs of a kind show; none for a kind that this installation lacks."""
    try:
        found = EXPERIMENTS.get(kind)
    except LabmatesError:
        return ()
    return found.headline[:5]


def _record(store: Store, name: str) -> Any:
    """Return a study's plan; None for one whose runs are there without it."""
    try:
        return study_record(store.database, name)
    except LabmatesError:
        return None
