from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3
from docker.errors import APIError, ImageNotFound

from labmates.errors import MissingExtraError, UsageError
from labmates.sandboxes import engine
from labmates.sandboxes.engine import EngineError, connect, explain_docker_error, explain_docker_text, socket_path
from tests.support.docker_engine import FakeEngine, fake_engine, version


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: that of a unix socket may have 107 characters."""
    path = Path(tempfile.mkdtemp(prefix="lm-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    with fake_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        yield engine


def refusal() -> str:
    with pytest.raises(EngineError) as caught:
        connect()
    return str(caught.value)


@pytest.mark.needs("docker")
def test_the_engine_of_this_machine_answers() -> None:
    client = connect()
    assert client.ping()
    client.close()


def test_a_client_waits_longer_once_the_engine_has_answered(fake: FakeEngine) -> None:
    client = connect()
    assert client.api.timeout > engine._PROBE_SECONDS
    client.close()


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'labmates\[lab\]'"):
        connect()


def test_an_engine_error_is_a_wrong_usage() -> None:
    assert issubclass(EngineError, UsageError)


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("tcp://127.0.0.1:2375", "tcp://127.0.0.1:2375"),
        ("ssh://me@far.example", "ssh://far.example"),
        ("tcp://me:secret@far.example:2376", "tcp://far.example:2376"),
        ("npipe:////./pipe/docker_engine", "npipe"),
        ("/var/run/docker.sock", "/var/run/docker.sock"),
        ("unix://relative", "unix://relative"),
    ],
)
def test_only_a_unix_socket_will_do(host: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    said = refusal()
    assert told in said
    assert "only a Linux engine on this machine" in said
    assert "secret" not in said


@pytest.mark.parametrize("host", [None, ""])
def test_without_a_docker_host_the_usual_socket_is_taken(host: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    if host is not None:
        monkeypatch.setenv("DOCKER_HOST", host)
    assert socket_path() == Path("/var/run/docker.sock")


def test_without_an_engine_it_is_told_how_to_install_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/none")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("PATH", str(folder))
    said = refusal()
    assert "no Docker engine is installed" in said
    assert "apt-get install docker.io" in said


def test_an_installed_engine_without_a_socket_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/none")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("PATH", str(folder))
    (folder / "dockerd").write_text("#!/bin/sh\n")
    (folder / "dockerd").chmod(0o755)
    said = refusal()
    assert "stopped" in said
    assert "systemctl start docker" in said


def test_a_rootless_engine_is_pointed_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/none")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    with fake_engine(folder / "docker.sock"):
        assert f"export DOCKER_HOST=unix://{folder}/docker.sock" in refusal()


def test_a_socket_on_which_nobody_listens_is_a_stopped_engine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/s")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{folder}/s")
    assert "start it: sudo systemctl start docker" in refusal()


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
def test_what_is_no_socket_is_told(make: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/s")
    make(folder / "s")
    assert "is not the socket" in refusal()


@pytest.mark.parametrize("backlog", [0, 8])
def test_a_socket_that_never_answers_does_not_hang(backlog: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_PROBE_SECONDS", 0.2)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/s")
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as first:
        silent.bind(f"{folder}/s")
        silent.listen(backlog)
        first.connect(f"{folder}/s")  # with the shortest queue nobody else gets in
        said = refusal()
    assert "did not answer within 0.2 s" in said
    assert "systemctl restart docker" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_without_permission_the_group_and_its_might_are_told(folder: Path) -> None:
    code = (
        "import os, docker, labmates.sandboxes.engine as engine\n"
        "os.setgroups([]); os.setgid(61999); os.setuid(61999)\n"
        "try: engine.connect()\n"
        "except engine.EngineError as error: print(error)"
    )
    folder.chmod(0o755)
    with fake_engine(folder / "e"):
        (folder / "e").chmod(0o660)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "DOCKER_HOST": f"unix://{folder}/e"},
            capture_output=True,
            text=True,
            check=True,
        )
    assert "permission denied" in done.stdout
    assert "usermod -aG docker" in done.stdout
    assert "rootless" in done.stdout
    assert "whatever root can" in done.stdout


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"ApiVersion": "1.23"}, "too old"),
        ({"ApiVersion": "1.40"}, "too old (its API has version 1.40); update it to 20.10 or newer"),
        ({"Os": "windows"}, "runs windows containers"),
        ({"Platform": {"Name": "Docker Desktop 4.60.0 (1)"}}, "Docker Desktop 4.60.0 (1) runs its engine in a virtual"),
        ({"KernelVersion": "5.4.0-elsewhere"}, "on another machine (kernel 5.4.0-elsewhere"),
    ],
)
def test_an_engine_that_will_not_do_says_why(fields: dict[str, Any], told: str, fake: FakeEngine) -> None:
    fake.answers["GET /version"] = version(**fields)
    assert told in refusal()


@pytest.mark.parametrize(
    "answer", [(200, "<html>hello</html>"), (200, {}), (500, {"message": "broken"}), (404, "nothing here")]
)
def test_something_else_than_an_engine_is_told(answer: tuple[int, Any], fake: FakeEngine) -> None:
    fake.answers["GET /version"] = answer
    assert "does not respond like a Docker engine" in refusal()


def test_an_engine_of_the_oldest_and_of_a_far_version_will_do(fake: FakeEngine) -> None:
    for api in ("1.41", "1.100"):
        fake.answers["GET /version"] = version(ApiVersion=api)
        with closing(connect()) as client:
            assert client.version()["ApiVersion"] == api


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("failed to register layer: write /x: no space left on device", "disk is full"),
        ("No such image: labmates-sandbox:0123", "labmates sandbox build"),
        ("fork/exec /proc/self/exe: resource temporarily unavailable", "--max-sandboxes"),
        ("invalid mount config for type 'bind': bind source path does not exist: /t", "only a Linux engine"),
        ("something\nnew", "Docker says: something new"),
    ],
)
def test_what_the_engine_says_is_explained(said: str, told: str) -> None:
    text = explain_docker_text(said)
    assert told in text
    assert "\n" not in text
    assert explain_docker_text("x" * 10_000).count("x") < 1000


def test_errors_of_the_sdk_and_of_what_is_below_are_explained(fake: FakeEngine) -> None:
    fake.answers["GET /images/gone/json"] = 404, {"message": "No such image: gone"}
    fake.answers["GET /images/full/json"] = 500, {"message": "mkdir: no space left on device"}
    client = connect()
    with pytest.raises(ImageNotFound) as missing:
        client.images.get("gone")
    with pytest.raises(APIError) as full:
        client.images.get("full")
    client.close()
    assert "labmates sandbox build" in explain_docker_error(missing.value)
    assert "disk is full" in explain_docker_error(full.value)
    assert "did not answer" in explain_docker_error(requests.ReadTimeout())
    assert "connection" in explain_docker_error(requests.ConnectionError())
    assert "connection" in explain_docker_error(urllib3.exceptions.ProtocolError())
    assert explain_docker_error(OSError(28, "No space left on device", "/tmp/x")).endswith("'/tmp/x'")


@pytest.mark.parametrize("status", [204, 404, 409])
def test_removing_what_somebody_else_removes_is_no_error(status: int, fake: FakeEngine) -> None:
    fake.answers["DELETE /containers/c"] = status, {"message": "removal of container c is already in progress"}
    client = connect()
    engine.remove_container(client, "c")
    client.close()
    assert "DELETE /containers/c" in fake.asked
