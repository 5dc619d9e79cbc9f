from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import sys_tags

from labmates.errors import UsageError
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import connect
from labmates.sandboxes.image import base, wheels
from labmates.sandboxes.image.base import examine_base, get_base, run_once
from labmates.sandboxes.image.build import Recipe, make_image
from labmates.sandboxes.image.names import KIND_LABEL, image_tag
from labmates.sandboxes.image.wheels import Target, download_wheels, pinned_packages
from labmates.sandboxes.interpreter import PACKAGES
from tests.support.docker_engine import fake_engine

CONSTRAINTS = Path(__file__).parents[2] / "requirements" / "constraints.txt"


@pytest.fixture
def client() -> Iterator[DockerClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture
def lines() -> list[str]:
    return []


# The packages


@given(st.sampled_from(["3.11.0", "3.11.9", "3.12.4", "3.13.5", "3.14.1"]), st.sampled_from(["x86_64", "aarch64"]))
def test_every_python_gets_each_package_once_in_the_version_of_the_constraints(python: str, machine: str) -> None:
    packages = pinned_packages(Target(python, machine, (2, 36)))
    found = [one.partition("==")[0] for one in packages]
    assert len(found) == len(set(found))
    assert set(PACKAGES) <= set(found)
    constraints = {line.split(";")[0].strip() for line in CONSTRAINTS.read_text().splitlines()}
    assert set(packages) <= constraints
    assert not {"colorama", "appnope", "pywin32"} & set(found)


def test_packages_differ_where_a_python_needs_another_version() -> None:
    old, new = (pinned_packages(Target(python, "x86_64", (2, 36))) for python in ("3.11.2", "3.12.0"))
    assert [one for one in old if one.startswith("numpy==")] != [one for one in new if one.startswith("numpy==")]


def test_platforms_are_those_that_python_itself_names() -> None:
    major, minor = (int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))  # type: ignore[union-attr]
    own = list(dict.fromkeys(tag.platform for tag in sys_tags() if tag.platform != "any"))
    assert Target("3.11.7", os.uname().machine, (major, minor)).platforms() == own


def test_old_platforms_of_other_machines_are_not_named() -> None:
    platforms = Target("3.12.1", "aarch64", (2, 18)).platforms()
    assert platforms == ["linux_aarch64", "manylinux_2_18_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only place where pip looks; it has one package, for another Python than ours."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / "thing-1.0-cp313-cp313-manylinux_2_34_x86_64.whl", "w") as wheel:
        wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        wheel.writestr("thing-1.0.dist-info/RECORD", "")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(
        "# pinned\nthing==1.0 ; python_full_version >= '3.13'\nnothing==1.0 ; sys_platform == 'win32'\n"
    )
    monkeypatch.setattr(wheels, "REQUIREMENTS", requirements)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)
    return folder


def test_packages_for_another_python_are_downloaded_once(index: Path, lines: list[str]) -> None:
    folder = download_wheels(Target("3.13.5", "x86_64", (2, 41)), lines.append)
    assert [path.name for path in folder.iterdir()] == ["thing-1.0-cp313-cp313-manylinux_2_34_x86_64.whl"]
    shutil.rmtree(index)
    assert download_wheels(Target("3.13.5", "x86_64", (2, 41)), lines.append) == folder
    assert [line.split()[0] for line in lines] == ["downloading", "taking"]


def test_packages_that_can_not_be_had_are_told_and_leave_nothing(index: Path) -> None:
    with pytest.raises(SandboxError, match=r"(?s)can't be downloaded.*thing==1.0"):
        download_wheels(Target("3.13.5", "x86_64", (2, 31)), lambda line: None)
    assert list((index.parent / "cache/labmates/wheels").iterdir()) == []


def test_a_python_without_pip_is_told(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="-m ensurepip"):
        download_wheels(Target("3.13.5", "x86_64", (2, 41)), lambda line: None)


# The base


@pytest.mark.needs("docker")
def test_a_base_that_is_there_is_taken_and_examined(client: DockerClient, lines: list[str]) -> None:
    found = get_base(client, image_tag(), lines.append)
    target = examine_base(client, found)
    assert lines == []
    asked = "import platform as p; print(p.python_version(), p.libc_ver()[1])"
    version, libc = run_once(client, found, ["python3", "-c", asked])[1].split()
    major, minor = map(int, libc.split("."))
    assert target == Target(version, os.uname().machine, (major, minor))


@pytest.mark.needs("docker")
def test_a_base_without_python_says_so(client: DockerClient) -> None:
    dockerfile = f"FROM {image_tag()}\nENV PATH=/usr/sbin\n"
    tag = f"labmates-test:{os.getpid()}"
    files = {"Dockerfile": dockerfile.encode()}
    made = make_image(client, Recipe(tag, "test", files, lambda image: None), lambda line: None)
    try:
        with pytest.raises(SandboxError, match="python3"):
            examine_base(client, made)
    finally:
        client.images.remove(tag)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((0, '["3.10.4", "x86_64", "glibc", "2.36", "cpython"]'), "CPython 3.11 or newer"),
        ((0, '["3.11.4", "x86_64", "glibc", "2.36", "pypy"]'), "CPython 3.11 or newer"),
        ((0, '["3.12.4", "x86_64", "", "", "cpython"]'), "Alpine"),
        ((0, "hello"), "no usable answer"),
        ((0, "[]"), "no usable answer"),
        ((1, "sh: not found"), "no usable python3: sh: not found"),
    ],
)
def test_a_base_that_will_not_do_says_why(answer: tuple[int, str], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "run_once", lambda *_: answer)
    with pytest.raises(SandboxError, match=told):
        examine_base(None, None)


def test_a_base_that_can_not_be_pulled_is_told_with_the_way_without_a_registry(
    monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    with fake_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        client = connect()
        engine.answers["GET /images/far:1/json"] = 404, {"message": "No such image: far:1"}
        for answer in (
            (500, {"message": "Get https://registry.example/v2/: dial tcp: no such host"}),
            (200, [{"status": "Pulling"}, {"error": "dial tcp: no such host"}]),
        ):
            engine.answers["POST /images/create"] = answer
            with pytest.raises(SandboxError, match=r"far:1.*no such host.*--base debian"):
                get_base(client, "far:1", lines.append)
        client.close()


@pytest.mark.needs("docker")
def test_a_base_of_debian_is_what_mmdebstrap_makes(
    client: DockerClient, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "mmdebstrap"
    fake.write_text('#!/bin/sh\necho "$@" > "$0.asked"\ncd /etc && tar -c hostname\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(base, "_SUITE", f"test-{os.getpid()}")
    made = get_base(client, "debian", lines.append)
    try:
        assert made.labels == {KIND_LABEL: "base"}
        assert get_base(client, "debian", lines.append) == made
        assert len(lines) == 1
        again = get_base(client, "debian", lines.append, renew=True)
        assert again != made
        client.images.remove(again.id)
    finally:
        client.images.remove(made.id)
    asked = (tmp_path / "mmdebstrap.asked").read_text()
    assert "python3-venv" in asked


def test_a_mmdebstrap_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "mmdebstrap"
    fake.write_text("#!/bin/sh\necho 'E: mirror unreachable' >&2; exit 25\n")
    fake.chmod(0o755)
    with pytest.raises(SandboxError, match="E: mirror unreachable"), tempfile.TemporaryFile() as output:
        base._run_to_end((str(fake),), output)


def test_an_interrupted_mmdebstrap_may_clean_up(tmp_path: Path) -> None:
    fake, started, left = tmp_path / "mmdebstrap", tmp_path / "started", tmp_path / "left"
    os.mkfifo(started)
    fake.write_text(f"#!/bin/sh\ntrap 'rm {left}; exit 1' TERM\ntouch {left}\necho > {started}\nsleep 300 & wait\n")
    fake.chmod(0o755)
    code = (
        # A shell's background job ignores interruptions, and so do its children.
        "import signal, tempfile; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from labmates.sandboxes.image.base import _run_to_end\n"
        f"_run_to_end(({str(fake)!r},), tempfile.TemporaryFile())"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
        assert started.read_text() == "\n"
        process.send_signal(signal.SIGINT)
        process.wait(timeout=100)
    assert not left.exists()


@pytest.mark.needs("docker")
def test_without_mmdebstrap_its_package_is_named(client: DockerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_SUITE", "nowhere")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UsageError, match="apt-get install mmdebstrap"):
        get_base(client, "debian", lambda line: None)
