"""Seats on a circle with arrows between them."""

from __future__ import annotations

from cmath import pi, rect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from markupsafe import Markup

from labmates.pages.svg import COLOURS, drawing, tag

MOST_LABELS: Final = 12
"""A graph with more arrows shows their texts only in tooltips."""
_WIDTH, _HEIGHT, _RADIUS, _NODE, _BEND = 760, 430, 155, 14, 24


@dataclass(frozen=True)
class Arrow:
    """An arrow between seats, thicker with its `weight`, and dashed if `faint`."""

    sender: str
    receiver: str
    text: str
    weight: float
    faint: bool = False


def seat_graph(title: str, teams: Mapping[str, str], notes: Mapping[str, str], arrows: Sequence[Arrow]) -> Markup:
    """The seats on a circle in the colours of their teams, with arrows.

    Parameters
    ----------
    teams, notes
        The team of each seat, and a text below its name.
    """
    steps = {name: rect(_RADIUS, 2 * pi * at / len(teams) - pi / 2) for at, name in enumerate(teams)}
    centre = complex(_WIDTH, _HEIGHT) / 2
    places = {name: centre + complex(1.35 * step.real, step.imag) for name, step in steps.items()}
    most = max((arrow.weight for arrow in arrows), default=0) or 1
    curves = [
        _curve(arrow, places[arrow.sender], places[arrow.receiver], sqrt(arrow.weight / most)) for arrow in arrows
    ]
    labels = [label for _, label in curves] if len(arrows) <= MOST_LABELS else []
    colours = {team: place % COLOURS for place, team in enumerate(dict.fromkeys(teams.values()))}
    nodes = [_node(name, places[name], notes[name], colours[team]) for name, team in teams.items()]
    return drawing(_WIDTH, _HEIGHT, title, *(path for path, _ in curves), *nodes, *labels, class_="wide")


def _curve(arrow: Arrow, start: complex, end: complex, share: float) -> tuple[Markup, Markup]:
    """An arrow and its label; it is bent to one side, so that both directions between two seats are visible."""
    bend = (start + end) / 2 + _BEND * 1j * (end - start) / abs(end - start)
    out, back = (bend - start) / abs(bend - start), (bend - end) / abs(bend - end)
    first, tip = start + (_NODE + 3) * out, end + (_NODE + 3) * back
    head = "".join(f"M{_shown(tip)}L{_shown(tip + 9 * back * rect(1, side))}" for side in (0.4, -0.4))
    path = f"M{_shown(first)}Q{_shown(bend)} {_shown(tip)}{head}"
    title = tag("title", f"{arrow.sender} → {arrow.receiver}: {arrow.text}")
    class_ = "handed unused" if arrow.faint else "handed"
    # A third of the way, apart from the other direction's label.
    at = 0.4 * start + 0.47 * bend + 0.13 * end
    return (
        tag("path", title, d=path, class_=class_, stroke_width=round(1 + 3 * share, 1)),
        tag("text", arrow.text, x=round(at.real, 1), y=round(at.imag + 4, 1), class_="tick middle over"),
    )


def _shown(place: complex) -> str:
    return f"{place.real:.1f} {place.imag:.1f}"


def _node(name: str, place: complex, note: str, colour: int) -> Markup:
    x, y = place.real, place.imag
    side = x - _WIDTH / 2
    if abs(side) < _RADIUS / 2:
        at, anchor, up = x, "middle", -_NODE - 18 if y < _HEIGHT / 2 else _NODE + 15
    else:
        at, anchor, up = x + (_NODE + 6) * (1 if side > 0 else -1), "end" if side < 0 else "begin", -2
    return (
        tag("circle", tag("title", name), cx=round(x, 1), cy=round(y, 1), r=_NODE, class_=f"seat phase c{colour}")
        + tag("text", name, x=round(at, 1), y=round(y + up, 1), class_=f"row {anchor} over")
        + tag("text", note, x=round(at, 1), y=round(y + up + 13, 1), class_=f"tick {anchor} over")
    )
