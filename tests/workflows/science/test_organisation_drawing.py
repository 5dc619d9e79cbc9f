"""Drawings of organisations show phases, seats within the size, and channels as their file has them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from labmates.agents.organisation_files import ORGANISATIONS, find_organisation
from labmates.workflows.science.organisation_drawing import mermaid, svg

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
    [title, seats, *_] = texts(svg(find_organisation(str(file))), "title")
    assert (title, seats) == ("own", "ana")
    assert 'a"b.py:work' in texts(svg(find_organisation(str(file))), "text")
    assert "seat_" not in mermaid(find_organisation("b.py:work"))
    alone = svg(find_organisation("b.py:work"))
    assert texts(alone, "text") == ["b.py:work, which names its seats"]
    assert texts(alone, "title") == ["b.py-work"]


def texts(drawing: str, tag: str) -> list[str]:
    return [
        str(element.text) for element in ElementTree.fromstring(drawing).iter(f"{{http://www.w3.org/2000/svg}}{tag}")
    ]


@pytest.mark.parametrize("name", ORGANISATIONS.names())
@pytest.mark.parametrize("size", [None, 16])
def test_an_svg_has_each_seat_within_the_size_and_each_phase(name: str, size: int | None) -> None:
    organisation = find_organisation(name)
    organisation = organisation.model_copy(update={"size": size or organisation.size})
    drawing, seats = svg(organisation), organisation.of_size(organisation.size).seats
    assert [title for title in texts(drawing, "title") if title in seats] == [*seats]
    assert sum(text[0].isdigit() and ". " in text for text in texts(drawing, "text")) == len(organisation.flow)
    assert "var(" not in drawing  # it needs no other style sheet


def test_an_svg_tells_who_assigns_hands_on_and_may_reach_whom() -> None:
    central = texts(svg(find_organisation("centralised")), "title")
    assert {"coordinator → member_1: assigns, reads", "member_1 → coordinator: reads"} <= {*central}
    assert not any("member_1 → member_2" in title for title in central)
    pipeline = svg(find_organisation("pipeline"))
    assert "data_lead → ml_engineer: dataset_description" in texts(pipeline, "title")
    assert "Everyone reads, tells and asks everyone." in texts(pipeline, "text")
    assert not any("Everyone" in text for text in texts(svg(find_organisation("independent")), "text"))
    assert not any("asks" in text for text in texts(svg(find_organisation("hybrid")), "text"))  # it lacks the tools


def test_no_text_of_an_organisation_leaves_its_place(tmp_path: Path) -> None:
    hostile = "\\x1b\\u202e</text><b>&" + "x" * 500
    file = tmp_path / "pair.yaml"
    file.write_text(CHANNELS.replace("title: helper", f'title: "{hostile}"').replace("Lead.", "<b>"))
    drawing = svg(find_organisation(str(file)))
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawing).iter()}
    assert tags == {"svg", "title", "style", "circle", "text"}
    assert any("</text><b>&" in text for text in texts(drawing, "text"))
    assert "\x1b" not in drawing
    assert "\u202e" not in drawing
    assert max(map(len, texts(drawing, "text"))) <= 100
