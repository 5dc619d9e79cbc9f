"""``labmates organisations``: organisations are listed and drawn."""

from __future__ import annotations

from tests.support.command_line import Labmates


def test_organisations_are_listed_and_drawn(labmates: Labmates) -> None:
    listed = labmates("organisations").out
    assert all(name in listed for name in ("pipeline", "solo", "hybrid"))
    drawn = labmates("organisations", "draw", "hybrid").out
    assert 'phase_2["2. group: plan, work (others), talk, write"]' in drawn
    assert 'seat_member["member ×3"]' in drawn
