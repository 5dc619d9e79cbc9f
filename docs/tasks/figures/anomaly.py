"""Draw docs/tasks/anomaly.png: one data set of the anomaly task: what is abnormal, and what is only the logging.

Run it from the repository's root: ``python docs/tasks/figures/anomaly.py``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from page import BLUE, GREEN, ORANGE, RED, VIOLET, four_panels, open_frame, save

from labmates.tasks.anomaly.data import A_DAY, NO_READING
from labmates.tasks.anomaly.findings import AnomalyTruth, Event
from labmates.tasks.anomaly.task import AnomalyTask
from labmates.tasks.base import Difficulty

SEED: int = 1
DIFFICULTY: Difficulty = "medium"
DAYS = 1 / A_DAY


def around(log: pd.DataFrame, event: Event, before: int, after: int) -> pd.DataFrame:
    """Return the log from so many samples before an event to so many after it."""
    return log.loc[event.start - before : event.end + after]


def shade(ax: Axes, event: Event) -> None:
    """Mark the time of an event."""
    ax.axvspan((event.start - 0.5) * DAYS, (event.end + 0.5) * DAYS, color=RED, alpha=0.18, lw=0)


def show_points(ax: Axes, log: pd.DataFrame, truth: AnomalyTruth) -> None:
    """Draw a month of the sensor with most point anomalies."""
    points = [event for event in truth.events if event.kind == "point"]
    steady = [tag for tag in truth.sensors if unit_step(log)[tag] < 0.3]
    tag = max(steady, key=lambda one: sum(one in event.sensors for event in points))
    ax.plot(log.index * DAYS, log[tag], lw=0.4, color="0.45")
    mine = [event.start for event in points if tag in event.sensors]
    ax.plot(np.array(mine) * DAYS, log.loc[mine, tag], "o", ms=6, mfc="none", color=RED, label="point anomaly")
    ax.set(xlabel="day", ylabel=tag, title="A  Point anomalies on top of the daily cycle")
    ax.legend(frameon=False, loc="lower left")


def show_contextual(ax: Axes, log: pd.DataFrame, event: Event) -> None:
    """Draw a contextual anomaly, and the values that are usual at that time of the day in these weeks."""
    tag, part = event.sensors[0], around(log, event, 2 * A_DAY, A_DAY)
    near = around(log, event, 7 * A_DAY, 7 * A_DAY)[tag]
    low, high = (near.groupby(near.index % A_DAY).quantile(q)[part.index % A_DAY] for q in (0.1, 0.9))
    ax.fill_between(part.index * DAYS, low, high, color=BLUE, alpha=0.25, lw=0, label="usual at that time of the day")
    ax.plot(part.index * DAYS, part[tag], lw=0.8, color="0.3")
    shade(ax, event)
    ax.set(xlabel="day", ylabel=tag, title="B  Contextual: an ordinary value at the wrong time")
    ax.set_ylim(float(part[tag].min()) - 1.6 * float(near.std()), None)
    ax.legend(frameon=False, loc="lower left")


def show_collective(ax: Axes, log: pd.DataFrame, event: Event) -> None:
    """Draw the sensors of a collective anomaly without their daily course, one above the other."""
    part = around(log, event, A_DAY, A_DAY)
    for row, (tag, colour) in enumerate(zip(event.sensors, (BLUE, GREEN, VIOLET), strict=False)):
        rest = part[tag] - log[tag].groupby(log.index % A_DAY).median()[part.index % A_DAY].to_numpy()
        ax.plot(part.index * DAYS, rest / rest.std() - 5 * row, lw=0.8, color=colour)
    ax.set_yticks([-5 * row for row in range(len(event.sensors))], event.sensors)
    shade(ax, event)
    ax.set(xlabel="day", title="C  Collective: several sensors together; daily course taken out")


def unit_step(log: pd.DataFrame) -> pd.Series[float]:
    """Return how far the level of every sensor is at the end from that at the start, as a logarithm."""
    return (log.iloc[-2 * A_DAY :].median() / log.iloc[: 2 * A_DAY].median()).apply(np.log).abs()


def show_normal(ax: Axes, log: pd.DataFrame, truth: AnomalyTruth) -> None:
    """Draw a sensor whose unit changes, one that drifts and one whose logger sticks, one above the other."""
    changed, drifting = str(unit_step(log).idxmax()), truth.drifting_sensors[0]
    runs = {
        tag: (log[tag].diff() == 0).rolling(12).sum().max() for tag in truth.sensors if tag not in (changed, drifting)
    }
    stuck = max(runs, key=lambda tag: runs[tag])
    same = (log[stuck].diff() == 0).rolling(12).sum() >= 11
    end = int(same.to_numpy().argmax())
    smooth = log[drifting].rolling(A_DAY, min_periods=A_DAY // 2).mean()
    rows = {
        f"{changed}\nunit changes": (log[changed], ORANGE),
        f"{drifting}, daily\nmean drifts": (smooth, BLUE),
        f"{stuck}, in detail:\nlogger sticks": (log[stuck].loc[end - 60 : end + 60], VIOLET),
    }
    for row, (values, colour) in enumerate(rows.values()):
        place = np.linspace(0, 30, len(values))
        ax.plot(place, (values - values.mean()) / values.std() - 5 * row, lw=0.8, color=colour)
    ax.set_yticks([0, -5, -10], list(rows))
    ax.set(xlabel="day (of the third: 20 hours)", title="D  No anomalies: unit, drift, logger")


def main() -> None:
    """Draw the figure."""
    data = AnomalyTask().generate(SEED, DIFFICULTY)
    log = data.frame.drop_duplicates("sample").set_index("sample")[data.truth.sensors].replace(NO_READING, np.nan)
    kinds = {kind: [e for e in data.truth.events if e.kind == kind] for kind in ("contextual", "collective")}
    fig, axes = four_panels()
    show_points(axes[0, 0], log, data.truth)
    steady = unit_step(log) < 0.3
    show_contextual(axes[0, 1], log, next(e for e in kinds["contextual"] if steady[e.sensors[0]]))
    whole = [e for e in kinds["collective"] if steady[e.sensors].all()]
    show_collective(axes[1, 0], log, max(whole, key=lambda e: len(e.sensors)))
    show_normal(axes[1, 1], log, data.truth)
    open_frame(*axes.flat)
    save(fig, __file__)


if __name__ == "__main__":
    main()
