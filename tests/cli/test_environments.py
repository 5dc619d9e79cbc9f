"""Broken environments: each is one line with the remedy, never a traceback, and costs nothing twice."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from labmates.models import check, clients
from tests.support.command_line import Labmates
from tests.support.openai_server import Answer, OpenAIServer

SECRET = "sesame-4711"
BASELINE = "run game --game weakest-link --rounds 1 --model scripted:random"
ASK = "run game --game weakest-link --rounds 1 --model openai:m --max-retries 0 --base-url"
HTTP, TLS = f"{ASK} http://127.0.0.1:SERVER/v1", f"{ASK} https://127.0.0.1:TLS/v1"
PLAN = "study plan s.yaml"
STUDY = "kind: game\nmodels: [scripted:random]\nfixed: {game: weakest-link, rounds: 1}\n"
WORKS = r"\Z"
"""A command that works in spite of its environment writes no complaint."""


@dataclass(frozen=True)
class Row:
    """An environment, a command in it, and its end: exit code, and a pattern of its one line."""

    name: str
    command: str
    code: int
    line: str
    variables: str = ""
    files: dict[str, str | bytes | None] = field(default_factory=dict)  # None makes a folder
    prepare: Callable[[Labmates], object] | None = None


def _study(text: str, *more: str) -> dict[str, str | bytes | None]:
    return {"s.yaml": STUDY + text + "\n" + "\n".join(more)}


def _other_program(labmates: Labmates) -> None:
    with closing(sqlite3.connect(labmates.folder / "labmates.db")) as connection:
        connection.execute("create table accounts (name text)")


def _newer(labmates: Labmates) -> None:
    assert labmates("study", "run", "s.yaml").code == 0
    with closing(sqlite3.connect(labmates.folder / "labmates.db")) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
        connection.commit()


def _renamed(labmates: Labmates) -> None:
    assert labmates("study", "run", "s.yaml").code == 0
    (labmates.folder / "s.yaml").rename(labmates.folder / "second.yaml")


def _other_cells(labmates: Labmates) -> None:
    assert labmates("study", "run", "s.yaml").code == 0
    (labmates.folder / "s.yaml").write_text(STUDY.replace("weakest-link", "o-ring") + "seed: 7\n")


def _without_shared_memory(labmates: Labmates) -> None:
    """A pipe in the place of the file that SQLite maps: it can't be mapped, as files of many network disks."""
    os.mkfifo(labmates.folder / "labmates.db-shm")


NETWORK = [
    Row("a dead certificate file, plain http", HTTP, 0, WORKS, "SSL_CERT_FILE=/nowhere.pem"),
    Row(
        "a dead certificate file",
        TLS,
        2,
        r"SSL_CERT_FILE: can't read .*'/nowhere\.pem' \(No such",
        "SSL_CERT_FILE=/nowhere.pem",
    ),
    Row(
        "a certificate file without one",
        TLS,
        2,
        r"SSL_CERT_FILE: .*no certificate in it",
        "SSL_CERT_FILE=bad.pem",
        {"bad.pem": "x"},
    ),
    Row("a folder as certificate file", TLS, 2, r"SSL_CERT_FILE: .*Is a directory", "SSL_CERT_FILE=/tmp"),
    Row("a dead certificate folder", TLS, 2, r"SSL_CERT_DIR: can't read .*unset it", "SSL_CERT_DIR=/nowhere"),
    Row("a dead bundle of another library", HTTP, 0, WORKS, "REQUESTS_CA_BUNDLE=/nowhere.pem CURL_CA_BUNDLE=/x"),
    Row(
        "a self-signed certificate",
        TLS,
        2,
        r"self-signed certificate.*name the file with its certificate.* SSL_CERT_FILE",
    ),
    Row(
        "a dead proxy",
        HTTP,
        2,
        r"the proxy http://127\.0\.0\.1:DEAD of HTTP_PROXY failed: .*NO_PROXY=127",
        "HTTP_PROXY=http://127.0.0.1:DEAD",
    ),
    Row(
        "a dead proxy in lower case, with a password",
        HTTP,
        2,
        r"the proxy http://me:\*\*\*@127\.0\.0\.1:DEAD of http_proxy failed",
        f"http_proxy=http://me:{SECRET}@127.0.0.1:DEAD",
    ),
    Row("a dead proxy for https", TLS, 2, r"of HTTPS_PROXY failed", "HTTPS_PROXY=http://127.0.0.1:DEAD"),
    Row("a dead proxy for all", HTTP, 2, r"of ALL_PROXY failed", "ALL_PROXY=http://127.0.0.1:DEAD"),
    Row(
        "a dead proxy without scheme",
        HTTP,
        2,
        r"the proxy http://127\.0\.0\.1:DEAD of HTTP_PROXY failed",
        "HTTP_PROXY=127.0.0.1:DEAD",
    ),
    Row(
        "a proxy that wants a password",
        HTTP,
        2,
        r"of HTTP_PROXY failed: it wants a name and a password",
        "HTTP_PROXY=http://127.0.0.1:CLOSED",
    ),
    Row(
        "a proxy that wants a password, for https",
        TLS,
        2,
        r"of HTTPS_PROXY failed: 407",
        "HTTPS_PROXY=http://127.0.0.1:CLOSED",
    ),
    Row(
        "a SOCKS proxy without its library",
        HTTP,
        2,
        r"ALL_PROXY: a SOCKS proxy needs the package socksio",
        "ALL_PROXY=socks5://127.0.0.1:1",
    ),
    Row(
        "a proxy of an unknown kind",
        HTTP,
        2,
        r"HTTP_PROXY: 'ftp://127\.0\.0\.1:1' is not the address of a proxy",
        "HTTP_PROXY=ftp://127.0.0.1:1",
    ),
    Row(
        "a proxy with a malformed port",
        HTTP,
        2,
        r"HTTP_PROXY has the malformed address 'http://me:\*\*\*@h:port'",
        f"HTTP_PROXY=http://me:{SECRET}@h:port",
    ),
    Row("a malformed proxy", HTTP, 2, r"HTTP_PROXY has the malformed address 'http://\[::1'", "HTTP_PROXY=http://[::1"),
    Row("an exempt server, a malformed proxy", HTTP, 0, WORKS, "HTTP_PROXY=ftp://[x NO_PROXY=127.0.0.1"),
    Row(
        "an exempt network, a dead proxy",
        HTTP,
        0,
        WORKS,
        "HTTP_PROXY=http://127.0.0.1:DEAD NO_PROXY=10.0.0.0/8,127.0.0.0/8",
    ),
    Row(
        "an exempt port, SOCKS without library",
        HTTP,
        0,
        WORKS,
        "all_proxy=socks5://127.0.0.1:1 no_proxy=127.0.0.1:SERVER",
    ),
    Row(
        "a password in the address",
        f"{ASK} http://me:{SECRET}@127.0.0.1:1/v1",
        2,
        "the base URL holds a name or password",
    ),
    Row(
        "a password in an inline address",
        f"run game --game weakest-link --model 'openai:m?base_url=http://me:{SECRET}@127.0.0.1:1/v1'",
        2,
        "the base URL holds a name or password",
    ),
    Row(
        "a password in a study's address",
        PLAN,
        2,
        r"s\.yaml:4: connection\.base_url: the base URL holds",
        files=_study(f"connection: {{base_url: 'http://me:{SECRET}@h/v1'}}"),
    ),
    Row(
        "a malformed address",
        "run game --game weakest-link --model openai:m",
        2,
        "base URL 'nonsense' must begin with http",
        "OPENAI_BASE_URL=nonsense",
    ),
]
STORES = [
    Row(
        "a disk without shared memory",
        BASELINE,
        2,
        "disk I/O error: the disk .* network disks do; keep the store on a local disk .*PostgreSQL",
        prepare=_without_shared_memory,
    ),
    Row(
        "a folder as store",
        BASELINE,
        2,
        "it is not a file; give a file such as labmates.db/runs.db",
        files={"labmates.db": None},
    ),
    Row(
        "a text file as store",
        BASELINE,
        2,
        "file is not a database: another program's file, or damaged; choose another",
        files={"labmates.db": "hello " * 99},
    ),
    Row("an empty file as store", "runs", 0, WORKS, files={"labmates.db": ""}),
    Row(
        "another program's database", BASELINE, 2, "belongs to another program: it has accounts", prepare=_other_program
    ),
    Row("a newer store", "runs", 2, "is of version 9999.*made by a newer labmates", files=_study(""), prepare=_newer),
    Row("a store below a file", f"{BASELINE} --store file/x.db", 2, "there is no folder 'file'", files={"file": ""}),
    Row(
        "a store in a folder that can't be written",
        f"{BASELINE} --store /proc/x.db",
        2,
        "the folder can't be written; choose another",
    ),
    Row("a device as store", f"{BASELINE} --store /dev/null", 2, "it is not a file"),
    Row(
        "a variable that names no store", BASELINE, 2, "'nonsense' is not the URL of a store", "LABMATES_STORE=nonsense"
    ),
    Row(
        "a server that is down",
        "runs",
        2,
        r"'postgresql://me:\*\*\*@127\.0\.0\.1:DEAD/x': .*Connection refused",
        f"LABMATES_STORE=postgresql://me:{SECRET}@127.0.0.1:DEAD/x",
    ),
    Row(
        "an unknown kind of database",
        f"runs --store mysql://me:{SECRET}@h/x",
        2,
        "'mysql' databases can't hold a store; use sqlite or postgresql",
    ),
    Row("a plan for a store that is not there yet", PLAN, 0, WORKS, "LABMATES_STORE=sqlite:///new.db", _study("")),
    Row(
        "a renamed study",
        "study run second.yaml",
        2,
        "study s holds 1 of these 1 runs; second, .*'name: s'.*'name: second'",
        files=_study(""),
        prepare=_renamed,
    ),
    Row(
        "another seed with other cells",
        "study run s.yaml",
        2,
        "were begun with other seeds .*keep its seed",
        files=_study("seed: 1"),
        prepare=_other_cells,
    ),
]
FILES = [
    Row(
        "a name with an accent",
        PLAN,
        2,
        r"s\.yaml:4: name: a name has letters \(A-Z and a-z, no accents\)",
        files=_study("name: grüße"),
    ),
    Row(
        "a file name with an accent",
        "study plan grüße.yaml",
        2,
        "without 'name', it is the file's",
        files={"grüße.yaml": STUDY},
    ),
    Row("an octal number", PLAN, 0, "10 runs", files=_study("replicates: 010")),
    Row(
        "a time in the place of a number", PLAN, 2, r"s\.yaml:4: replicates: .*12:30", files=_study("replicates: 12:30")
    ),
    Row("a mark of the byte order", PLAN, 0, WORKS, files={"s.yaml": b"\xef\xbb\xbf" + STUDY.encode()}),
    Row("UTF-16", PLAN, 2, "can't read the study 's.yaml'", files={"s.yaml": STUDY.encode("utf-16")}),
    Row("a folder as study", PLAN, 2, "can't read the study 's.yaml': Is a directory", files={"s.yaml": None}),
    Row(
        "a tab",
        PLAN,
        2,
        r"s\.yaml:5: invalid YAML: .*indent with spaces",
        files=_study("connection:", "\tstream: true"),
    ),
    Row("a repeated key", PLAN, 2, r"s\.yaml:5: seed: repeated key", files=_study("seed: 1", "seed: 2")),
    Row("an empty study", PLAN, 2, "must be a mapping", files={"s.yaml": ""}),
    Row(
        "a missing models file",
        HTTP,
        2,
        "can't read the models file '/nowhere.yaml': No such file",
        "LABMATES_MODELS=/nowhere.yaml",
    ),
    Row(
        "a folder as models file", HTTP, 2, "can't read the models file '/tmp': Is a directory", "LABMATES_MODELS=/tmp"
    ),
    Row(
        "a repeated entry of the models file",
        "models",
        2,
        r"models\.yaml:2: a: repeated key",
        files={"models.yaml": "a: {provider: openai, model: m}\na: {provider: openai, model: n}"},
    ),
]
SCIENCE = "run science --task anomaly --difficulty easy --model scripted:silent --sandbox unsafe-local"
MACHINE = [
    Row(
        "a key with a line break", HTTP, 2, "the key in OPENAI_API_KEY can't be sent", "OPENAI_API_KEY='sk-1234567\nx'"
    ),
    Row("a short salt", SCIENCE, 2, "LABMATES_SALT", "LABMATES_SALT=x"),
    Row("a salt of bytes", SCIENCE, 0, WORKS, "LABMATES_SALT=\udcff\udcfe0123456789abcdef0123456789abcdef"),
    Row("a home that can't be made", SCIENCE, 0, WORKS, "HOME=/proc/none"),
    Row("a file as home", SCIENCE, 0, WORKS, "HOME=file", {"file": ""}),
    Row("a file as cache", SCIENCE, 0, WORKS, "XDG_CACHE_HOME=file", {"file": ""}),
    Row("a screen of one column", BASELINE, 0, WORKS, "COLUMNS=1 TERM=dumb"),
    Row("a screen of no number", "games", 0, WORKS, "COLUMNS=abc LINES=-1"),
    Row("a screen too wide for a number", "run game --help", 0, WORKS, f"COLUMNS={'9' * 30}"),
    Row("a list on 20 columns", "games", 0, WORKS, "COLUMNS=20"),
    Row(
        "a broken address of traces",
        BASELINE,
        0,
        WORKS,
        "LANGSMITH_TRACING=true LANGSMITH_API_KEY=x LANGSMITH_ENDPOINT=nonsense",
    ),
    Row(
        "a dead bundle for traces",
        BASELINE,
        0,
        WORKS,
        "LANGSMITH_TRACING=true LANGSMITH_API_KEY=x REQUESTS_CA_BUNDLE=/nowhere",
    ),
    Row(
        "no engine for containers",
        SCIENCE.replace("unsafe-local", "docker"),
        2,
        "docker",
        "DOCKER_HOST=unix:///nowhere",
    ),
    Row(
        "a malformed address of the engine",
        SCIENCE.replace("unsafe-local", "docker"),
        2,
        "DOCKER_HOST",
        "DOCKER_HOST=nonsense",
    ),
    Row("a folder for temporary files that is missing", SCIENCE, 0, WORKS, "TMPDIR=/nowhere"),
    Row("a folder for temporary files that is a file", SCIENCE, 0, WORKS, "TMPDIR=file", {"file": ""}),
]


class _Closed(BaseHTTPRequestHandler):
    """A proxy that wants a password."""

    def parse_request(self) -> bool:
        if super().parse_request():
            self.send_error(407, "Proxy Authentication Required")
        return False

    def log_message(self, *_: object) -> None: ...


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Ports: of a model's server, of one with a self-signed certificate, of a closed proxy, and of nothing."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*made, "-keyout", file, "-out", file.with_suffix(".crt")], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file.with_suffix(".crt"), file)
    with ExitStack() as stack:
        server = stack.enter_context(OpenAIServer(Answer(text='{"effort": 3}')))
        closed, secure = (stack.enter_context(_Quiet(("127.0.0.1", 0), _Closed)) for _ in range(2))
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        for serving in (closed, secure):
            threading.Thread(target=partial(serving.serve_forever, 0.05), daemon=True).start()
            stack.callback(serving.shutdown)
        nothing = stack.enter_context(socket.socket())  # bound, so that nobody else listens there
        nothing.bind(("127.0.0.1", 0))
        listening = {"SERVER": server.port, "CLOSED": closed.server_port, "TLS": secure.server_port}
        yield {name: str(port) for name, port in {**listening, "DEAD": nothing.getsockname()[1]}.items()}


@pytest.mark.parametrize("row", [*NETWORK, *STORES, *FILES, *MACHINE], ids=lambda row: row.name)
def test_a_broken_environment_is_one_line_with_the_remedy(
    labmates: Labmates, ports: dict[str, str], monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    def placed(text: str) -> str:
        for name, port in ports.items():
            text = text.replace(f":{name}", f":{port}")
        return text

    for name, content in row.files.items():
        path = labmates.folder / name
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if row.prepare is not None:
        row.prepare(labmates)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(check, "PATIENCE", 60.0)  # the machine may be busy
    clients.ssl_context.cache_clear()
    variables = {"NO_PROXY": "", **dict(part.split("=", 1) for part in shlex.split(placed(row.variables)))}
    done = labmates(*shlex.split(placed(row.command)), **variables)
    clients.ssl_context.cache_clear()
    assert done.code == row.code, done.err
    assert SECRET not in done.out + done.err
    complaints = [line for line in done.err.splitlines() if line.startswith("labmates: ")]
    if row.code:
        assert done.err.splitlines() == complaints
        assert len(complaints) == 1
    else:
        assert complaints == []
    said = "".join(complaints) + done.out if row.line != WORKS else ""
    assert re.search(placed(row.line), said), done.err
