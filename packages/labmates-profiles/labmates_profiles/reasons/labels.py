"""Labelled reasons for choices: their shares, the agreement of judges, and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

from labmates.stats.coefficients import concordance
from labmates.stats.figures import name_cells, new_figure, title_figure, write_numbers
from labmates.util.grouping import grouped
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.dilemmas.frames import counted, frame_of, shares_over_runs
from labmates.workflows.dilemmas.records import mechanism_labels
from labmates.workflows.protocol.analysis import Runs
from labmates.workflows.protocol.experiment import condition_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from labmates.records.events import LabelEvent

_WHO = ["mechanism", "game", "model"]
_ENDS = ["share_low", "share_high"]


@dataclass(frozen=True)
class Labelled:
    """A judge's labels of the reasons for a model's choice in a step.

    `confidence` is the judge's estimate that the labels are right, from 0 to 1; None if missing.
    """

    run: str
    mechanism: str
    game: str
    model: str
    step: str
    judge: str
    labels: tuple[str, ...]
    confidence: float | None = None


def labelled(runs: Runs) -> list[Labelled]:
    """The labelled choices of completed dilemmas; of a judge the newest labels of each, whatever its version."""
    completed = runs.completed("dilemma")
    given = []
    for run, mechanism in zip(completed, mechanism_labels([run.condition for run in completed]), strict=True):
        game = cast(DilemmaCondition, condition_of(run)).table.name
        events = (cast("LabelEvent", event) for event in runs.store.events(run.id, kind="label"))
        newest = {(each.judge, each.step): each for each in events if each.labels is not None}
        given += [
            Labelled(run.id, mechanism, game, each.agent, step, judge, tuple(each.labels or ()), each.confidence)
            for (judge, step), each in newest.items()
        ]
    return given


def reasons_frame(given: Sequence[Labelled], *, by_game: bool = True) -> pd.DataFrame:
    """The share of choices with each kind of reason, a row for each mechanism, game, model and label.

    Further columns: ``judge``, ``share`` (of labelled choices with the label, with its interval over runs),
    ``labelled`` (their number) and ``confidence`` (the judge's, mean over choices with the label). Each label of a
    judge has a row wherever this judge labelled choices, with the share 0 if unused.

    Parameters
    ----------
    by_game
        Whether games have separate rows; otherwise choices of all games are pooled.
    """
    of_judge = grouped((each.judge, label) for each in given for label in each.labels)
    rows = [
        {**{name: getattr(each, name) for name in (*_WHO, "judge", "run")}, "label": label}
        | {"share": float(label in each.labels), "confidence": each.confidence if label in each.labels else None}
        for each in given
        for label in sorted(set(of_judge.get(each.judge, ())))
    ]
    keys = [*(name for name in _WHO if by_game or name != "game"), "judge", "label"]
    frame = frame_of(rows, [*_WHO, "judge", "label", "run", "share", "confidence"])
    shares = counted(frame, keys).rename(columns={"choices": "labelled"})
    confidence = frame.astype({"confidence": float}).groupby(keys, sort=False)["confidence"].mean().reset_index()
    return shares.merge(confidence, on=keys)


def agreement_frame(given: Sequence[Labelled]) -> pd.DataFrame:
    """The agreement of judges on the reasons of the same choices, a row for each pair of judges and label.

    Columns: ``first``, ``second`` (the judges), ``label``, ``same`` (share of choices with agreement on the label, with
    its interval over runs), ``kappa`` (Cohen's; missing if neither judge varies) and ``choices`` (labelled by both).
    """
    labels = sorted({label for each in given for label in each.labels})
    rows: list[dict[str, Any]] = []
    for (run, _), choice in grouped(((each.run, each.step), each) for each in given).items():
        for one, other in combinations(sorted(choice, key=lambda each: each.judge), 2):
            for label in labels:
                a, b = label in one.labels, label in other.labels
                row = {"first": one.judge, "second": other.judge, "label": label, "run": run, "a": a, "b": b}
                rows.append({**row, "same": float(a == b)})
    keys = ["first", "second", "label"]
    frame = frame_of(rows, [*keys, "run", "a", "b", "same"])
    used = frame[frame["a"].astype(bool) | frame["b"].astype(bool)]["label"].unique()
    frame = frame[frame["label"].isin(used)]
    kappas = [
        {**dict(zip(keys, key, strict=True)), "choices": len(group)}
        | {"kappa": concordance(*(group[name].to_numpy(float) for name in "ab"))}
        for key, group in frame.groupby(keys, sort=False)
    ]
    return shares_over_runs(frame, keys, ["same"]).merge(frame_of(kappas, [*keys, "kappa", "choices"]), on=keys)


def reasons_figure(frame: pd.DataFrame) -> Figure:
    """Frequency of each kind of reasons, by mechanism and model, a panel for each judge.

    Parameters
    ----------
    frame
        From `reasons_frame` over all games.
    """
    judges = list(dict.fromkeys(frame["judge"]))
    tables = [
        frame[frame["judge"] == judge].pivot(index="label", columns=["mechanism", "model"], values=["share", *_ENDS])
        for judge in judges
    ]
    heights = [1.4 + 0.3 * len(table) for table in tables]
    width = 3.0 + 0.5 * max(table["share"].shape[1] for table in tables)
    figure, axes = new_figure(width, sum(heights) + 0.2, rows=len(tables), height_ratios=heights)
    for ax, judge, table in zip(axes, judges, tables, strict=True):
        values = table["share"].to_numpy(dtype=float)
        ax.imshow(values, cmap="viridis", vmin=0, vmax=1, aspect="auto")
        write_numbers(ax, values, [table[end].to_numpy(dtype=float) for end in _ENDS])
        name_cells(ax, map(str, table.index), (": ".join(column) for column in table["share"].columns.to_list()))
        ax.set_title(f"labelled by {judge.removeprefix('reasons:')}", loc="left", fontsize=9)
    title_figure(figure, "Reasons: share of the labelled choices")
    return figure
