"""Full-text search: its tables, which are filled by the first search."""

from alembic import op

from labmates.records import schema

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the tables; the words of older runs are indexed like those of new ones, when they are searched for."""
    schema.create_search_index(op.get_bind())
