"""Names of the sandbox's image: the tag is a hash of everything it is made from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from labmates.sandboxes.engine import EngineError, docker_errors, explain_docker_error

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

IMAGE = "labmates-sandbox"
"""Repository of the images that sandboxes run."""
BASE_IMAGE = "labmates-sandbox-base"
"""Repository of the bases that are made on this machine."""
REPOSITORIES = (IMAGE, BASE_IMAGE, "labmates-sandbox-packages")
"""All repositories of ours; the last one is of earlier versions."""
KIND_LABEL = "labmates.image"
"""Label of every image of ours: ``sandbox``, ``base``, or ``build`` for an unfinished build."""
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
DOCKERFILE = FOLDER / "Dockerfile"


def image_tag() -> str:
    """The full name of the sandbox image for this version of labmates, ``labmates-sandbox:HASH``."""
    digest = hashlib.sha256()
    for path in (DOCKERFILE, REQUIREMENTS):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return f"{IMAGE}:{digest.hexdigest()[:16]}"


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
