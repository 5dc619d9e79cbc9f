from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labmates.sandboxes.image.names import image_tag
from tests.support.command_line import Labmates
from tests.support.docker_engine import FakeEngine, fake_engine

NOWHERE = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
INFO = {"MemoryLimit": True, "SwapLimit": False, "PidsLimit": False, "CpuCfsQuota": True, "DockerRootDir": "/"}


@pytest.fixture
def fake() -> Iterator[FakeEngine]:
    """An engine that has nothing."""
    with fake_engine() as engine:
        for what in ("images", "containers"):
            engine.answers[f"GET /{what}/json"] = 200, "[]"
        engine.answers["GET /info"] = 200, INFO
        engine.answers[f"GET /images/{image_tag()}/json"] = 404, {"message": f"No such image: {image_tag()}"}
        yield engine


@pytest.mark.parametrize("verb", ["build", "doctor", "clean"])
def test_every_verb_has_help_with_an_example(verb: str, labmates: Labmates) -> None:
    done = labmates("sandbox", verb, "--help")
    assert done.code == 0
    assert f"labmates sandbox {verb}" in done.out
    assert "Example" in done.out


def test_the_help_is_quick_since_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from labmates.cli.main import run_command; run_command(['sandbox', '--help'])\n"
        "print({'docker', 'requests', 'zmq', 'pandas', 'rich'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"


@pytest.mark.needs("docker")
@pytest.mark.needs("bubblewrap")
def test_the_doctor_tries_each_sandbox(labmates: Labmates) -> None:
    done = labmates("sandbox", "doctor")
    assert done.code == 0
    answered = r"^(\w+) +works; the first answer came after [\d.]+ s$"
    assert re.findall(answered, done.out, re.MULTILINE) == ["docker", "bubblewrap"]
    assert "--sandbox auto takes" in done.out


@pytest.mark.needs("bubblewrap")
def test_without_an_engine_the_doctor_says_so_and_bubblewrap_is_enough(labmates: Labmates) -> None:
    done = labmates("sandbox", "doctor", "--json", **NOWHERE)
    [told] = done.records
    assert done.code == 0
    assert (told["works"], told["auto"]) == (["bubblewrap"], "bubblewrap")
    assert "/nowhere/docker.sock" in told["trials"][0]["text"]


def test_where_nothing_isolates_the_doctor_exits_with_1(labmates: Labmates, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    fake.chmod(0o755)
    done = labmates("sandbox", "doctor", **NOWHERE, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.code == 1
    assert "No permissions to create new namespace" in done.out
    assert "--sandbox auto takes none" in done.out


def test_the_doctor_tells_of_missing_limits_and_of_a_missing_image(labmates: Labmates, fake: FakeEngine) -> None:
    def text() -> str:
        [told] = labmates("sandbox", "doctor", "--json", DOCKER_HOST=fake.host).records
        assert "docker" not in told["works"]
        return str(told["trials"][0]["text"])

    assert "the engine can't limit processes" in text()
    fake.answers["GET /info"] = 200, {**INFO, "PidsLimit": True}
    assert "build it with: labmates sandbox build" in text()
    fake.answers["GET /info"] = 500, {"message": "something broke"}
    assert "something broke" in text()


def test_old_images_and_left_containers_are_removed(labmates: Labmates, fake: FakeEngine) -> None:
    own = {"labmates.sandbox": "session", "labmates.owner": "0-1-1"}
    left = [{"Id": "c" * 64, "Names": ["/leaked"], "Labels": own, "State": "running", "Created": 0}]
    kind = {"labmates.image": "sandbox"}
    old = [{"Id": "i", "RepoTags": ["labmates-sandbox:old"], "Labels": kind, "Size": 5, "Created": 0}]
    fake.answers["GET /containers/json"] = lambda query: (
        (200, json.dumps(left if "labmates.sandbox" in query["filters"] else []))
    )
    fake.answers["GET /images/json"] = 200, json.dumps(old)
    fake.answers["DELETE /images/labmates-sandbox:old"] = 200, "[]"
    fake.answers[f"DELETE /containers/{'c' * 64}"] = 204, ""
    host = fake.host
    done = labmates("sandbox", "clean", DOCKER_HOST=host)
    assert done.code == 0
    assert "removed image labmates-sandbox:old" in done.out
    assert "leaked" not in done.out  # its owner may live, in another namespace


def test_cleaning_without_an_engine_says_what_was_left_out(labmates: Labmates) -> None:
    done = labmates("sandbox", "clean", **NOWHERE)
    assert done.code == 0
    assert "Containers and images were left out" in done.err


@pytest.mark.needs("docker")
def test_building_what_is_there_does_nothing(labmates: Labmates) -> None:
    done = labmates("sandbox", "build")
    assert (done.code, done.err) == (0, "")
    assert image_tag() in done.out


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("unix:///nowhere/docker.sock", "/nowhere/docker.sock"),
        ("tcp://127.0.0.1:9", "only a Linux engine on this machine"),
    ],
)
def test_building_without_an_engine_that_will_do_exits_with_2(host: str, told: str, labmates: Labmates) -> None:
    done = labmates("sandbox", "build", DOCKER_HOST=host)
    assert done.code == 2
    assert told in done.err


def test_a_build_that_fails_shows_each_step_and_exits_with_1(
    labmates: Labmates, fake: FakeEngine, tmp_path: Path
) -> None:
    fake.answers["POST /images/create"] = 500, {"message": "dial tcp: lookup registry: no such host"}
    host = fake.host
    done = labmates("sandbox", "build", DOCKER_HOST=host, XDG_CACHE_HOME=str(tmp_path))
    assert done.code == 1
    assert "pulling python:3.12-slim" in done.err
    assert "no such host" in done.err
    assert "labmates sandbox build --base debian" in done.err
    assert "\x1b" not in done.err


def test_an_unknown_verb_or_option_exits_with_2(labmates: Labmates) -> None:
    for arguments in (["dig"], ["build", "--bsae", "x"], ["doctor", "now"]):
        assert labmates("sandbox", *arguments).code == 2
