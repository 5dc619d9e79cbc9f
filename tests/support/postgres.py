"""Databases of their own on this machine's PostgreSQL."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

ROLE, PASSWORD = "labmates_test", "test"


@cache
def server() -> str:
    """Return the URL of the server, without a database; a role for tests is made where we may do so."""
    if url := os.environ.get("LABMATES_TEST_POSTGRES"):
        return url.rstrip("/")
    if os.geteuid() != 0:
        pytest.skip("set LABMATES_TEST_POSTGRES to postgresql://role:password@host, a role that may create databases")
    make = f"create role {ROLE} login password '{PASSWORD}' createdb"
    role = f"do \\$\\$ begin {make}; exception when duplicate_object then end \\$\\$"
    subprocess.run(["su", "postgres", "-c", f'psql -qc "{role}"'], check=True, capture_output=True)
    return f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1"


def administrate(*statements: str) -> list[Any]:
    """Carry out statements outside of any test's database; return the rows of the last."""
    import psycopg

    with psycopg.connect(f"{server()}/postgres", autocommit=True) as connection:
        rows: list[Any] = []
        for statement in statements:
            found = connection.execute(statement.encode())
            rows = found.fetchall() if found.description else []
        return rows


@contextmanager
def database() -> Iterator[str]:
    """Make a database for one test and give its URL."""
    name = f"labmates_{secrets.token_hex(6)}"
    administrate(f"create database {name}")
    try:
        yield f"{server()}/{name}"
    finally:
        # Not `with (force)`, which wants to end the server's own vacuum too, and may not.
        ours = f"datname = '{name}' and usename = current_user"
        administrate(f"select pg_terminate_backend(pid) from pg_stat_activity where {ours}", f"drop database {name}")
