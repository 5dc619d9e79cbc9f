from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from hypothesis import given
from hypothesis import strategies as st

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import OWNER_LABEL, SANDBOX_LABEL, connect, container_labels, remove_container
from labmates.sandboxes.folders import new_folder, own_folder, sweep_folders
from labmates.sandboxes.image.names import KIND_LABEL, image_tag
from labmates.sandboxes.leftovers import Removed, clean, old_images, sweep_containers
from labmates.util.process_ids import owner_state, this_owner
from tests.support.docker_engine import FakeEngine, fake_engine

NAMESPACE, PID, START = this_owner().split("-")
HOUR = 3600


def dead_owner() -> str:
    """Return the owner that a process was which has ended."""
    code = "from labmates.util.process_ids import this_owner; print(this_owner())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def client() -> Iterator[DockerClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    with fake_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        yield engine


def make_container(client: DockerClient, labels: dict[str, str], *, running: bool = False) -> str:
    container = client.containers.create(
        image_tag(), ["sleep", "600"], name=f"labmates-test-{uuid.uuid4().hex[:12]}", labels=labels,
        network_mode="none", init=True,
    )  # fmt: skip
    if running:
        container.start()
    return str(container.name)


def names(client: DockerClient) -> set[str]:
    return {name.lstrip("/") for one in client.api.containers(all=True) for name in one["Names"]}


def test_this_process_is_alive_and_one_that_has_ended_is_dead() -> None:
    assert owner_state(this_owner()) == "alive"
    assert owner_state(dead_owner()) == "dead"


def test_a_process_with_the_same_number_but_another_start_is_dead() -> None:
    assert owner_state(f"{NAMESPACE}-{PID}-{int(START) + 1}") == "dead"


def test_a_killed_process_that_nobody_has_collected_is_dead() -> None:
    code = "from labmates.util.process_ids import this_owner; print(this_owner(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        owner = process.stdout.readline().decode().strip()
        assert owner_state(owner) == "alive"
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert owner_state(owner) == "dead"


@pytest.mark.needs("bubblewrap")
def test_without_proc_as_on_macos_a_process_names_itself_and_states_are_unknown() -> None:
    code = (
        "from labmates.util.process_ids import *; print(this_owner(), owner_state(this_owner()), bool(this_worker()))"
    )
    command = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/proc", sys.executable, "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert re.fullmatch(r"0-\d+-None unknown True\n", printed)


def test_an_owner_in_another_pid_namespace_is_unknown() -> None:
    assert owner_state(f"{int(NAMESPACE) + 1}-{PID}-{START}") == "unknown"


@given(st.text() | st.builds(f"{NAMESPACE}-{{}}".format, st.text()))
def test_what_names_no_owner_is_never_dead(text: str) -> None:
    parts = text.split("-")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        assert owner_state(text) == "unknown"


def test_folders_of_the_dead_are_swept_and_all_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = Path(tempfile.mkdtemp(prefix=f"labmates-sandbox-{dead_owner()}-"))
    (dead / "file").touch()
    kept = {new_folder(), Path(tempfile.mkdtemp(prefix=f"labmates-sandbox-{int(NAMESPACE) + 1}-{PID}-{START}-"))}
    kept.add(Path(tempfile.mkdtemp(prefix="labmates-sandbox-else-")))
    with own_folder() as mine:
        assert sweep_folders() == [dead]
        assert set(tmp_path.iterdir()) == {*kept, mine}
        (mine / "file").touch()
    assert set(tmp_path.iterdir()) == kept


def wait_until_removed(client: DockerClient, gone: list[str]) -> None:
    """Wait for containers to go: another process that sweeps may be just removing them."""
    end = time.monotonic() + 100
    while not names(client).isdisjoint(gone):
        assert time.monotonic() < end, f"still there: {names(client).intersection(gone)}"
        time.sleep(0.05)


@pytest.mark.needs("docker")
def test_containers_of_the_dead_are_swept_and_all_others_stay(client: DockerClient) -> None:
    dead = dead_owner()
    gone = [
        make_container(client, {SANDBOX_LABEL: "test", OWNER_LABEL: dead}, running=running) for running in (True, False)
    ]
    foreign = f"{int(NAMESPACE) + 1}-{PID}-{START}"
    kept = [
        make_container(client, container_labels("test")),
        make_container(client, {SANDBOX_LABEL: "test", OWNER_LABEL: foreign}),
        make_container(client, {SANDBOX_LABEL: "test"}),
        make_container(client, {OWNER_LABEL: dead}),
    ]
    try:
        sweep_containers(client)
        wait_until_removed(client, gone)
        assert names(client).issuperset(kept)
    finally:
        for name in kept:
            remove_container(client, name)


@pytest.mark.needs("docker")
def test_the_container_of_a_parent_that_was_killed_is_swept(client: DockerClient) -> None:
    name = f"labmates-test-{uuid.uuid4().hex[:12]}"
    code = (
        "import sys; from labmates.sandboxes.engine import connect; from labmates.sandboxes.engine import *\n"
        f"connect().containers.run({image_tag()!r}, ['sleep', '600'], name={name!r}, detach=True, init=True,\n"
        "    network_mode='none', labels=container_labels('test')); print('up', flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        sweep_containers(client)
        assert name in names(client)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    sweep_containers(client)
    wait_until_removed(client, [name])


def containers_answer(*containers: dict[str, Any]) -> tuple[int, str]:
    full = [{"State": "exited", "Names": [f"/{one['Id']}"], "Created": 0, **one} for one in containers]
    return 200, json.dumps(full)


def test_a_container_that_somebody_else_removes_meanwhile_is_no_error(fake: FakeEngine) -> None:
    labels = {SANDBOX_LABEL: "test", OWNER_LABEL: dead_owner()}
    fake.answers["GET /containers/json"] = containers_answer(*({"Id": name, "Labels": labels} for name in "abc"))
    fake.answers["DELETE /containers/a"] = 404, {"message": "No such container: a"}
    fake.answers["DELETE /containers/b"] = 500, {"message": "driver failed"}
    fake.answers["DELETE /containers/c"] = 204, ""
    client = connect()
    assert sweep_containers(client) == ["a", "c"]
    client.close()


def test_an_engine_that_fails_while_it_is_asked_is_told(fake: FakeEngine) -> None:
    fake.answers["GET /containers/json"] = 500, {"message": "no space left on device"}
    client = connect()
    with pytest.raises(SandboxError, match="disk is full"):
        sweep_containers(client)
    client.close()


def images_answer(now: float) -> list[dict[str, Any]]:
    images = [
        (["labmates-sandbox:old"], "sandbox", 3 * HOUR),
        ([image_tag()], "sandbox", 2 * HOUR),
        (["labmates-sandbox-packages:old", "registry.example/mine:1"], "packages", 4 * HOUR),
        (["labmates-sandbox-base:trixie"], "base", 5 * HOUR),
        (None, "sandbox", HOUR / 2),
        (["<none>:<none>"], "build", HOUR / 2),
        ([], "build", 2 * HOUR),
        ([], "base", 6 * HOUR),
    ]
    return [
        {"Id": f"sha256:{number}", "RepoTags": tags, "Labels": {KIND_LABEL: kind}, "Created": now - age, "Size": 1}
        for number, (tags, kind, age) in enumerate(images)
    ]


def test_images_of_other_versions_are_old_but_never_those_that_are_run(fake: FakeEngine) -> None:
    fake.answers["GET /images/json"] = 200, json.dumps(images_answer(time.time()))
    client = connect()
    assert old_images(client) == [
        "sha256:4", "sha256:6", "labmates-sandbox:old", "labmates-sandbox-packages:old", "sha256:7",
    ]  # fmt: skip
    client.close()


def test_cleaning_tells_what_it_removed_and_keeps_what_is_used(fake: FakeEngine) -> None:
    fake.answers["GET /images/json"] = 200, json.dumps(images_answer(time.time()))
    fake.answers["DELETE /images/labmates-sandbox:old"] = 409, {"message": "image is being used by running container"}
    fake.answers["DELETE /images/labmates-sandbox-packages:old"] = 200, "[]"
    fake.answers["DELETE /images/sha256:4"] = 200, "[]"
    fake.answers["DELETE /images/sha256:6"] = 200, "[]"
    stopped = {"Id": "stopped", "Labels": {KIND_LABEL: "build"}}
    builds = [stopped, {**stopped, "Id": "runs", "State": "running"}, {**stopped, "Id": "new", "Created": time.time()}]
    fake.answers["GET /containers/json"] = lambda query: containers_answer(
        *(builds if KIND_LABEL in query["filters"] else ())
    )
    fake.answers["DELETE /containers/stopped"] = 204, ""
    client = connect()
    removed = clean(client)
    client.close()
    assert removed.containers == ["stopped"]
    assert removed.images == ["sha256:4", "sha256:6", "labmates-sandbox-packages:old"]
    assert f"DELETE /images/{image_tag()}" not in fake.asked


def test_without_an_engine_folders_are_cleaned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = Path(tempfile.mkdtemp(prefix=f"labmates-sandbox-{dead_owner()}-"))
    assert clean(None) == Removed(folders=[str(dead)])
    assert clean(None) == Removed()
