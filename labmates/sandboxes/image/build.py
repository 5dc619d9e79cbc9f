"""The build of the sandbox image: contexts, the engine's answers, and the clean-up."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import re
import tarfile
import tempfile
import textwrap
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from labmates._version import __version__
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import docker_errors, explain_docker_error, explain_docker_text
from labmates.sandboxes.folders import cache_folder
from labmates.sandboxes.image.base import DEFAULT_BASE, examine_base, get_base, run_once
from labmates.sandboxes.image.names import (
    BASE_LABEL,
    DOCKERFILE,
    KIND_LABEL,
    VERSION_LABEL,
    find_image,
    image_tag,
)
from labmates.sandboxes.image.wheels import download_wheels, pinned_packages
from labmates.sandboxes.interpreter import LIBRARIES

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image


_STEP = re.compile(r"Step (\d+)/(\d+) : (.+)")
_MADE = re.compile(r"\s*---> ([0-9a-f]{12,64})\s*$")
_STEP_CHARS = 70
_ERROR_LINES = 15
_REMOVE_TRIES = 40  # after an interrupt the engine continues for a moment
_REMOVE_PAUSE = 0.25


@dataclass(frozen=True)
class Recipe:
    """A recipe for an image."""

    tag: str  # the image's full name
    base: str  # value of its `BASE_LABEL`
    files: Mapping[str, Path | bytes]  # the build context: the Dockerfile, and the files that it copies
    check: Callable[[Image], None]  # raises `SandboxError` if the image does not work
    arguments: dict[str, str] = field(default_factory=dict)  # build arguments


def make_image(client: DockerClient, recipe: Recipe, tell: Callable[[str], None]) -> Image:
    """Build an image and tag it after its check, and remove all other results of the build.

    Raises `SandboxError` if the build or the check fails.
    """
    made: list[str] = []
    try:
        before = set(client.api.images(all=True, quiet=True))
        with tempfile.TemporaryFile() as context:
            _write_context(context, recipe.files)
            built = client.images.get(_run(client, recipe, context, made, tell))
        recipe.check(built)
        built.tag(*recipe.tag.split(":"))
        _remove(client, made, {*before, str(built.id)})
        return client.images.get(recipe.tag)
    except BaseException as error:
        _remove(client, made, before, tries=_REMOVE_TRIES)
        if isinstance(error, docker_errors()):
            raise SandboxError(f"{recipe.tag} could not be built: {explain_docker_error(error)}") from error
        raise


def _write_context(archive: IO[bytes], files: Mapping[str, Path | bytes]) -> None:
    """Write the build context; the same files give the same bytes."""
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in sorted(files.items()):
            data = content if isinstance(content, bytes) else content.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    archive.seek(0)


def _run(client: DockerClient, recipe: Recipe, context: IO[bytes], made: list[str], tell: Callable[[str], None]) -> str:
    """Run the build and return the image's identifier; intermediate images are added to `made`."""
    last: deque[str] = deque(maxlen=_ERROR_LINES)
    built = ""
    answers = client.api.build(
        fileobj=context,
        custom_context=True,
        decode=True,
        rm=True,
        forcerm=True,
        network_mode="none",
        buildargs=recipe.arguments,
        use_config_proxy=False,
        labels={KIND_LABEL: "sandbox", BASE_LABEL: recipe.base, VERSION_LABEL: __version__},
    )
    with contextlib.closing(answers):  # the engine cancels a build when its client disconnects
        for answer in answers:
            if "error" in answer:
                output = "\n".join(last)
                raise SandboxError(
                    f"{recipe.tag} could not be built: {explain_docker_text(str(answer['error']))}\n"
                    f"The last lines of the build:\n{output}"
                )
            built = answer.get("aux", {}).get("ID", built)
            for line in str(answer.get("stream", "")).splitlines():
                if line.strip():
                    last.append(line.rstrip())
                if step := _STEP.match(line):
                    tell(f"step {step[1]} of {step[2]}: {textwrap.shorten(step[3], _STEP_CHARS, placeholder=' …')}")
                if image := _MADE.match(line):
                    made.append(image[1])
    if not built:
        raise SandboxError(f"{recipe.tag} could not be built: the engine ended the build without an image")
    return built


def _remove(client: DockerClient, made: Collection[str], keep: Collection[str], tries: int = 1) -> None:
    """Remove the images of a build, except earlier ones; failures are left to `clean`."""
    from docker.errors import APIError

    left = [image for image in reversed(list(made)) if not any(kept.startswith(f"sha256:{image}") for kept in keep)]
    try:
        for _ in range(tries):
            remaining = []
            for image in left:
                try:
                    client.api.remove_image(image)
                except APIError as error:
                    if error.status_code != 404:
                        remaining.append(image)  # another image or container still depends on it
            left = remaining
            if not left or tries == 1:
                return
            time.sleep(_REMOVE_PAUSE)
    except docker_errors():
        return


_PYTHON = ("/opt/venv/bin/python", "-s", "-P", "-c")
_TRY = (
    "import os; assert os.getuid() == os.getgid() == 10001, os.getuid(); import ipykernel.kernelapp, numpy, pandas, "
    "matplotlib.pyplot, scipy.stats, seaborn, sklearn.ensemble, statsmodels.api; pandas.DataFrame().style"
)


def build_image(
    client: DockerClient,
    base: str | None = None,
    tell: Callable[[str], None] = lambda _line: None,
    *,
    force: bool = False,
) -> Image:
    """The image for this version of labmates, built if missing.

    The first build takes one to three minutes and downloads the base and the packages; the build itself has no network.
    `base` is an image with Python 3.11 or newer, or ``"debian"`` to
    build one without a registry; by default the base of an earlier image, else `DEFAULT_BASE`. `force` rebuilds
    everything. Raises `UsageError` if a required program is missing; `SandboxError` if a download or the build fails;
    partial images are removed.
    """
    if not force and (image := _present(client, base)) is not None:
        return image
    with _one_at_a_time(tell):
        if not force and (image := _present(client, base)) is not None:
            return image
        return _build(client, base or _usual_base(client), tell, renew=force)


def _present(client: DockerClient, base: str | None) -> Image | None:
    """The image, if present and based on `base` (None: any base)."""
    image = find_image(client)
    return image if image is not None and base in (None, image.labels.get(BASE_LABEL)) else None


def _usual_base(client: DockerClient) -> str:
    """The base of our newest image, which is available even without a registry."""
    try:
        images = client.api.images(filters={"label": BASE_LABEL})
    except docker_errors() as error:
        raise SandboxError(f"the engine does not list its images: {explain_docker_error(error)}") from error
    newest = max(images, key=lambda image: image["Created"], default=None)
    return DEFAULT_BASE if newest is None else str(newest["Labels"][BASE_LABEL])


def _build(client: DockerClient, base: str, tell: Callable[[str], None], *, renew: bool) -> Image:
    image = get_base(client, base, tell, renew=renew)
    target = examine_base(client, image)
    wheels = download_wheels(target, tell)
    pinned = dict(package.split("==") for package in pinned_packages(target))
    libraries = {"Python": target.python, **{name: pinned[name] for name in LIBRARIES}}
    recipe = Recipe(
        tag=image_tag(),
        base=base,
        files={
            "Dockerfile": DOCKERFILE,
            "requirements.txt": "\n".join(f"{name}=={version}" for name, version in pinned.items()).encode(),
            **{f"wheels/{path.name}": path for path in wheels.iterdir()},
        },
        arguments={"BASE_IMAGE": str(image.id), "LIBRARIES": json.dumps(libraries)},
        check=lambda built: _try(client, built),
    )
    return make_image(client, recipe, tell)


def _try(client: DockerClient, image: Image) -> None:
    status, text = run_once(client, image, [*_PYTHON, _TRY])
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
