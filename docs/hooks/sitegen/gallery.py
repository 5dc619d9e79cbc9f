"""The gallery: the viewer's pages of the sample store, as files of the site."""

from __future__ import annotations

from html import escape
from pathlib import Path

from labmates.cli.view import sample_store
from labmates.pages.links import Links
from labmates.records.store import Store
from labmates.reports.results import parameters, shown_name, varying
from labmates.viewer.export import export_pages


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
            values = parameters(run, names[run.study])
            said = ", ".join([run.shown_models, *(_said(name, value) for name, value in values.items())])
            studies.setdefault(str(run.study), {}).setdefault(run.key, (run.id, said))
    links = Links(is_static=True, known=frozenset(run.id for run in runs), studies_known=frozenset(studies))
    items = []
    for study, conditions in studies.items():
        each = "".join(
            f'<li><a href="pages/{links.run(run)}">{escape(said)}</a></li>'
            for run, said in sorted(conditions.values(), key=lambda value: value[1])
        )
        items.append(
            f'<li><a href="pages/{links.analyses(study)}">Results of {escape(study)}</a>, with a run of each condition:'
            f"<ul>{each}</ul></li>"
        )
    return "\n".join(items)


def _said(name: str, value: str) -> str:
    """A parameter's value; a number is named."""
    return f"{shown_name(name)} {value}" if value.replace(".", "").isdigit() else value
