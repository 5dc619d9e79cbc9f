"""The gallery: the viewer's pages of the sample store, as files of the site."""

from __future__ import annotations

from html import escape
from pathlib import Path

from labmates.pages.links import FileLinks
from labmates.records.store import Store
from labmates.reports.results import parameters, varying
from labmates.viewer.export import export_pages
from labmates.viewer.sample import sample_store


def write_gallery(folder: Path) -> None:
    """Write the pages of the sample store to a folder."""
    with sample_store() as url, Store(url, read_only=True) as store:
        export_pages(store, folder)


def gallery_links() -> str:
    """Links to the results of each study, and to a run of each of its conditions, as items of a list."""
    with sample_store() as url, Store(url, read_only=True) as store:
        studies: dict[str, dict[str, tuple[str, str]]] = {}
        runs = list(store.runs())
        names = {study: varying(run for run in runs if run.study == study) for study in {run.study for run in runs}}
        for run in runs:
            said = ", ".join([run.shown_models, *parameters(run, names[run.study]).values()])
            studies.setdefault(str(run.study), {}).setdefault(run.key, (run.id, said))
    links = FileLinks(known=frozenset(run.id for run in runs), studies_known=frozenset(studies))
    items = []
    for study, conditions in studies.items():
        each = ", ".join(f'<a href="pages/{links.run(run)}">{escape(said)}</a>' for run, said in conditions.values())
        items.append(f'<li><a href="pages/{links.analyses(study)}">Results of {escape(study)}</a>; runs: {each}</li>')
    return "\n".join(items)
