"""``labmates store``: care for the database of runs."""

from __future__ import annotations

import click

from labmates.cli.console import out
from labmates.cli.options import store_option


@click.group(epilog="Example: labmates store upgrade")
def store() -> None:
    """Care for the database of runs."""


@store.command(epilog="Example: labmates store upgrade --store sqlite:///labmates.db")
@store_option
def upgrade(store: str | None) -> None:
    """Bring a store that an older labmates has made up to date. Make a copy first: there is no way back."""
    from labmates.api import store_url
    from labmates.records.upgrade import upgrade_store

    before, after = upgrade_store(store_url(store))
    said = f"it is of version {after} already" if before == after else f"from version {before} to {after}"
    out().print(f"The store is up to date: {said}.", markup=False)
