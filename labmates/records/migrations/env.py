"""Alembic's entry: migrates over the connection that `records.upgrade` hands over."""

from __future__ import annotations

from alembic import context

from labmates.records.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
