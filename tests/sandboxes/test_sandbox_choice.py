from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from labmates.errors import MissingExtraError, UsageError
from labmates.sandboxes import bubblewrap, choose, container
from labmates.sandboxes.choose import BACKENDS, SANDBOXES, choose_backend
from labmates.sandboxes.local import PlainLauncher
from labmates.sandboxes.session import KernelBackend
from labmates.studies.session import open_sandbox_pool


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")


@pytest.fixture
def no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "find_image", lambda client: None)


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_try", lambda way: "no permissions to create a namespace")
    bubblewrap._way.cache_clear()


@pytest.mark.needs("bubblewrap")
def test_bubblewrap_that_failed_once_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as busy:
        bubblewrap._way.cache_clear()
        busy.setattr(bubblewrap, "_try", lambda way: "timed out")
        assert bubblewrap.bubblewrap_works() == "timed out"
    assert bubblewrap.bubblewrap_works() is None


@pytest.mark.needs("docker")
@pytest.mark.parametrize("name", ["auto", "docker"])
@pytest.mark.parametrize("trusted_code", [True, False])
def test_docker_is_taken_where_it_works(name: str, trusted_code: bool) -> None:
    choice = choose_backend(name, trusted_code=trusted_code)
    assert (choice.backend.name, choice.note) == ("docker", None)


@pytest.mark.needs("docker")
def test_docker_needs_none_of_the_packages_that_its_image_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "find_spec", lambda name: None)
    assert choose_backend("auto", trusted_code=False).backend.name == "docker"


@pytest.mark.needs("bubblewrap")
@pytest.mark.usefixtures("no_docker")
@pytest.mark.parametrize("name", ["auto", "bubblewrap"])
@pytest.mark.parametrize("trusted_code", [True, False])
def test_without_docker_bubblewrap_is_taken(name: str, trusted_code: bool) -> None:
    choice = choose_backend(name, trusted_code=trusted_code)
    assert (choice.backend.name, choice.note) == ("bubblewrap", None)


@pytest.mark.needs("bubblewrap")
@pytest.mark.needs("docker")
@pytest.mark.usefixtures("no_image")
def test_without_the_image_bubblewrap_is_taken_and_the_user_told_how_to_build_it() -> None:
    choice = choose_backend("auto", trusted_code=False)
    assert choice.backend.name == "bubblewrap"
    assert choice.note is not None
    assert "labmates sandbox build" in choice.note
    with pytest.raises(UsageError, match="labmates sandbox build"):
        choose_backend("docker", trusted_code=False)


@pytest.mark.usefixtures("no_docker")
def test_docker_by_name_is_never_replaced_by_something_else() -> None:
    with pytest.raises(UsageError, match="Docker"):
        choose_backend("docker", trusted_code=True)


@pytest.mark.usefixtures("no_docker", "no_bubblewrap")
def test_without_any_isolation_our_own_code_runs_plainly_and_says_so() -> None:
    choice = choose_backend("auto", trusted_code=True)
    assert choice.backend.name == "plain"
    assert choice.note is not None
    assert "scripted baselines" in choice.note
    assert "\n" not in choice.note


@pytest.mark.usefixtures("no_docker", "no_bubblewrap")
@pytest.mark.parametrize(("name", "trusted_code"), [("auto", False), ("bubblewrap", True), ("bubblewrap", False)])
def test_without_any_isolation_other_code_does_not_run(name: str, trusted_code: bool) -> None:
    with pytest.raises(UsageError) as caught:
        choose_backend(name, trusted_code=trusted_code)
    for part in ("no permissions to create a namespace", "apt-get install bubblewrap", "--sandbox unsafe-local"):
        assert part in str(caught.value)
    assert ("Docker" in str(caught.value)) == (name == "auto")


@pytest.mark.parametrize("trusted_code", [True, False])
def test_no_isolation_is_given_only_by_name_and_with_a_warning(trusted_code: bool) -> None:
    choice = choose_backend("unsafe-local", trusted_code=trusted_code)
    assert choice.backend.name == "unsafe-local"
    assert choice.note is not None
    assert choice.note.startswith("WARNING")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="Did you mean 'bubblewrap'") as caught:
        choose_backend("bublewrap", trusted_code=False)
    assert all(name in str(caught.value) for name in SANDBOXES)


async def test_a_back_end_of_another_package_is_chosen_by_name(data: Path) -> None:
    BACKENDS.register("vault", lambda: KernelBackend("vault", PlainLauncher()))
    backend = choose_backend("vault", trusted_code=False).backend
    assert (await (await backend.open(data)).run("df.shape")).text == "(3, 3)\n"
    await backend.close()


async def test_other_work_goes_on_while_a_session_chooses_its_back_end() -> None:
    went_on = threading.Event()

    def slow() -> KernelBackend:
        assert went_on.wait(20)
        return KernelBackend("slow", PlainLauncher())

    BACKENDS.register("slow", slow)
    asyncio.get_running_loop().call_later(0.01, went_on.set)
    async with open_sandbox_pool(["science"], "slow", 1, trusted_code=False, notify=None) as pool:
        assert pool is not None
        assert pool.backend.name == "slow"


@pytest.mark.usefixtures("no_docker")
def test_missing_packages_are_named_with_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "find_spec", lambda name: None if name in ("ipykernel", "sklearn") else object())
    with pytest.raises(MissingExtraError, match=r"ipykernel, sklearn.*labmates\[lab\]"):
        choose_backend("auto", trusted_code=True)


@pytest.mark.parametrize("way", bubblewrap._WAYS)
def test_a_way_that_fails_says_why(way: bubblewrap.Way, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert bubblewrap._try(way) == "bwrap: No permissions to create new namespace"


def test_the_names_are_known_without_heavy_imports() -> None:
    heavy = "{'zmq', 'jupyter_client', 'pandas', 'numpy', 'docker'}"
    code = f"import sys, labmates.sandboxes.choose; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
