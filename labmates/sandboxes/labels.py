"""Labels of labmates containers and their owners."""

from __future__ import annotations

from labmates.util.process_ids import this_owner

SANDBOX_LABEL = "labmates.sandbox"
"""Label of labmates containers; its value is their purpose."""
OWNER_LABEL = "labmates.owner"
"""Label of a container's owner, in the format of `labmates.util.process_ids.this_owner`."""


def container_labels(what: str) -> dict[str, str]:
    """The labels of this process's container for the purpose `what`, one word."""
    return {SANDBOX_LABEL: what, OWNER_LABEL: this_owner()}
