"""``labmates view``: runs in a browser, or as files; and the sample store, to try it without running anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import click

from labmates.cli.common import store_option, verbose_option
from labmates.cli.console import err, say
from labmates.errors import UsageError


@click.command(
    epilog="Examples: labmates view; labmates view labmates.db 3f9a2c41d7; labmates view --sample; "
    "labmates view --export pages --study small"
)
@click.argument("what", nargs=-1, metavar="[STORE] [RUN]...")
@store_option
@click.option("--sample", is_flag=True, help="Browse the small sample store that comes with labmates.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port. [default: 8642, or a free one if taken; 0: any]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of this machine to listen on.")
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
@click.option(
    "--export",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the pages of all runs, or of the named ones, to files and exit.",
)
@click.option("--study", metavar="NAME", help="With --export: runs of this study.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="With --export: at most the newest N runs.")
@click.option(
    "--events/--no-events", default=True, show_default=True, help="With --export: whether to write a page per event."
)
@verbose_option
def view(
    what: tuple[str, ...],
    store: str | None,
    sample: bool,
    port: int | None,
    host: str,
    no_browser: bool,
    export: Path | None,
    study: str | None,
    limit: int | None,
    events: bool,
) -> int:
    """Browse studies and runs in a local web page.

    STORE is a URL or the path of an SQLite file. With RUN, the browser opens that run's page. Only the search index,
    your notes and your scores are written to the store.
    """
    from labmates.pages.links import Links
    from labmates.records.store import Store
    from labmates.util.loopback import open_socket
    from labmates.viewer.export import export_pages
    from labmates.viewer.server import USUAL_PORT, serve

    named, runs = store_and_runs(what)
    if named and store:
        raise UsageError(f"two stores are given, '{named}' and '{store}'; choose one")
    if sample and (named or store):
        raise UsageError(f"two stores are given, the sample and '{named or store}'; choose one")
    if export is None and (study or limit or not events):
        raise UsageError("--study, --limit and --no-events go with --export; pages in a browser have filters")
    if export is None and len(runs) > 1:
        raise UsageError("name one RUN to open its page; several go with --export")
    with ExitStack() as stack:
        url = stack.enter_context(sample_store()) if sample else named or store
        database = stack.enter_context(Store(url, read_only=True))
        runs = [database.run(run).id for run in runs]
        if export is not None:
            with err().status("exporting …") as shown:
                done = export_pages(
                    database, export, run_ids=runs, study=study, limit=limit, events=events, watch=shown.update
                )
            say(f"{done.runs:,} runs, {done.files:,} files: {export / 'index.html'}")
            return 0
        listening = open_socket(host, port, what="viewer", usual=USUAL_PORT)
        path = Links().run(runs[0]) if runs else "/"
        serve(database, listening, browser=not no_browser, path=path, tell=_tell)
    return 0


def store_and_runs(what: tuple[str, ...]) -> tuple[str | None, list[str]]:
    """The store among the arguments, if any, and the runs."""
    from labmates.records.database import names_file

    if what and ("://" in what[0] or names_file(what[0])):
        return what[0], list(what[1:])
    return None, list(what)


def _tell(address: str) -> None:
    say(address)
    err().print("This address gives access to everything in the store. Stop with Ctrl-C.")


@contextmanager
def sample_store() -> Iterator[str]:
    """Yield the URL of a temporary, upgraded copy of the sample store."""
    from labmates.records.migrations import upgrade_store

    with TemporaryDirectory(prefix="labmates-sample-") as folder:
        path = Path(folder) / "sample.db"
        with as_file(files("labmates.viewer").joinpath("sample.sqlite")) as packed:
            shutil.copyfile(packed, path)
        path.chmod(0o600)
        url = f"sqlite:///{quote(str(path))}"
        upgrade_store(url)
        yield url
