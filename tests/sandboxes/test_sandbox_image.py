from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from docker import DockerClient
from docker.models.images import Image

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import connect
from labmates.sandboxes.folders import cache_folder
from labmates.sandboxes.image import build, names
from labmates.sandboxes.image.base import run_once
from labmates.sandboxes.image.build import Recipe, build_image, make_image
from labmates.sandboxes.image.names import BASE_LABEL, KIND_LABEL, VERSION_LABEL, find_image, image_tag
from labmates.sandboxes.image.wheels import Target, pinned_packages
from tests.support.docker_engine import FakeEngine, fake_engine

TEST_TAG = f"labmates-test:{os.getpid()}"


@pytest.fixture
def client() -> Iterator[DockerClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture
def image(client: DockerClient) -> Image:
    found = find_image(client)
    assert found is not None
    return found


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    with fake_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        yield engine


@pytest.fixture
def lines() -> list[str]:
    return []


def recipe(dockerfile: str, check: object = None, **files: bytes) -> Recipe:
    def passes(image: Image) -> None:
        if check is not None:
            raise SandboxError(str(check))

    return Recipe(TEST_TAG, "test", {"Dockerfile": dockerfile.encode(), **files}, passes)


def inside(client: DockerClient, image: Image, code: str) -> str:
    status, text = run_once(client, image, ["/opt/venv/bin/python", "-c", code])
    assert status == 0, text
    return text.strip()


# The image itself


@pytest.mark.needs("docker")
def test_the_image_is_labelled_and_not_too_large(image: Image) -> None:
    assert image.labels[KIND_LABEL] == "sandbox"
    assert image.labels[VERSION_LABEL]
    assert image.labels[BASE_LABEL]
    assert image.attrs["Size"] < 650e6


@pytest.mark.needs("docker")
def test_the_image_runs_the_runner_as_nobody(image: Image) -> None:
    config = image.attrs["Config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["/opt/venv/bin/python", "-s", "-P", "/run/labmates/runner/__main__.py"]
    assert config["Cmd"] == ["/run/labmates/settings.json"]


@pytest.mark.needs("docker")
def test_the_image_holds_the_pinned_packages_compiled_and_nothing_of_ours_but_fonts(
    client: DockerClient, image: Image
) -> None:
    code = """
import importlib.metadata as m, json, pathlib, platform, sys
site = pathlib.Path(m.distribution("numpy").locate_file(""))
sources = [p for name in ("pandas", "IPython", "tornado") for p in (site / name).rglob("*.py")]
compiled = [p for p in sources if (p.parent / "__pycache__" / f"{p.stem}.{sys.implementation.cache_tag}.pyc").exists()]
print(json.dumps({
    "packages": sorted(f"{d.name.lower()}=={d.version}" for d in m.distributions()),
    "compiled": len(compiled) / len(sources),
    "tests": [str(p) for p in (site / "scipy").rglob("tests")],
    "ours": sorted(str(p) for p in pathlib.Path("/opt/labmates").iterdir()),
    "python": platform.python_version(),
    "fonts": len(list(pathlib.Path("/opt/labmates/fonts").glob("fontlist-*.json"))),
}))
"""
    found = json.loads(inside(client, image, code))
    wanted = {name.lower() for name in pinned_packages(Target(found["python"], "x86_64", (2, 41)))}
    assert {name.replace("_", "-") for name in found["packages"]} == wanted - {
        name for name in wanted if name.startswith("debugpy==")
    }
    assert found["compiled"] > 0.99
    assert found["tests"] == []
    assert found["ours"] == ["/opt/labmates/fonts"]
    assert found["fonts"] == 1


@pytest.mark.needs("docker")
def test_nothing_in_the_image_gives_more_rights_or_a_shell(client: DockerClient, image: Image) -> None:
    code = """
import os, pwd
raised = [os.path.join(top, name) for top, _, names in os.walk("/usr") for name in names
          if os.lstat(os.path.join(top, name)).st_mode & 0o6000]
print(os.getuid(), os.getgid(), pwd.getpwuid(10001).pw_shell, raised, oct(os.stat("/home/agent").st_mode & 0o7777))
"""
    assert inside(client, image, code) == "10001 10001 /usr/sbin/nologin [] 0o1777"


@pytest.mark.needs("docker")
def test_an_image_that_is_there_is_not_built_again(client: DockerClient, image: Image, lines: list[str]) -> None:
    assert build_image(client, None, lines.append) == image
    assert build_image(client, image.labels[BASE_LABEL], lines.append) == image
    assert lines == []


@pytest.mark.needs("docker")
def test_two_builds_wait_for_each_other(
    client: DockerClient, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_folder("").mkdir(parents=True)
    lock = cache_folder("build.lock").open("w")
    monkeypatch.setattr(build, "_present", lambda *_: image if lock.closed else None)
    waits = threading.Event()
    with ThreadPoolExecutor() as pool, lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = pool.submit(build_image, client, None, lambda line: waits.set())
        assert waits.wait(10)
        lock.close()
        assert second.result(10) is image


def test_a_base_that_was_built_on_before_is_the_usual_one(fake: FakeEngine) -> None:
    client = connect()
    fake.answers["GET /images/json"] = 200, "[]"
    assert build._usual_base(client) == "python:3.12-slim"
    images = [{"Labels": {BASE_LABEL: base}, "Created": time} for base, time in (("mine:1", 5), ("debian", 7))]
    fake.answers["GET /images/json"] = 200, json.dumps(images)
    assert build._usual_base(client) == "debian"
    client.close()


# Its name


def test_the_name_changes_with_every_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {image_tag()}
    for name in ("REQUIREMENTS", "DOCKERFILE"):
        path: Path = getattr(names, name)
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes() + b"\n")
        monkeypatch.setattr(names, name, copy)
        seen.add(image_tag())
    assert len(seen) == 3


# One build


@pytest.mark.needs("docker")
def test_a_build_tells_its_steps_and_leaves_nothing_but_the_image(client: DockerClient, lines: list[str]) -> None:
    dockerfile = f"""
FROM {image_tag()} AS one
LABEL test={os.getpid()}
RUN echo {os.getpid()} > /tmp/made
FROM scratch
LABEL test={os.getpid()}
COPY --from=one /tmp/made /
"""
    made = make_image(client, recipe(dockerfile), lines.append)
    try:
        assert made.tags == [TEST_TAG]
        assert lines[0] == f"step 1 of 9: FROM {image_tag()} AS one"
        assert lines[2] == f"step 3 of 9: RUN echo {os.getpid()} > /tmp/made"
        assert [one["Id"] for one in client.api.images(filters={"label": f"test={os.getpid()}"})] == [made.id]
    finally:
        client.images.remove(TEST_TAG)
    assert find_image(client, TEST_TAG) is None


@pytest.mark.needs("docker")
@pytest.mark.parametrize(
    ("dockerfile", "check", "told"),
    [
        ("RUN echo first words >&2; mkdir /made; exit 3", None, "first words"),
        ("RUN python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))'", None, "unreachable"),
        ("COPY nowhere /", None, "nowhere"),
        ("RUN mkdir /tmp/made", "not good", "not good"),
        ("NONSENSE", None, "NONSENSE"),
    ],
)
def test_a_failed_build_shows_why_and_leaves_nothing(
    dockerfile: str, check: str | None, told: str, client: DockerClient, lines: list[str]
) -> None:
    mark = f"LABEL test={os.getpid()}\n"
    with pytest.raises(SandboxError, match=told):
        make_image(client, recipe(f"FROM {image_tag()}\n{mark}{dockerfile}\n", check), lines.append)
    assert client.api.images(all=True, filters={"label": f"test={os.getpid()}"}) == []
    assert client.api.containers(all=True, filters={"label": f"test={os.getpid()}"}) == []
    assert find_image(client, image_tag()) is not None


@pytest.mark.needs("docker")
def test_an_interrupted_build_leaves_nothing(client: DockerClient) -> None:
    code = f"""
from labmates.sandboxes.engine import connect
from labmates.sandboxes.image.build import Recipe, make_image
dockerfile = b"FROM {image_tag()}\\nLABEL test=interrupt-{os.getpid()}\\nRUN sleep 300\\n"
def tell(line):
    print(line, flush=True)
make_image(connect(), Recipe("{TEST_TAG}", "test", {{"Dockerfile": dockerfile}}, print), tell)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        while b"RUN sleep" not in (line := process.stdout.readline()):
            assert line, process.communicate()[1].decode()
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in complaint
    labelled = {"label": f"test=interrupt-{os.getpid()}"}
    for _ in range(480):  # the engine ends what it was doing a moment later
        left = client.api.containers(all=True, filters=labelled) + client.api.images(all=True, filters=labelled)
        if not left:
            break
        time.sleep(0.125)
    assert left == []


def test_an_engine_that_breaks_off_or_fails_within_a_build_is_told(fake: FakeEngine) -> None:
    fake.answers["GET /images/json"] = 200, "[]"
    client = connect()
    for answer, told in (
        ((200, [{"stream": "Step 1/2 : FROM x\n"}]), "without an image"),
        ((200, [{"stream": "busy\n"}, {"error": "write: no space left on device"}]), "disk is full.*\n.*\nbusy"),
        ((500, {"message": "no space left on device"}), "disk is full"),
    ):
        fake.answers["POST /build"] = answer
        with pytest.raises(SandboxError, match=told):
            make_image(client, recipe("FROM x\n"), lambda line: None)
    client.close()
