"""Drawings of organisations show phases, seats within the size, and channels as their file has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from labmates.agents.organisation_files import ORGANISATIONS, find_organisation
from labmates_author.drawing import mermaid

CHANNELS = """
name: pair
size: 3
channels:
  read: {ana: all, helper: [ana, team], late: ana}
  tell: none
flow: [{team: [work, {talk: 2}, write]}]
teams:
  team:
    artifact: final_paper
    seats:
      ana: {title: lead, part: Lead.}
      helper: {count: 2, title: helper, part: Help.}
      late: {title: late, part: Wait.}
"""


@pytest.mark.parametrize("name", ORGANISATIONS.names())
def test_a_drawing_has_each_phase_and_each_seat_within_the_size_once(name: str) -> None:
    organisation = find_organisation(name)
    lines = mermaid(organisation).splitlines()
    assert sum(line.startswith("    phase_") and "[" in line for line in lines) == len(organisation.flow)
    drawn = [line for line in lines if line.startswith("    seat_")]
    assert len(set(drawn)) == len(drawn)
    counts = [int(line.rsplit("×", 1)[1].rstrip('"]')) if "×" in line else 1 for line in drawn]
    assert sum(counts) == len(organisation.of_size(organisation.size).seats)


def test_channels_are_drawn_as_their_lists_say(tmp_path: Path) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text(CHANNELS)
    drawing = mermaid(find_organisation(str(file)))
    assert 'phase_1["1. team: work, talk (2 rounds), write"]' in drawing
    assert 'seat_helper["helper ×2"]' in drawing
    assert "  seat_ana -- reads --> all((everyone))" in drawing
    assert "  seat_helper -- reads --> seat_ana" in drawing
    assert "  seat_helper -- reads --> team_team" in drawing
    assert 'note_ask>"everyone asks everyone"]' in drawing
    assert "tells" not in drawing
    assert "late" not in drawing  # beyond the size
    file.write_text(CHANNELS.replace("size: 3", "size: 2"))
    assert "  seat_helper_1 -- reads --> seat_ana" in mermaid(find_organisation(str(file)))


def test_a_graph_of_ones_own_is_drawn_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("name: own\ngraph: 'a\"b.py:work'\nseats: [ana, ben]\n")
    drawing = mermaid(find_organisation(str(file)))
    assert 'phase_1["a#quot;b.py:work"]' in drawing
    assert 'seat_ana["ana"]' in drawing
    assert "everyone" not in drawing  # channels are what the code does
    assert "seat_" not in mermaid(find_organisation("b.py:work"))
