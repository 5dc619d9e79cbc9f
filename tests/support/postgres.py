"""Databases of their own on this machine's PostgreSQL."""

from __future__ import annotations

import os
import secrets
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import pytest

_SSL_REQUEST = 80877103
ROLE, PASSWORD = "labmates_test", "test"
_DROP_TABLES = """
do $$ declare name text; begin
  for name in select quote_ident(tablename) from pg_tables where schemaname = 'public' loop
    execute 'drop table if exists ' || name || ' cascade';
  end loop;
end $$
"""
_idle: list[str] = []
"""Names of the databases of this process that no test uses: empty ones."""


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


def administrate(*statements: str, database: str = "postgres") -> list[Any]:
    """Carry out statements, by default outside of any test's database; return the rows of the last."""
    import psycopg

    with psycopg.connect(f"{server()}/{database}", autocommit=True) as connection:
        rows: list[Any] = []
        for statement in statements:
            found = connection.execute(statement.encode())
            rows = found.fetchall() if found.description else []
        return rows


@contextmanager
def database() -> Iterator[str]:
    """Lend an empty database to one test and give its URL.

    Creating and dropping one costs the server more than most tests do, so the tests of a process take turns. Each finds
    another name: what an earlier test has left running can't reach it.
    """
    if _idle:
        name = _idle.pop()
    else:
        name = _name()
        administrate(f"create database {name}")
    try:
        yield f"{server()}/{name}"
    finally:
        renamed = _name()
        _disconnect(name, f"alter database {name} rename to {renamed}")
        administrate(_DROP_TABLES, database=renamed)
        _idle.append(renamed)


def drop_databases() -> None:
    """Drop the databases of this process that no test uses."""
    while _idle:
        name = _idle.pop()
        _disconnect(name, f"drop database {name}")


def _name() -> str:
    return f"labmates_{secrets.token_hex(6)}"


def _disconnect(name: str, then: str) -> None:
    """End all sessions in a database."""
    # Not `drop … with (force)`, which wants to end the server's own vacuum too, and may not.
    ours = f"datname = '{name}' and usename = current_user"
    administrate(f"select pg_terminate_backend(pid) from pg_stat_activity where {ours}", then)


@contextmanager
def starting_server(seconds: float) -> Iterator[str]:
    """Give the URL of a server that says that it is starting for so many seconds, then answers as the real one."""
    from urllib.parse import urlsplit, urlunsplit

    real = urlsplit(server())
    ready = time.monotonic() + seconds

    class Startup(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if time.monotonic() < ready:
                while int.from_bytes(self.request.recv(64)[4:8], "big") == _SSL_REQUEST:
                    self.request.sendall(b"N")
                fields = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"
                self.request.sendall(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)
                return
            with socket.create_connection((real.hostname or "127.0.0.1", real.port or 5432)) as upstream:
                answers = threading.Thread(target=_pump, args=(upstream, self.request))
                answers.start()
                _pump(self.request, upstream)
                answers.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Startup) as proxy:
        threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05}).start()
        host = f"{real.netloc.rpartition('@')[0]}@127.0.0.1:{proxy.server_address[1]}"
        try:
            yield urlunsplit(real._replace(netloc=host))
        finally:
            proxy.shutdown()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
