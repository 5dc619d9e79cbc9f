"""Results of self-play and evolution: welfare by mixture, and winning genes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from labmates.display_names import labels_apart, settings_apart, shown_settings
from labmates.grouping import grouped
from labmates.records.events import PayoffEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.stats.intervals import Estimate, notes
from labmates.stats.tables import Column, Table

_WINNERS = ("game", "group_size", "protocol")
_MIXTURES = ("game", "model", "group_size")
"""Settings that tables show anyway."""


Points = Sequence[tuple[float, Estimate]]


@dataclass(frozen=True)
class Mixed:
    """Welfare of one self-play: for each share of selfish players, the mean over groups with its interval."""

    game: str
    model: str
    group_size: int
    run: str
    points: Points
    condition: Mapping[str, object]

    def as_json(self) -> dict[str, object]:
        """It as JSON data."""
        parts = ("low", "high", "n", "df", "method", "reason")
        points = [
            {"selfish": share, "welfare": welfare.value, **{part: getattr(welfare, part) for part in parts}}
            for share, welfare in self.points
        ]
        names = ("run", "game", "model", "group_size")
        return {**{name: getattr(self, name) for name in names}, "condition": dict(self.condition), "mixtures": points}


@dataclass(frozen=True)
class Evolved:
    """The evolutions of one condition.

    Attributes
    ----------
    winners
        In how many runs each gene was the most frequent at the end, the most successful first.
    reached
        Runs in which one gene reached the threshold.
    generations, efficiency, cooperation
        Means of all runs.
    """

    condition: Mapping[str, object]
    runs: int
    winners: tuple[tuple[str, int], ...]
    reached: int
    generations: float
    efficiency: float
    cooperation: float

    def as_json(self) -> dict[str, object]:
        """It as JSON data."""
        return {
            "condition": dict(self.condition),
            "runs": self.runs,
            "generations": self.generations,
            "welfare_efficiency": self.efficiency,
            "threshold_reached": self.reached,
            "cooperation": self.cooperation,
            "winners": dict(self.winners),
        }


def curves_of(found: Sequence[Mixed]) -> dict[str, Points]:
    """The points of every self-play by a unique name: author, varying parameters, and the run if needed."""
    labels = labels_of([one.condition for one in found], _MIXTURES)
    names = [
        ", ".join(filter(None, (one.model, f"groups of {one.group_size}", label)))
        for one, label in zip(found, labels, strict=True)
    ]
    often = Counter(names)
    return {
        name if often[name] == 1 else f"{name} (run {one.run})": one.points
        for name, one in zip(names, found, strict=True)
    }


def labels_of(conditions: Sequence[Mapping[str, object]], known: Sequence[str] = _WINNERS) -> list[str]:
    """A label of each condition of self-plays or evolutions, made of what varies beside what is `known`."""
    return labels_apart(_telling(conditions), known)


def _telling(conditions: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Conditions without what only repeats another setting, and with short digests of strategies.

    A digest tells something only where the same path held other strategies before.
    """
    content: dict[object, set[object]] = {}
    for one in conditions:
        content.setdefault(one.get("strategies"), set()).add(one.get("digest"))
    changed = any(len(digests) > 1 for digests in content.values())
    return [
        {
            name: str(value)[:8] if name == "digest" else value
            for name, value in one.items()
            if changed or name != "digest"
        }
        for one in conditions
    ]


def mixtures_table(found: Iterable[Mixed]) -> Table:
    """The welfare of every mixture, a row each."""
    found = list(found)
    told = _telling([one.condition for one in found])
    differing = settings_apart(told, _MIXTURES)
    rows = [
        {"game": one.game, "model": one.model, "group_size": one.group_size}
        | shown_settings(settings, differing)
        | {"run": one.run, "selfish": share}
        | welfare.row("welfare")
        for one, settings in zip(found, told, strict=True)
        for share, welfare in one.points
    ]
    columns = [Column(name, once=True) for name in (*_MIXTURES, *differing, "run")]
    columns += [Column("selfish", "share of selfish players", ".1%"), Column("welfare", shows="both")]
    remarks = notes(welfare for one in found for _, welfare in one.points)
    return Table("selfplay", "Welfare by the share of selfish players", columns, rows, remarks)


def winners_table(found: Iterable[Evolved]) -> Table:
    """The shares of runs that each gene wins, a row for each condition and gene."""
    found = list(found)
    told = _telling([one.condition for one in found])
    differing = settings_apart(told, _WINNERS)
    rows = [
        {name: one.condition[name] for name in _WINNERS}
        | {_limit(name): value for name, value in shown_settings(settings, differing).items()}
        | {"runs": one.runs, "winner": gene, "wins": wins, "threshold_reached": one.reached}
        | {"generations": one.generations, "efficiency": one.efficiency, "cooperation": one.cooperation}
        for one, settings in zip(found, told, strict=True)
        for gene, wins in one.winners
    ]
    columns = [Column(name, once=True) for name in (*_WINNERS, *map(_limit, differing), "runs")]
    columns += [Column("winner"), Column("wins"), Column("threshold_reached"), Column("generations", form=".0f")]
    columns += [Column("efficiency", "welfare efficiency", ".0%"), Column("cooperation", form=".0%")]
    return Table("winners", "Which genes win", columns, rows)


def _limit(name: str) -> str:
    """The name of a setting's column: the limit on generations is not the number that it took."""
    return "most_generations" if name == "generations" else name


def payoff_events(store: Store, run_id: str) -> list[PayoffEvent]:
    """The outcomes of the steps of a run, in order."""
    found = [event for event in store.events(run_id, kind="payoff") if isinstance(event, PayoffEvent)]
    return sorted({event.step: event for event in found}.values(), key=lambda event: (event.round, event.at))


def mixed(store: Store, run: RunRecord) -> Mixed:
    """The welfare of the mixtures of a self-play."""
    size = int(run.condition["group_size"])
    points, model = [], ""
    for event in payoff_events(store, run.id):
        details = event.details
        model = str(details["model"])
        named = {name: details[name] for name in ("df", "method", "reason") if name in details}
        # Records of before have normal intervals, without a name.
        n = details.get("n", run.condition["samples"])
        welfare = Estimate(event.payoffs["welfare"], None, details["low"], details["high"], n, **named)
        points.append((details["selfish"] / size, welfare))
    return Mixed(
        str(run.condition["game"]),
        model,
        size,
        run.id,
        tuple(sorted(points, key=lambda point: point[0])),
        run.condition,
    )


def gene_shares(store: Store, run: RunRecord) -> list[dict[str, float]]:
    """The share of each gene in each generation of an evolution."""
    return [dict(event.details["shares"]) for event in payoff_events(store, run.id)]


def winner(run: RunRecord, shares: Sequence[Mapping[str, float]]) -> str:
    """The gene with the greatest share at the end (paper), or over the last generations (imitation)."""
    last = shares[-int(run.condition["window"]) :] if run.condition["protocol"] == "imitation" else shares[-1:]
    sums: Counter[str] = Counter()
    for one in last:
        sums.update(one)
    return max(sorted(sums), key=lambda gene: sums[gene])


def evolved(store: Store, runs: Iterable[RunRecord]) -> list[Evolved]:
    """The outcomes of evolutions by condition, in the order of the first run of each."""
    groups = grouped((run.key, run) for run in runs)
    found = []
    for members in groups.values():
        wins = Counter(winner(run, gene_shares(store, run)) for run in members)
        found.append(
            Evolved(
                condition=members[0].condition,
                runs=len(members),
                winners=tuple(sorted(wins.items(), key=lambda one: (-one[1], one[0]))),
                reached=sum(run.metrics["threshold_reached"] == 1 for run in members),
                generations=_mean(members, "generations"),
                efficiency=_mean(members, "welfare_efficiency"),
                cooperation=_mean(members, "cooperation"),
            )
        )
    return found


def _mean(runs: Sequence[RunRecord], metric: str) -> float:
    return sum(run.metrics[metric] for run in runs) / len(runs)
