"""The tables that later migrations start from; new stores are created from `labmates.records.schema`, not from here."""

revision = "0009"
down_revision = None


def upgrade() -> None:
    """Change nothing: a store of this version has all tables."""
