"""Draw docs/tasks/ecology.png: one data set of the ecology task, as recorded and as it is.

Run it from the repository's root: ``python docs/tasks/figures/ecology.py``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator
from page import BLUE, ORANGE, RED, four_panels, open_frame, save

from labmates.tasks.base import Difficulty
from labmates.tasks.data_errors import celsius_to_fahrenheit
from labmates.tasks.ecology.data import LEVELS, Community, History, draw_community, simulate
from labmates.tasks.ecology.findings import EcologyTruth
from labmates.tasks.ecology.task import EcologyTask
from labmates.tasks.noise import random_for

SEED: int = 2
DIFFICULTY: Difficulty = "medium"


def plain_numbers(ax: Axes) -> None:
    """Write the numbers at a logarithmic axis as they are, at 1, 2 and 5."""
    ax.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")


def written(frame: pd.DataFrame, true: History, name: str, place: str, at: tuple[int, int]) -> pd.DataFrame:
    """Return the counts of a species at a place with its true abundance, and whether a decimal slipped."""
    mine = frame[(frame["species"] == name) & (frame["site"] == place)].drop_duplicates("survey")
    mine = mine.assign(true=np.exp(true.log_abundance[mine["survey"], at[1], at[0]]))
    return mine.assign(slip=np.abs(np.log((mine["count"] + 0.5) / mine["true"])) > 1.5)


def show_counts(ax: Axes, frame: pd.DataFrame, history: History, community: Community) -> None:
    """Draw the series with most decimal slips as written, and the true abundance there."""
    places = sorted({text.strip().title() for text in frame["site"]})
    series = {
        (name, place): (written(frame, history, name, place, (i, k)), np.exp(history.log_abundance[:, k, i]))
        for i, name in enumerate(community.species)
        for k, place in enumerate(places)
    }
    name, place = max(series, key=lambda one: int(series[one][0]["slip"].sum()))
    mine, true = series[name, place]
    slip = mine["slip"]
    ax.plot(true, color=BLUE, lw=0.8, label="true abundance")
    ax.plot(mine["survey"], mine["count"], ".", ms=3, color="0.45", label="count as written")
    ax.plot(mine["survey"][slip], mine["count"][slip], "v", ms=4, color=ORANGE, label="decimal slip")
    ax.set(yscale="log", ylim=(4, None), xlabel="survey", ylabel="individuals", title=f"A  {name} at {place}")
    plain_numbers(ax)
    ax.legend(
        frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(-0.02, -0.04), handletextpad=0.3, columnspacing=1
    )


def show_shifts(ax: Axes, history: History, community: Community, truth: EcologyTruth) -> None:
    """Draw every species' mean log abundance over the sites, smoothed over a year, and when a shift begins."""
    change = {**dict.fromkeys(truth.declining_species, RED), **dict.fromkeys(truth.increasing_species, BLUE)}
    mean = pd.DataFrame(history.log_abundance.mean(axis=1), columns=list(community.species))
    smooth = mean.rolling(26, center=True, min_periods=13).mean()
    for name in community.species:
        ax.plot(np.exp(smooth[name]), color=change.get(name, "0.75"), lw=1.2 if name in change else 0.9)
    for survey in truth.shift_surveys:
        ax.axvline(survey, color="0.3", lw=0.8, ls=":")
        ax.annotate(
            "shift", (survey, 1), (3, -3), xycoords=("data", "axes fraction"), textcoords="offset points", va="top"
        )
    ax.set(
        yscale="log",
        xlabel="survey",
        ylabel="individuals, mean of a year",
        title="B  Regime shifts: losers red, winners blue",
    )
    plain_numbers(ax)


def show_effects(ax: Axes, community: Community) -> None:
    """Draw what every species (column) does to the growth of every other (row)."""
    others = community.effects - np.diag(np.diag(community.effects))
    image = ax.imshow(others, cmap="RdBu", vmin=-0.2, vmax=0.2)
    short = [f"{name[0]}. {name.split()[1]}" for name in community.species]
    ax.set_xticks(range(len(short)), short, rotation=45, ha="right", fontsize=7)
    ax.set_yticks(range(len(short)), short, fontsize=7)
    for row, column in zip(*np.nonzero(others), strict=True):
        ax.text(column, row, f"{others[row, column]:+.2f}", ha="center", va="center", fontsize=6)
    ax.set(xlabel="source", ylabel="target", title="C  Effects per log unit on the growth of others")
    plt.colorbar(image, ax=ax, shrink=0.9, pad=0.02)


def show_temperature(ax: Axes, frame: pd.DataFrame, history: History) -> None:
    """Draw the temperatures as written; those that are right in °F are marked."""
    tidy = frame.assign(site=frame["site"].str.strip().str.title()).drop_duplicates(["survey", "site"])
    places = sorted(tidy["site"].unique())
    celsius = history.temperature[tidy["survey"], [places.index(site) for site in tidy["site"]]]
    other = np.abs(tidy["temperature"] - celsius_to_fahrenheit(celsius)) < 0.1
    ax.plot(tidy["survey"][~other], tidy["temperature"][~other], ".", ms=2.5, color="0.45", label="in °C")
    ax.plot(tidy["survey"][other], tidy["temperature"][other], ".", ms=3.5, color=ORANGE, label="in °F")
    ax.set(xlabel="survey, two weeks each", ylabel="temperature", title="D  Thermometers as read")
    ax.legend(frameon=False, markerscale=2, handletextpad=0.1)


def main() -> None:
    """Draw the figure."""
    task, level = EcologyTask(), LEVELS[DIFFICULTY]
    data = task.generate(SEED, DIFFICULTY)
    community = draw_community(level, random_for(task.name, SEED, DIFFICULTY, "community"))
    history = simulate(community, level, random_for(task.name, SEED, DIFFICULTY, "history"))
    fig, axes = four_panels()
    frame = data.frame
    show_counts(axes[0, 0], frame, history, community)
    show_shifts(axes[0, 1], history, community, data.truth)
    show_effects(axes[1, 0], community)
    show_temperature(axes[1, 1], frame, history)
    open_frame(axes[0, 0], axes[0, 1], axes[1, 1])
    save(fig, __file__)


if __name__ == "__main__":
    main()
