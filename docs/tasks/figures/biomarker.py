"""Draw docs/tasks/biomarker.png: one data set of the biomarker task, as recorded and as it is.

Run it from the repository's root: ``python docs/tasks/figures/biomarker.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from labmates.tasks.base import Difficulty
from labmates.tasks.biomarker.data import BY_SCORE, LEVELS, SCORE, Cohort, Trial, draw_cohort, draw_trial
from labmates.tasks.biomarker.task import BiomarkerTask
from labmates.tasks.noise import random_for

SEED: int = 0
DIFFICULTY: Difficulty = "medium"
ARMS = (("active", "#c44e52"), ("placebo", "#4c72b0"))
TARGET = Path(__file__).parents[1] / "biomarker.png"


def show_records(ax: Axes, frame: pd.DataFrame, marker: str, limit: float) -> None:
    """Draw one marker's values as they stand in the table, by assay batch."""
    text = frame[marker].astype(str)
    below = text.str.startswith("<").to_numpy()
    value = pd.to_numeric(text.str.lstrip("<"), errors="coerce").to_numpy()
    batch = frame["batch"].str[1:].astype(int).to_numpy()
    place = batch + np.random.default_rng(0).uniform(-0.32, 0.32, len(batch))
    ax.scatter(place[~below], value[~below], s=2, color="0.45", linewidths=0, rasterized=True)
    ax.scatter(place[below], value[below], s=7, color="#dd8452", marker="v", linewidths=0, label="below the limit")
    ax.axhline(limit, color="#dd8452", lw=0.8, ls=":")
    middle = pd.Series(np.log(value)).groupby(batch).median()
    odd = int((middle - middle.median()).abs().to_numpy().argmax())
    ax.annotate("another unit", (odd + 1, np.exp(middle.iloc[odd])), (14, 0), textcoords="offset points", va="center")
    ax.set(yscale="log", xlabel="assay batch", ylabel=marker, title="A  One marker, as written")
    ax.legend(loc="lower left", frameon=False, handletextpad=0.1, markerscale=2)


def show_slopes(ax: Axes, trial: Trial, cohort: Cohort, which: int, title: str) -> None:
    """Draw the mean improvement by tenths of a marker's true level in each arm, without what all else does."""
    level, others = cohort.level[:, which], np.arange(len(trial.markers)) != which
    by_others = cohort.level[:, others] @ np.stack([trial.prognostic, trial.predictive], axis=1)[others]
    improvement = cohort.improvement - by_others[:, 0] - cohort.treated * by_others[:, 1]
    improvement -= BY_SCORE * (cohort.score - SCORE)
    for treated, (arm, colour) in zip((True, False), ARMS, strict=True):
        mine = cohort.treated == treated
        tenth = pd.qcut(level[mine], 10, labels=False)
        groups = pd.DataFrame({"x": level[mine], "y": improvement[mine]}).groupby(tenth)
        mean, error = groups.mean(), groups["y"].sem()
        ax.errorbar(mean["x"], mean["y"], 1.96 * error, fmt="o", ms=3.5, lw=1, color=colour, label=arm)
        slope = np.polyfit(level[mine], improvement[mine], 1)
        ax.plot([-2, 2], np.polyval(slope, [-2, 2]), color=colour, lw=1)
    ax.set(xlabel=f"true log level of {trial.markers[which]}, in sd", title=title)
    ax.set_ylabel("improvement given all else, in points")


def show_subtypes(ax: Axes, trial: Trial, cohort: Cohort) -> None:
    """Draw the mean true level of every signature marker in each hidden subtype."""
    owner = np.abs(trial.shift).argmax(axis=0)
    told = [j for j in np.lexsort((owner,)) if trial.shift[:, j].any()]
    mean = np.array([cohort.level[cohort.subtype == k].mean(axis=0)[told] for k in range(len(trial.shares))])
    image = ax.imshow(mean, cmap="RdBu_r", vmin=-1.2, vmax=1.2, aspect="auto")
    ax.set_xticks(range(len(told)), [trial.markers[j] for j in told], rotation=90, fontsize=7)
    shares = [f"{np.mean(cohort.subtype == k):.0%}" for k in range(len(trial.shares))]
    gains = [f"{cohort.benefit[cohort.subtype == k].mean():+.1f}" for k in range(len(trial.shares))]
    labels = [f"{share} of patients\neffect {gain}" for share, gain in zip(shares, gains, strict=True)]
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.set_title("D  Hidden subtypes: mean level, in sd")
    plt.colorbar(image, ax=ax, shrink=0.9, pad=0.02)


def main() -> None:
    """Draw the figure."""
    task = BiomarkerTask()
    data = task.generate(SEED, DIFFICULTY)
    trial = draw_trial(LEVELS[DIFFICULTY], random_for(task.name, SEED, DIFFICULTY, "trial"))
    cohort = draw_cohort(trial, LEVELS[DIFFICULTY], random_for(task.name, SEED, DIFFICULTY, "cohort"))
    mpl.rcParams.update({"font.size": 8, "axes.titlesize": 9, "axes.titlelocation": "left"})
    fig, axes = plt.subplots(2, 2, figsize=(9, 6.2), dpi=100, layout="constrained")
    limits = {
        line.split(":")[0].removeprefix("- "): float(line.rpartition(" ")[2])
        for line in data.description.splitlines()
        if "detection limit " in line and line.startswith("- ")
    }
    told = {*data.truth.other_unit_markers} | {*data.truth.batch_markers}
    marker = max(limits, key=lambda name: (name in data.truth.other_unit_markers, name in told))
    show_records(axes[0, 0], data.frame, marker, limits[marker])
    only = int(np.where(trial.predictive == 0, np.abs(trial.prognostic), 0).argmax())
    show_slopes(axes[0, 1], trial, cohort, only, "B  A prognostic marker: the same slope in both arms")
    most = int(np.where(trial.prognostic == 0, np.abs(trial.predictive), 0).argmax())
    show_slopes(axes[1, 0], trial, cohort, most, "C  A predictive marker: the effect depends on it")
    axes[1, 0].legend(frameon=False)
    for ax in (axes[0, 0], axes[0, 1], axes[1, 0]):
        ax.spines[["top", "right"]].set_visible(False)
    show_subtypes(axes[1, 1], trial, cohort)
    fig.savefig(TARGET, metadata={"Software": None}, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
