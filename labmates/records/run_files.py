"""A run's products as texts and names of files."""

from __future__ import annotations

from labmates.records.bodies import Bodies
from labmates.records.event_text import artifact_text
from labmates.records.store import Store


def newest_artifact(store: Store, run_id: str, name: str) -> str | None:
    """The newest version of an artifact; None if the run has no such artifact."""
    artifacts = (event for event in store.events(run_id, kind="artifact") if event.type == "artifact")
    versions = [event for event in artifacts if event.name == name]
    return artifact_text(Bodies(store.bodies(run_id))[versions[-1].content]) if versions else None


def plain_name(name: str) -> str:
    """A file name without folders and leading dots."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return plain.strip(".")[:150] or "unnamed"
