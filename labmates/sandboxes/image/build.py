"""The build of the sandbox image."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import docker_errors, explain_docker_error
from labmates.sandboxes.folders import cache_folder
from labmates.sandboxes.image.base import DEFAULT_BASE, examine_base, get_base
from labmates.sandboxes.image.containers import run_once
from labmates.sandboxes.image.names import (
    BASE_LABEL,
    RECIPES,
    find_image,
    image_tag,
    packages_tag,
    runner_files,
)
from labmates.sandboxes.image.recipe import Recipe, make_image
from labmates.sandboxes.image.wheels import download_wheels, pinned_packages
from labmates.sandboxes.libraries import LIBRARIES

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_PYTHON = ("/opt/venv/bin/python", "-s", "-P", "-c")
_UNPRIVILEGED = "import os; assert os.getuid() == os.getgid() == 10001, os.getuid(); "
_TRY_PACKAGES = (
    f"{_UNPRIVILEGED}import ipykernel.kernelapp, matplotlib.pyplot, numpy, pandas, scipy.stats, seaborn, "
    "sklearn.ensemble, statsmodels.api; pandas.DataFrame().style"
)
_TRY_RUNNER = f"{_UNPRIVILEGED}import sys; sys.path.append('/opt/labmates'); import runner.nursery"


def build_image(
    client: DockerClient,
    base: str | None = None,
    tell: Callable[[str], None] = lambda _line: None,
    *,
    force: bool = False,
) -> Image:
    """The image for this version of labmates, built if missing.

    The first build takes one to three minutes and downloads the base and the packages; the build itself has no network.
    If only the runner has changed, it takes seconds. `base` is an image with Python 3.11 or newer, or ``"debian"`` to
    build one without a registry; by default the base of an earlier image, else `DEFAULT_BASE`. `force` rebuilds
    everything. Raises `UsageError` if a required program is missing; `SandboxError` if a download or the build fails;
    partial images are removed.
    """
    if not force and (image := _present(client, image_tag(), base)) is not None:
        return image
    with _one_at_a_time(tell):
        if not force and (image := _present(client, image_tag(), base)) is not None:
            return image
        packages = None if force else _present(client, packages_tag(), base)
        if packages is None:
            packages = _build_packages(client, base or _usual_base(client), tell, renew=force)
        return _build_sandbox(client, packages, tell)


def _present(client: DockerClient, tag: str, base: str | None) -> Image | None:
    """The image `tag`, if present and based on `base` (None: any base)."""
    image = find_image(client, tag)
    return image if image is not None and base in (None, image.labels.get(BASE_LABEL)) else None


def _usual_base(client: DockerClient) -> str:
    """The base of our newest image, which is available even without a registry."""
    try:
        images = client.api.images(filters={"label": BASE_LABEL})
    except docker_errors() as error:
        raise SandboxError(f"the engine does not list its images: {explain_docker_error(error)}") from error
    newest = max(images, key=lambda image: image["Created"], default=None)
    return DEFAULT_BASE if newest is None else str(newest["Labels"][BASE_LABEL])


def _build_packages(client: DockerClient, base: str, tell: Callable[[str], None], *, renew: bool) -> Image:
    image = get_base(client, base, tell, renew=renew)
    target = examine_base(client, image)
    wheels = download_wheels(target, tell)
    pinned = dict(package.split("==") for package in pinned_packages(target))
    libraries = {"Python": target.python, **{name: pinned[name] for name in LIBRARIES}}
    recipe = Recipe(
        tag=packages_tag(),
        kind="packages",
        base=base,
        files={
            "Dockerfile": RECIPES["packages"],
            "requirements.txt": "\n".join(f"{name}=={version}" for name, version in pinned.items()).encode(),
            **{f"wheels/{path.name}": path for path in wheels.iterdir()},
        },
        arguments={"BASE_IMAGE": str(image.id), "LIBRARIES": json.dumps(libraries)},
        check=lambda built: _try(client, built, _TRY_PACKAGES),
    )
    return make_image(client, recipe, tell)


def _build_sandbox(client: DockerClient, packages: Image, tell: Callable[[str], None]) -> Image:
    recipe = Recipe(
        tag=image_tag(),
        kind="sandbox",
        base=packages.labels.get(BASE_LABEL, ""),
        files={"Dockerfile": RECIPES["sandbox"], **runner_files()},
        arguments={"PACKAGES_IMAGE": packages_tag()},
        check=lambda built: _try(client, built, _TRY_RUNNER),
    )
    return make_image(client, recipe, tell)


def _try(client: DockerClient, image: Image, code: str) -> None:
    status, text = run_once(client, image, [*_PYTHON, code])
    if status != 0:
        raise SandboxError(f"the image was built, but does not work:\n{text[-1_500:].strip()}")


@contextlib.contextmanager
def _one_at_a_time(tell: Callable[[str], None]) -> Iterator[None]:
    """Wait for other builds of this user, which may build the same image."""
    path = cache_folder("build.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise SandboxError(f"can't write a lock file in {path.parent}: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("waiting for another build to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
