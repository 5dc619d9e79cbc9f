"""The budget burning down: each team's spending from the top of the pool, with the remainder below."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from labmates.budgets.money import parse_dollars
from labmates.errors import UsageError
from labmates.pages.reader import RunReader
from labmates.pages.svg import Plot, thinned
from labmates.records.run import RunRecord
from labmates.workflows.experiment import condition_of


@dataclass(frozen=True)
class Spending:
    """One team's spending from the pool; `amount` in micro-dollars."""

    team: str
    charges: int
    input_tokens: int
    output_tokens: int
    amount: int


@dataclass(frozen=True)
class Burning:
    """Spending of a pool over time.

    Attributes
    ----------
    pool
        In micro-dollars; None for a run without a budget.
    teams
        In the order in which they first took something, which is that of the colours.
    """

    pool: int | None
    teams: tuple[Spending, ...]
    drawing: Markup

    @property
    def spent(self) -> int:
        """Total spending of all teams, in micro-dollars."""
        return sum(team.amount for team in self.teams)


def burning(reader: RunReader) -> Burning:
    """Spending of a run's pool so far."""
    charges = reader.rows("charge")
    teams = list(dict.fromkeys(event.team for event in charges))
    sums = {team: [0, 0, 0, 0] for team in teams}
    path: list[tuple[float, list[int]]] = []
    start = charges[0].at if charges else 0.0
    for event in charges:
        row = sums[event.team]
        row[0] += 1
        for place, name in enumerate(("input_tokens", "output_tokens", "amount"), start=1):
            row[place] += event.data.get(name, 0)
        path.append((event.at - start, [sums[team][3] for team in teams]))
    spendings = tuple(Spending(team, *sums[team]) for team in teams)
    pool = _pool(reader.run)
    shown = Markup("") if pool is None or len(path) < 2 else _drawn(path, pool, teams)
    return Burning(pool, spendings, shown)


def _pool(run: RunRecord) -> int | None:
    """The pool in micro-dollars; a running run has it in its condition alone."""
    try:
        return parse_dollars(run.budget["total"]) if run.budget else condition_of(run).pool
    except (UsageError, ValueError):
        return None


def _drawn(path: list[tuple[float, list[int]]], pool: int, teams: list[str]) -> Markup:
    points = [path[place] for place in thinned([at for at, _ in path])]
    spent = sum(path[-1][1])
    # A pool of which little was used would be a flat line at the top.
    low = max(0.0, pool - max(2.0 * spent, 0.05 * pool))
    plot = Plot((0.0, points[-1][0]), (low / 1e6, pool / 1e6), height=220, left=64)
    upper = [(at, pool / 1e6) for at, _ in points]
    areas = []
    for place in range(len(points[0][1])):
        lower = [(at, (pool - sum(sums[: place + 1])) / 1e6) for at, sums in points]
        areas.append(plot.area(lower, upper, place, teams[place]))
        upper = lower
    title = f"The pool of ${pool / 1e6:.2f} burning down, by team"
    axes = plot.axes("seconds since the first charge", "left", y_format="${:g}")
    few = [points[place] for place in thinned(points, 60)]  # a page of a long run stays small
    series = {"left": [(at, (pool - sum(sums)) / 1e6) for at, sums in few]}
    return plot.drawn(title, *areas, axes, series=series)
