"""SQLite's dialect, whose compiled statements are shared by all stores of the process."""

from __future__ import annotations

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite


class SharedDialect(SQLiteDialect_pysqlite):
    """Equal to others that read and write JSON alike, since compiled statements are found by their dialect."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDialect) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    @property
    def _json(self) -> tuple[object, object]:
        return self._json_serializer, self._json_deserializer
