"""SQLite's dialect, whose compiled statements are shared by all stores of the process."""

from __future__ import annotations

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite


class SharedDialect(SQLiteDialect_pysqlite):
    """Equal to all others, since compiled statements are found by their dialect."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDialect)

    def __hash__(self) -> int:
        return hash(SharedDialect)
