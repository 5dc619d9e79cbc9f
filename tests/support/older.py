"""Stores as older versions of labmates made them."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.store import Store

_UNDONE: Final = {
    "0009": ("drop table notes",),
    "0008": ("drop table search_words", "drop table search_texts", "drop table search_runs"),
    "0007": ("drop table batches",),
    "0006": ("drop table seals", "alter table runs drop column chain", "alter table runs drop column digest"),
    "0004": ("alter table runs drop column invalid",),
    "0003": ("drop table calls",),
}
"""What undoes each migration that has changed tables, newest first."""


def make_older(store: Store, version: str) -> None:
    """Give a store the tables of an older version; what its runs hold stays as it is."""
    with store.database.engine.begin() as connection:
        for newer, statements in _UNDONE.items():
            if newer > version:
                for statement in statements:
                    connection.execute(sa.text(statement))
        connection.execute(sa.update(schema.version).values(version_num=version))
