"""Names of the sandbox's images: the tag is a hash of everything the image is made from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from labmates.sandboxes.engine import EngineError, docker_errors, explain_docker_error

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

IMAGE = "labmates-sandbox"
"""Repository of the images that sandboxes run."""
PACKAGES_IMAGE = "labmates-sandbox-packages"
"""Repository of the images that they are made from: everything but the runner."""
BASE_IMAGE = "labmates-sandbox-base"
"""Repository of the bases that are made on this machine."""
REPOSITORIES = (IMAGE, PACKAGES_IMAGE, BASE_IMAGE)
"""All repositories of ours."""
KIND_LABEL = "labmates.image"
"""Label of every image of ours: ``sandbox``, ``packages``, ``base``, or ``build`` for an unfinished build."""
BASE_LABEL = "labmates.base"
"""Label with the base of an image."""
LIBRARIES_LABEL = "labmates.libraries"
"""Label with the versions of Python and of the libraries in an image, a JSON object by name."""
VERSION_LABEL = "labmates.version"
"""Label with the version of labmates that made an image."""

FOLDER = Path(__file__).parent
"""The folder of the recipes."""
REQUIREMENTS = FOLDER / "requirements.txt"
"""The packages in the image."""
RECIPES = {"packages": FOLDER / "Dockerfile", "sandbox": FOLDER / "runner.Dockerfile"}
"""Ways of making images, by the value of `KIND_LABEL`."""
RUNNER = FOLDER.parent / "runner"
"""The folder of the code inside the sandbox."""


def runner_files() -> dict[str, Path]:
    """The runner's files, by their paths in the image's build context."""
    return {f"{RUNNER.name}/{path.name}": path for path in sorted(RUNNER.glob("*.py"))}


def packages_tag() -> str:
    """The full name of the image with the packages for this version of labmates."""
    return f"{PACKAGES_IMAGE}:{_hash([RECIPES['packages'], REQUIREMENTS])}"


def image_tag() -> str:
    """The full name of the sandbox image for this version of labmates, ``labmates-sandbox:HASH``."""
    return f"{IMAGE}:{_hash([RECIPES['packages'], REQUIREMENTS, RECIPES['sandbox'], *runner_files().values()])}"


def find_image(client: DockerClient, tag: str | None = None) -> Image | None:
    """The image `tag`, by default the sandbox image for this version of labmates; None if missing.

    Raises `EngineError` if the engine fails.
    """
    from docker.errors import NotFound

    try:
        return client.images.get(tag or image_tag())
    except NotFound:
        return None
    except docker_errors() as error:
        raise EngineError(f"the engine does not list its images: {explain_docker_error(error)}") from error


def _hash(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
