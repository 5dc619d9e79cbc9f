"""``labmates organisations``: organisations are listed."""

from __future__ import annotations

from tests.support.command_line import Labmates


def test_organisations_are_listed(labmates: Labmates) -> None:
    listed = labmates("organisations").out
    assert all(name in listed for name in ("pipeline", "solo", "hybrid"))
