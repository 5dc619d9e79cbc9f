"""The concurrency of studies has the names of the settings of runs and of the command line."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

NAMES = {
    "runs": "max_concurrent_runs",
    "calls": "max_concurrent_calls",
    "sandboxes": "max_sandboxes",
    "processes": "workers",
}


def upgrade() -> None:
    """Rename the keys in the plans of studies."""
    studies = sa.table("studies", sa.column("name", sa.Text), sa.column("spec", sa.JSON))
    connection = op.get_bind()
    for name, spec in connection.execute(sa.select(studies)).all():
        old = spec.get("concurrency", {})
        renamed = {**spec, "concurrency": {NAMES.get(key, key): value for key, value in old.items()}}
        connection.execute(sa.update(studies).where(studies.c.name == name).values(spec=renamed))
