"""The labels by which containers of ours, and their owners, are found again."""

from __future__ import annotations

from labmates.process_ids import this_owner

SANDBOX_LABEL = "labmates.sandbox"
"""Label of every container of ours; its value says what for."""
OWNER_LABEL = "labmates.owner"
"""Label that names a container's owner, in the format of `labmates.process_ids.this_owner`."""


def container_labels(what: str) -> dict[str, str]:
    """The labels of a container that belongs to this process and serves for `what`, a word."""
    return {SANDBOX_LABEL: what, OWNER_LABEL: this_owner()}
