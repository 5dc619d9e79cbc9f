"""Which seat lost the credit: each seat's work is done anew, and compared with what it handed over.

A seat is done anew from before its first event, by its own model, by another one, or by its own replies in a better run
of the same data; what it handed over is the record up to its last event. Both are continued unchanged, so that their
difference is the seat's own, whatever those after it do with its work. Seats of one name in the runs of a study are one
seat, whose blocks are data sets if these are enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from labmates.budgets.money import show_dollars
from labmates.errors import UsageError
from labmates.models.names import RECORDED
from labmates.records.events import ScoreEvent
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.stats.domains import SHARE, Domain
from labmates.stats.figures import GREY, Drawing, error_bars, new_figure
from labmates.stats.intervals import LEVEL, Estimate, notes
from labmates.stats.paired import FEWEST_TOLD, Pair, difference
from labmates.stats.tables import Column, P, Table
from labmates.studies.continuations import Continuations, SettingsOf
from labmates.studies.fork import Branch, branch
from labmates.util.grouping import grouped
from labmates.workflows.analyses.matching import CONTINUATION
from labmates.workflows.protocol.analysis import Result, TooFewRunsError
from labmates.workflows.protocol.experiment import EXPERIMENTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Seat:
    """A seat of a run, done anew and as it handed over."""

    origin: RunRecord
    name: str
    anew: Branch
    handed_over: Branch


async def seats_of(store: Store, name: str, model: str | None, settings: SettingsOf) -> list[Seat]:
    """The seats of a run, or of the ended runs of a study, to be done anew by a `model`, a run, or their own models.

    Raises
    ------
    UsageError
        If there is no such run or study, no run has two seats, a seat can't be done anew there, or the run named in
        place of a model has other data.
    """
    of_study = [run for run in store.runs(study=name) if run.status in ENDED and run.origin is None]
    try:
        runs = of_study or [store.run(name)]
    except UsageError as error:
        raise UsageError(f"{error}, nor a study of that name with ended runs") from None
    better = None if model is None or ":" in model else store.run(model)
    for run in runs:
        if better and (better.id == run.id or (better.kind, better.data_set) != (run.kind, run.data_set)):
            raise UsageError(f"the run '{better.id}' can't stand in for '{run.id}': name another run of the same data")
    made = [seat for run in runs for seat in await _of_run(store, run, better or model, settings)]
    if not made:
        what = "each run of the study" if of_study else "the run"
        raise UsageError(f"{what} '{name}' has fewer than two seats; blame compares seats")
    return made


async def _of_run(store: Store, run: RunRecord, by: str | RunRecord | None, settings: SettingsOf) -> list[Seat]:
    """Its seats in the order of their work, those alone that worked in a run that they are done anew by; or none."""
    events = store.events(run.id)
    calls = [(number, event) for number, event in enumerate(events) if event.type == "llm_call" and event.agent]
    seats = list(dict.fromkeys(event.agent for _, event in calls))
    if len(seats) < 2:
        return []
    model = by
    if isinstance(by, RunRecord):
        model, others = (
            f"{RECORDED}:{by.id}",
            {event.agent for event in store.events(by.id) if event.type == "llm_call"},
        )
        seats = [name for name in seats if name in others]
    make = partial(branch, store, run.id, settings=settings(run.settings))
    made = []
    for name in seats:
        first, call = next((number, event) for number, event in calls if event.agent == name)
        last = max(number for number, event in enumerate(events) if event.agent == name)
        # The next call, where the seat that makes it is done anew, too.
        after = next((number for number, _ in calls if number > last), len(events))
        changes = None if model in (None, call.model) else {f"model.{name}": model}
        made.append(Seat(run, name, await make(at=first, changes=changes), await make(at=after, changes=None)))
    return made


def branches_of(seats: Sequence[Seat]) -> list[Branch]:
    """All branches of seats; what a seat handed over may be where the next one is done anew."""
    return [side for seat in seats for side in (seat.anew, seat.handed_over)]


def blamed(store: Store, seats: Sequence[Seat], forks: Continuations) -> Result:
    """What the continuations of seats tell: how much of the lost credit comes back, by seat and by finding.

    Raises
    ------
    TooFewRunsError
        If no run, or no continuation of a seat, has the primary outcome.
    """
    told = _Told.of(store, seats, forks.ended())
    found = [told.of_seat(name) for name in told.by_name]
    found.sort(key=lambda each: -each[0].value)
    if told.is_by_run:
        # Later seats of the better run hand on what earlier ones did well there: the first one that regains is named.
        found.sort(key=lambda each: (not (each[0].low or 0.0) > 0, list(told.by_name).index(each[1]["seat"])))
    estimates, rows = [each for each, _ in found], [row for _, row in found]
    is_one = len({seat.origin.id for seat in seats}) == 1
    columns = [
        Column("seat"),
        Column("event", "repeated from event") if is_one else Column("runs"),
        _BACK,
        Column("share", "of the lost", form=".0%"),
        Column("p", form=P),
        Column("back_n", "n"),
        Column("dollars"),
    ]
    tables = [Table("blame", f"Regained {told.metric}, each seat's work repeated", columns, rows, notes(estimates))]
    if details := sorted(told.of_findings(), key=lambda each: (each["finding"], -each["back"])):
        credit = Column("credit", "credit of the run" if is_one else "mean credit")
        columns = [Column("finding", once=True), credit, Column("seat"), _BACK]
        tables.append(Table("findings", "Credit regained by finding", columns, details))
    alt = f"Regained {told.metric} for each seat, with intervals; the table has the numbers."
    drawing = Drawing("blame", f"Regained {told.metric} by seat", alt, partial(_figure, estimates, rows, told.metric))
    return Result(tables, [drawing], list(_sentences(estimates, rows, told)))


@dataclass(frozen=True)
class _Told:
    """What runs and their continuations tell of seats, all in one primary outcome."""

    metric: str
    usable: str
    by_name: Mapping[str, Sequence[Seat]]
    ended: Sequence[RunRecord]
    domain: Domain
    credits: Mapping[str, Mapping[str, float]]
    """By run and finding."""
    unit: str
    is_by_run: bool

    @classmethod
    def of(cls, store: Store, seats: Sequence[Seat], ended: Sequence[RunRecord]) -> _Told:
        runs = list({seat.origin.id: seat.origin for seat in seats}.values())
        experiment = EXPERIMENTS.get(runs[0].kind)
        metric = experiment.primary
        by_name = grouped((seat.name, seat) for seat in seats if metric in seat.origin.metrics)
        if not by_name:
            raise TooFewRunsError(f"the run '{runs[0].id}' has no {metric}")
        return cls(
            metric,
            experiment.usable,
            by_name,
            ended,
            experiment.domain_of(metric, [*runs, *ended]),
            _credits(store, [*runs, *ended]),
            "data set" if len({run.data_set for run in runs}) >= FEWEST_TOLD else CONTINUATION,
            any(model.startswith(f"{RECORDED}:") for seat in seats for model in seat.anew.run.models),
        )

    def of_seat(self, name: str) -> tuple[Estimate, dict[str, Any]]:
        """What comes back of the outcome, and its row of the table."""
        some = self.by_name[name]
        values = {each.id: each.metrics[self.metric] for each in self.ended if self.metric in each.metrics}
        if (shown := self._back(some, values, self.domain)) is None:
            raise TooFewRunsError(f"no continuation of the seat {name} has the metric {self.metric}")
        lost = self.domain.high - fmean(seat.origin.metrics[self.metric] for seat in some)
        share = shown.value / lost if 0 < lost < math.inf else None
        spent = sum(each.spent for each in self.ended if any(side.has(each) for side in branches_of(some)))
        row = {"seat": name, "runs": len(some), "event": some[0].anew.run.taken_over, "share": share}
        return shown, {**row, "dollars": spent / 1e6, **shown.row("back"), "p": shown.p}

    def of_findings(self) -> Iterator[dict[str, Any]]:
        """Rows of what comes back of the credit of each finding that lost some."""
        for name, some in self.by_name.items():
            found = grouped(item for seat in some for item in self.credits[seat.origin.id].items())
            for finding, credit in ((finding, fmean(each)) for finding, each in found.items()):
                having = [seat for seat in some if finding in self.credits[seat.origin.id]]
                values = {each.id: self.credits[each.id].get(finding, 0.0) for each in self.ended}
                if credit < 1 and (part := self._back(having, values, SHARE)) is not None and part.value:
                    yield {"finding": finding, "credit": credit, "seat": name, **part.row("back")}

    def _back(self, seats: Sequence[Seat], values: Mapping[str, float], domain: Domain) -> Estimate | None:
        """What comes back of `values` by run, with an interval and p that hold for all seats; None without a pair."""
        pairs = [pair for seat in seats for pair in self._pairs(seat, values)]
        if not pairs:
            return None
        shown = difference(pairs, domain.difference(), (), 1 - (1 - LEVEL) / len(self.by_name))
        return replace(shown, p=None if shown.p is None else min(1.0, shown.p * len(self.by_name)))

    def _pairs(self, seat: Seat, values: Mapping[str, float]) -> Iterator[Pair]:
        anew, handed_over = (
            {each.continuation: each for each in self.ended if side.has(each) and each.id in values}
            for side in (seat.anew, seat.handed_over)
        )
        task, data = seat.origin.data_set
        for number, one in anew.items():
            if other := handed_over.get(number):
                block = f"{seat.origin.id}#{number}" if self.unit == CONTINUATION else data
                usable = all(each.metrics.get(self.usable, 1) for each in (one, other))
                yield Pair(task, block, "", values[one.id] - values[other.id], usable)


_BACK: Final = Column("back", "regained", form="+.3f", shows="both")


def _credits(store: Store, runs: Sequence[RunRecord]) -> dict[str, dict[str, float]]:
    """The credit of each finding by run, where a judge gives it."""
    found: dict[str, dict[str, float]] = {run.id: {} for run in runs}
    for run_id, score in store.events_of(list(found), ScoreEvent):
        found[run_id] |= {entry["finding"]: float(entry["credit"]) for entry in score.details.get("credits", [])}
    return found


def _sentences(estimates: Sequence[Estimate], rows: Sequence[Mapping[str, Any]], told: _Told) -> Iterator[str]:
    shown, row = estimates[0], rows[0]
    low, high = shown.low, shown.high
    ends = "" if low is None or high is None else f" [{low:+.2f}, {high:+.2f}]"
    share = "" if row["share"] is None else f", {row['share']:.0%} of what was lost"
    size = f"{shown.value:+.2f}{ends} in {told.metric}{share}, {shown.n} {told.unit}{'s' * (shown.n > 1)}"
    if low is not None and low > 0 and told.is_by_run:
        yield f"{row['seat']} is the first seat whose work in the better run regains credit, {size}."
    elif low is not None and low > 0:
        yield f"{row['seat']} lost the most: repeating its work regains {size}."
    else:
        yield f"Can't tell who lost the credit: repeating the work of {row['seat']} regains most, {size}."
    if also := [other["seat"] for each, other in zip(estimates[1:], rows[1:], strict=True) if (each.low or 0.0) > 0]:
        why = ", but rests on that of earlier seats there" if told.is_by_run else ""
        yield f"Repeating the work of {', '.join(also)} regains some, too{why}."
    cost = show_dollars(sum(run.spent for run in told.ended))
    yield (
        "A seat is compared with what it handed over, both continued by the same models; intervals and p are "
        f"simultaneous for {len(rows)} seats. Finding this out cost {cost}."
    )


def _figure(estimates: Sequence[Estimate], rows: Sequence[Mapping[str, Any]], metric: str) -> Figure:
    figure, [ax] = new_figure(7.2, 1.0 + 0.35 * len(rows))
    for place, each in enumerate(estimates):
        ax.errorbar([each.value], [place], xerr=error_bars([each]), fmt="o", color="black", capsize=3, markersize=4)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(rows)), [row["seat"] for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel(f"regained {metric}, with simultaneous {LEVEL:.0%} intervals")
    return figure
