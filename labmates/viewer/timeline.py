"""The time line of a run, and the burn-down of its budget.

The time line has rows of teams and agents, phases as bars, events as marks, and handovers as arrows. The burn-down
stacks the teams' spending from the top of the pool, with the remainder below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import sqlalchemy as sa
from markupsafe import Markup

from labmates.budgets.money import parse_dollars
from labmates.pages.links import Links
from labmates.pages.svg import COLOURS, Plot, drawing, tag, thinned, ticks
from labmates.records import schema
from labmates.records.reading import RunReader
from labmates.records.run import RunRecord
from labmates.studies.runs import pool_of

_WIDTH, _LEFT, _ROW, _TOP, _BOTTOM = 960, 150, 22, 8, 30
_MOST_ROWS: Final = 24
_MOST_MARKS: Final = 150
_MARKS: Final = {
    "llm_call": "call",
    "tool_call": "tool",
    "message": "said",
    "decision": "call",
    "failed_reply": "failed",
}
"""CSS class of the marks by type of event."""
_EVENTS = schema.events


@dataclass(frozen=True)
class _Row:
    team: str
    agent: str
    y: float


def timeline(reader: RunReader, links: Links) -> Markup:
    """The time line of a run; empty without events."""
    # Only some columns, for speed with many events.
    query = sa.select(_EVENTS.c.at, _EVENTS.c.team, _EVENTS.c.agent, _EVENTS.c.type)
    query = query.where(_EVENTS.c.run == reader.run.id, _EVENTS.c.type.not_in(["score", "label", "judge_call"]))
    marks = reader.store.rows(query.order_by(_EVENTS.c.seq))
    if not marks:
        return Markup("")
    start, end = float(marks[0].at), float(max(mark.at for mark in marks))
    span = max(end - start, 0.01)  # a single event has none
    rows = _rows((mark.team, mark.agent) for mark in marks)
    if not rows:
        return Markup("")
    height = _TOP + _ROW * len(rows) + _BOTTOM

    def x(at: float) -> float:
        return round(_LEFT + (at - start) / span * (_WIDTH - _LEFT - 12), 1)

    teams = list(dict.fromkeys(row.team for row in rows.values()))
    inside: list[Markup] = []
    for value in ticks(0, span, about=6):
        at = x(start + value)
        inside.append(tag("path", d=f"M{at} {_TOP}V{height - _BOTTOM}", class_="grid"))
        inside.append(tag("text", f"{value:g} s", x=at, y=height - 12, class_="tick middle"))
    inside += _bars(reader, rows, teams, x, end)
    for row in rows.values():
        name = row.agent or row.team or "run"
        shown = name if len(name) <= 20 else f"{name[:19]}…"
        inside.append(tag("text", shown, x=_LEFT - 8, y=row.y + 15, class_="row end"))
    inside += _ticks(marks, rows, x)
    inside += _arrows(reader, links, rows, x)
    return drawing(_WIDTH, height, "Time line of the run", *inside, class_="wide", role="group")


def _rows(who: Iterable[tuple[str, str]]) -> dict[tuple[str, str], _Row]:
    """A row per agent, grouped by team; a row per team if agents are in several teams, or too many."""
    pairs = [pair for pair in dict.fromkeys(who) if any(pair)]
    order = {team: place for place, team in enumerate(dict.fromkeys(team for team, _ in pairs))}
    acting = sorted((pair for pair in pairs if pair[1]), key=lambda pair: order[pair[0]])
    alone = [pair for pair in pairs if not pair[1] and pair[0] not in {team for team, _ in acting}]
    if len(acting) > _MOST_ROWS or len({agent for _, agent in acting}) < len(acting):
        acting, alone = [], [(team, "") for team in order if team][:_MOST_ROWS]
    return {pair: _Row(*pair, _TOP + _ROW * place) for place, pair in enumerate([*acting, *alone])}


def _row_of(rows: dict[tuple[str, str], _Row], team: str, agent: str) -> _Row | None:
    return rows.get((team, agent)) or rows.get((team, "")) or next((r for r in rows.values() if r.team == team), None)


def _bars(reader: RunReader, rows: dict[tuple[str, str], _Row], teams: list[str], x: Any, end: float) -> list[Markup]:
    begun: dict[tuple[str, int], Any] = {}
    bars: list[Markup] = []

    def bar(event: Any, until: float, status: str) -> None:
        mine = [row for row in rows.values() if row.team == event.team]
        if not mine:
            return
        high = mine[-1].y - mine[0].y + _ROW
        title = f"{event.team} team, phase {event.number + 1} ({event.reason}), {status}"
        colour = teams.index(event.team) % COLOURS
        shape = {"x": x(event.at), "y": mine[0].y + 1, "width": max(2.0, x(until) - x(event.at)), "height": high - 2}
        bars.append(tag("rect", tag("title", title), rx=3, class_=f"phase c{colour}", **shape))

    for event in reader.all("phase"):
        key = (event.team, event.number)
        if event.status == "started":
            begun[key] = event
        elif key in begun:
            bar(begun.pop(key), event.at, event.status)
    for event in begun.values():
        bar(event, end, "running" if reader.run.status == "running" else "not ended")
    return bars


def _ticks(marks: Sequence[Any], rows: dict[tuple[str, str], _Row], x: Any) -> list[Markup]:
    """A path for each row and type of event, with a mark per event."""
    ticked: defaultdict[tuple[str, str, str], set[float]] = defaultdict(set)
    for at, team, agent, kind in marks:
        if kind in _MARKS:
            ticked[team, agent, kind].add(x(at))
    places: defaultdict[tuple[_Row, str], set[float]] = defaultdict(set)
    for (team, agent, kind), ats in ticked.items():
        if (row := _row_of(rows, team, agent)) is not None:
            places[row, kind] |= ats
    inset = {"call": 7, "tool": 4, "said": 10, "failed": 3}
    paths = []
    for (row, kind), ats in places.items():
        name = _MARKS[kind]
        d = "".join(f"M{at} {row.y + inset[name]}v{_ROW - 2 * inset[name]}" for at in sorted(ats))
        paths.append(tag("path", d=d, class_=f"mark {name}"))
    return paths


def _arrows(reader: RunReader, links: Links, rows: dict[tuple[str, str], _Row], x: Any) -> list[Markup]:
    """Artifacts as diamonds and exchanges between teams as arrows, linked to their events."""
    shapes: list[Markup] = []
    for event in reader.rows("artifact", "request", "message", to_others=True):
        if len(shapes) >= _MOST_MARKS:
            break
        here, data = _row_of(rows, event.team, event.agent), event.data
        if here is None:
            continue
        at, middle = x(event.at), here.y + _ROW / 2
        if event.type == "artifact":
            shape = tag("path", d=f"M{at} {middle - 7}l5.5 7l-5.5 7l-5.5-7z", class_="artifact")
            title = f"{event.agent} wrote {data['name']}, version {data['version']}"
        elif data["to"] != event.team and (there := _row_of(rows, data["to"], "")) is not None:
            to = there.y + _ROW / 2
            turn = 5 if to > middle else -5
            d = f"M{at} {middle}V{to - turn}m-3.5 {-turn}l3.5 {turn}l3.5 {-turn}"
            shape = tag("path", d=d, class_=f"arrow {event.type}")
            title = f"{event.agent or event.team} to the {data['to']} team: {event.type}"
        else:
            continue
        shapes.append(tag("a", tag("title", title), shape, href=links.event(reader.run.id, event.seq)))
    return shapes


@dataclass(frozen=True)
class Spending:
    """One seat's spending from the pool.

    `amount` and the `limit` of the condition's seat (None for the whole pool) are in micro-dollars; `held` are the
    dollars that its calls in flight hold, empty if unknown.
    """

    payer: str
    calls: int
    input_tokens: int
    output_tokens: int
    amount: int
    limit: int | None = None
    held: str = ""


@dataclass(frozen=True)
class Burning:
    """Spending of a pool over time.

    `pool` is in micro-dollars (None without a budget); `teams` are in order of their first charge, that of the colours,
    and `seats` by team. `held` are the dollars that all calls in flight hold, empty if unknown.
    """

    pool: int | None
    teams: tuple[str, ...]
    seats: tuple[Spending, ...]
    drawing: Markup
    held: str = ""
    has_limits: bool = False

    @property
    def spent(self) -> int:
        """Total spending of all seats, in micro-dollars."""
        return sum(seat.amount for seat in self.seats)


def burning(reader: RunReader, now: Mapping[str, Any] = MappingProxyType({})) -> Burning:
    """The spending of a run's pool so far; `now` is the state of its budget if it runs on this machine."""
    charges = reader.rows("charge")
    limits = _limits(reader.run)
    teams = dict.fromkeys([*(event.team for event in charges), *limits], 0)
    seats = {(team, ""): [0, 0, 0, 0] for team in limits}
    path: list[tuple[float, list[int]]] = []
    start = charges[0].at if charges else 0.0
    for event in charges:
        # The seats of a condition are its teams.
        row = seats.setdefault((event.team, "" if limits else event.agent), [0, 0, 0, 0])
        row[0] += bool(event.data.get("input_tokens"))
        for place, name in enumerate(("input_tokens", "output_tokens", "amount"), start=1):
            row[place] += event.data.get(name, 0)
        teams[event.team] += event.data.get("amount", 0)
        path.append((event.at - start, [*teams.values()]))
    held = {team: str(seat.get("held", "")) for team, seat in now.get("seats", {}).items()}
    order = [*teams]
    spendings = tuple(
        Spending(
            "/".join(filter(None, (team, seat))), calls, sent, replied, amount, limits.get(team), held.get(team, "")
        )
        for (team, seat), (calls, sent, replied, amount) in sorted(
            seats.items(), key=lambda item: order.index(item[0][0])
        )
    )
    pool = pool_of(reader.run)
    shown = Markup("") if pool is None or len(path) < 2 else _drawn(path, pool, order)
    return Burning(pool, tuple(order), spendings, shown, str(now.get("held", "")), has_limits=bool(limits))


def payer_of(run: RunRecord) -> str:
    """The noun for those who spend a run's pool: the seats of its condition, else teams."""
    return "seat" if "seats" in run.condition else "team"


def _limits(run: RunRecord) -> dict[str, int | None]:
    """The limits of the seats of a condition, in micro-dollars (None for the whole pool); empty for other runs."""
    seats = run.condition.get("seats", {}).items()
    return {seat: None if limit is None else parse_dollars(limit) for seat, limit in seats}


def _drawn(path: list[tuple[float, list[int]]], pool: int, teams: list[str]) -> Markup:
    points = [path[place] for place in thinned([at for at, _ in path])]
    spent = sum(path[-1][1])
    # Zoom in, since a hardly used pool would be a flat line at the top.
    low = max(0.0, pool - max(2.0 * spent, 0.05 * pool))
    plot = Plot((0.0, points[-1][0]), (low / 1e6, pool / 1e6), height=220, left=64)
    upper = [(at, pool / 1e6) for at, _ in points]
    areas = []
    for place in range(len(points[0][1])):
        lower = [(at, (pool - sum(sums[: place + 1])) / 1e6) for at, sums in points]
        areas.append(plot.area(lower, upper, place, teams[place]))
        upper = lower
    title = f"The pool of ${pool / 1e6:.2f} burning down"
    axes = plot.axes("seconds since the first charge", "left", y_format="${:g}")
    few = [points[place] for place in thinned(points, 60)]  # a page of a long run stays small
    series = {"left": [(at, (pool - sum(sums)) / 1e6) for at, sums in few]}
    return plot.drawn(title, *areas, axes, series=series)
