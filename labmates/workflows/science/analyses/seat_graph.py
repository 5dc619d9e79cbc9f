"""Seats on a circle with arrows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin, sqrt
from typing import Final

from markupsafe import Markup

from labmates.pages.svg import COLOURS, drawing, tag

MOST_LABELS: Final = 12
"""A graph with more arrows shows their texts only in tooltips."""
_WIDTH, _HEIGHT, _RADIUS, _NODE, _BEND = 760, 430, 155, 14, 24

_Place = tuple[float, float]


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
    places = {
        name: (
            _WIDTH / 2 + 1.35 * _RADIUS * cos(2 * pi * at / len(teams) - pi / 2),
            _HEIGHT / 2 + _RADIUS * sin(2 * pi * at / len(teams) - pi / 2),
        )
        for at, name in enumerate(teams)
    }
    most = max((arrow.weight for arrow in arrows), default=0) or 1
    curves = [_Curve(arrow, places[arrow.sender], places[arrow.receiver]) for arrow in arrows]
    paths = [curve.line(sqrt(curve.arrow.weight / most)) for curve in curves]
    labels = [curve.label() for curve in curves] if len(arrows) <= MOST_LABELS else []
    colours = {team: place % COLOURS for place, team in enumerate(dict.fromkeys(teams.values()))}
    nodes = [_node(name, places[name], notes[name], colours[team]) for name, team in teams.items()]
    return drawing(_WIDTH, _HEIGHT, title, *paths, *nodes, *labels, class_="wide")


@dataclass(frozen=True)
class _Curve:
    """An arrow bent to one side, so that both directions between two seats are visible."""

    arrow: Arrow
    start: _Place
    end: _Place

    @property
    def bend(self) -> _Place:
        (x0, y0), (x1, y1) = self.start, self.end
        length = hypot(x1 - x0, y1 - y0) or 1
        return (x0 + x1) / 2 - _BEND * (y1 - y0) / length, (y0 + y1) / 2 + _BEND * (x1 - x0) / length

    def line(self, share: float) -> Markup:
        start_x, start_y, _ = _towards(self.start, self.bend)
        x, y, angle = _towards(self.end, self.bend)
        head = "".join(
            f"M{x:.1f} {y:.1f}L{x + 9 * cos(angle + side):.1f} {y + 9 * sin(angle + side):.1f}" for side in (0.4, -0.4)
        )
        path = f"M{start_x:.1f} {start_y:.1f}Q{self.bend[0]:.1f} {self.bend[1]:.1f} {x:.1f} {y:.1f}{head}"
        title = tag("title", f"{self.arrow.sender} → {self.arrow.receiver}: {self.arrow.text}")
        class_ = "handed unused" if self.arrow.faint else "handed"
        return tag("path", title, d=path, class_=class_, stroke_width=round(1 + 3 * share, 1))

    def label(self) -> Markup:
        # A third of the way, apart from the other direction's label.
        x, y = (0.4 * s + 0.47 * b + 0.13 * e for s, b, e in zip(self.start, self.bend, self.end, strict=True))
        return tag("text", self.arrow.text, x=round(x, 1), y=round(y + 4, 1), class_="tick middle over")


def _towards(seat: _Place, aim: _Place) -> tuple[float, float, float]:
    """The point on the rim of a seat in the direction of `aim`, and the angle."""
    angle = atan2(aim[1] - seat[1], aim[0] - seat[0])
    return seat[0] + (_NODE + 3) * cos(angle), seat[1] + (_NODE + 3) * sin(angle), angle


def _node(name: str, place: _Place, note: str, colour: int) -> Markup:
    x, y = place
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
