"""Results of self-play and evolution: welfare by mixture, and winning genes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from labmates.records.events import PayoffEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.stats.intervals import Estimate, notes
from labmates.stats.tables import Column, Table
from labmates.util.display_names import labels_apart, settings_apart, settings_shown, shown_settings
from labmates.util.grouping import grouped
from labmates_populations.condition import unused_settings

_WINNERS = ("game", "group_size", "protocol")
_MIXTURES = ("game", "model", "group_size")
"""Settings with columns in every table."""
_ROWS = 16
"""Strategies on the screen."""

Points = Sequence[tuple[float, Estimate]]


@dataclass(frozen=True)
class WelfareCurve:
    """Welfare in one self-play: for each share of selfish players, the mean over groups with its interval."""

    game: str
    model: str
    group_size: int
    run: str
    points: Points
    condition: Mapping[str, object]

    def as_json(self) -> dict[str, object]:
        """The JSON object."""
        parts = ("low", "high", "n", "df", "method", "reason")
        points = [
            {"selfish": share, "welfare": welfare.value, **{part: getattr(welfare, part) for part in parts}}
            for share, welfare in self.points
        ]
        names = ("run", "game", "model", "group_size")
        return {**{name: getattr(self, name) for name in names}, "condition": dict(self.condition), "mixtures": points}


@dataclass(frozen=True)
class EvolutionResult:
    """The evolutions of one condition.

    Attributes
    ----------
    generations, welfare_efficiency, cooperation
        Means over runs.
    threshold_reached
        Number of runs in which one gene reached the threshold.
    winners
        Each gene with the number of runs in which it was the most frequent at the end, in descending order.
    """

    condition: Mapping[str, object]
    runs: int
    generations: float
    welfare_efficiency: float
    threshold_reached: int
    cooperation: float
    winners: Mapping[str, int]


FOR_THESE: Final = "Groups are drawn anew, strategies are not: intervals and verdicts hold for these strategies."
"""Under tables of results whose units are groups."""


def named_points(curves: Sequence[WelfareCurve]) -> dict[str, Points]:
    """The points of every self-play by a unique name: author, varying parameters, and the run if needed."""
    labels = labels_apart(_comparable([curve.condition for curve in curves]), _MIXTURES)
    names = [
        ", ".join(filter(None, (curve.model, f"groups of {curve.group_size}", label)))
        for curve, label in zip(curves, labels, strict=True)
    ]
    counts = Counter(names)
    return {
        name if counts[name] == 1 else f"{name} (run {curve.run})": curve.points
        for name, curve in zip(names, curves, strict=True)
    }


def _comparable(conditions: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Conditions with digests of strategies shortened, or left out if no path had different content.

    Settings that a condition does not use are left out too.
    """
    digests = {(condition.get("strategies"), condition.get("digest")) for condition in conditions}
    changed = len(digests) > len({path for path, _ in digests})
    return [
        {
            name: str(value)[:8] if name == "digest" else value
            for name, value in condition.items()
            if (changed or name != "digest") and name not in unused_settings(condition)
        }
        for condition in conditions
    ]


def mixtures_table(curves: Sequence[WelfareCurve]) -> Table:
    """The welfare of every mixture, one row each."""
    conditions = _comparable([curve.condition for curve in curves])
    differing = settings_apart(conditions, _MIXTURES)
    rows = [
        {"game": curve.game, "model": curve.model, "group_size": curve.group_size}
        | shown_settings(condition, differing)
        | {"run": curve.run, "selfish": share}
        | welfare.row("welfare")
        for curve, condition in zip(curves, conditions, strict=True)
        for share, welfare in curve.points
    ]
    columns = [Column(name, once=True) for name in (*_MIXTURES, *differing, "run")]
    columns += [Column("selfish", "share of selfish players", ".1%"), Column("welfare", shows="both")]
    remarks = [*notes(welfare for curve in curves for _, welfare in curve.points), FOR_THESE]
    return Table("selfplay", "Welfare by the share of selfish players", columns, rows, remarks)


def winners_table(results: Sequence[EvolutionResult]) -> Table:
    """The number of runs that each gene wins, one row for each condition and gene."""
    shown, settings = _settings([result.condition for result in results])
    rows = [
        {**own, "runs": result.runs, "winner": gene, "wins": wins, "threshold_reached": result.threshold_reached}
        | {"generations": result.generations, "efficiency": result.welfare_efficiency}
        | {"cooperation": result.cooperation}
        for result, own in zip(results, settings, strict=True)
        for gene, wins in result.winners.items()
    ]
    columns = [*shown, Column("runs", once=True), Column("winner"), Column("wins"), Column("threshold_reached")]
    columns += [Column("generations", form=".0f"), Column("efficiency", "welfare efficiency", ".0%")]
    return Table("winners", "Which genes win", [*columns, Column("cooperation", form=".0%")], rows)


def survivors_table(store: Store, runs: Iterable[RunRecord]) -> Table:
    """The strategies of the last generations, a row for each condition and strategy, the most frequent first."""
    groups = list(grouped((run.key, run) for run in runs).values())
    shown, settings = _settings([members[0].condition for members in groups])
    rows = []
    for members, own in zip(groups, settings, strict=True):
        shares: dict[str, list[float]] = {}
        for run in members:
            counts = payoff_events(store, run.id)[-1].details.get("strategies", {})
            for name, count in counts.items():
                shares.setdefault(name, []).append(count / sum(counts.values()))
        for name, values in sorted(shares.items(), key=lambda pair: (-sum(pair[1]), pair[0])):
            share = sum(values) / len(members)
            rows.append({**own, "runs": len(members), "strategy": name, "present": len(values), "share": share})
    columns = [*shown, Column("runs", once=True), Column("strategy"), Column("present", "runs with it")]
    columns.append(Column("share", "mean share", ".1%"))
    return Table("strategies", "Which strategies are left at the end", columns, rows, shown=_ROWS)


def _settings(given: Sequence[Mapping[str, object]]) -> tuple[list[Column], list[dict[str, object]]]:
    """The columns of the settings that tell evolutions apart, and their values in each condition."""
    conditions = _comparable(given)
    differing = [name for name in settings_shown(conditions, _WINNERS) if name not in _WINNERS]
    rows = [
        {name: one[name] for name in _WINNERS}
        | {_column(name): value for name, value in shown_settings(condition, differing).items()}
        for one, condition in zip(given, conditions, strict=True)
    ]
    return [Column(name, once=True) for name in (*_WINNERS, *map(_column, differing))], rows


def _column(name: str) -> str:
    """The name of a setting's column; the limit on generations differs from the number played."""
    return "most_generations" if name == "generations" else name


def payoff_events(store: Store, run_id: str) -> list[PayoffEvent]:
    """The payoff events of a run's steps, in order; of a step recorded twice, the later event."""
    events = [event for event in store.events(run_id, kind="payoff") if isinstance(event, PayoffEvent)]
    return sorted({event.step: event for event in events}.values(), key=lambda event: (event.round, event.at))


def welfare_curve(store: Store, run: RunRecord) -> WelfareCurve:
    """The welfare of the mixtures of a self-play."""
    size = int(run.condition["group_size"])
    points, model = [], ""
    for event in payoff_events(store, run.id):
        details = event.details
        model = str(details["model"])
        named = {name: details[name] for name in ("df", "method", "reason") if name in details}
        # Older records have normal intervals, without a method.
        n = details.get("n", run.condition["samples"])
        welfare = Estimate(event.payoffs["welfare"], None, details["low"], details["high"], n, **named)
        points.append((details["selfish"] / size, welfare))
    points.sort(key=lambda point: point[0])
    return WelfareCurve(str(run.condition["game"]), model, size, run.id, tuple(points), run.condition)


def gene_shares(store: Store, run: RunRecord) -> list[dict[str, float]]:
    """The share of each gene in each generation of an evolution."""
    return [dict(event.details["shares"]) for event in payoff_events(store, run.id)]


def winner(run: RunRecord, shares: Sequence[Mapping[str, float]]) -> str:
    """The gene with the greatest share at the end (paper), or over the last generations (imitation)."""
    last = shares[-int(run.condition["window"]) :] if run.condition["protocol"] == "imitation" else shares[-1:]
    sums: Counter[str] = Counter()
    for generation in last:
        sums.update(generation)
    return max(sorted(sums), key=lambda gene: sums[gene])


def named_conditions(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """The runs of each condition of a game by a name: what differs between conditions, and the number of runs."""
    groups = list(grouped((run.key, run) for run in runs).values())
    labels = labels_apart(_comparable([members[0].condition for members in groups]), ("game",))
    counts = [f"{len(members)} run{'s' * (len(members) > 1)}" for members in groups]
    names = [", ".join(filter(None, parts)) for parts in zip(labels, counts, strict=True)]
    return dict(zip(names, groups, strict=True))


def evolution_results(store: Store, runs: Iterable[RunRecord]) -> list[EvolutionResult]:
    """The results of evolutions by condition, in the order of each condition's first run."""
    results = []
    for members in grouped((run.key, run) for run in runs).values():
        wins = Counter(winner(run, gene_shares(store, run)) for run in members)
        means = {
            name: sum(run.metrics[name] for run in members) / len(members)
            for name in ("generations", "welfare_efficiency", "cooperation")
        }
        reached = sum(run.metrics["threshold_reached"] == 1 for run in members)
        ordered = dict(sorted(wins.items(), key=lambda win: (-win[1], win[0])))
        condition = members[0].condition
        results.append(EvolutionResult(condition, len(members), **means, threshold_reached=reached, winners=ordered))
    return results
