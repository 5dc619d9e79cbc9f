"""Draw docs/tasks/geospatial.png: one data set of the geospatial task, as recorded and as it is.

Run it from the repository's root: ``python docs/tasks/figures/geospatial.py``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Circle
from page import BLUE, GREEN, ORANGE, RED, VIOLET, four_panels, open_frame, save

from labmates.tasks.base import DIFFICULTIES, Difficulty
from labmates.tasks.geospatial.data import LEVELS, SPREAD, Ground, draw_ground
from labmates.tasks.geospatial.soil import Soil, draw_sites, draw_soil
from labmates.tasks.geospatial.task import GeospatialTask
from labmates.tasks.noise import Floats, random_for

SEED: int = 4
DIFFICULTY: Difficulty = "medium"
AXES = (("along the longest axis", BLUE), ("across it", RED))
COLOURS = {"easy": GREEN, "medium": BLUE, "hard": VIOLET}
SEEDS = range(6)


def show_map(ax: Axes, ground: Ground, soil: Soil) -> None:
    """Draw the grade at every site and a circle at the half-distance of every hot spot."""
    grade = np.exp(soil.log_grade)
    east, north = soil.places.T / 1_000
    low, high = np.quantile(grade, [0.02, 0.99])
    drawn = ax.scatter(east, north, c=grade, s=2.5, linewidths=0, norm=LogNorm(low, high), rasterized=True)
    for one in ground.hot_spots:
        ax.add_patch(Circle((one.east / 1_000, one.north / 1_000), one.radius / 1_000, fill=False, color=RED))
    plt.colorbar(drawn, ax=ax, shrink=0.9, pad=0.02, label=f"{ground.metal}, ppm", format="%g")
    ax.set(aspect="equal", xlabel="km east", ylabel="km north", title="A  Grade at the sites; circles: hot spots")


def show_records(ax: Axes, frame: pd.DataFrame) -> None:
    """Draw the grades as they stand in the table, by batch; what lies below a detection limit is negative there."""
    batch = frame["batch"].str[1:].astype(int).to_numpy()
    place = batch + np.random.default_rng(0).uniform(-0.35, 0.35, len(batch))
    grade, below = frame["grade_ppm"].abs(), (frame["grade_ppm"] < 0).to_numpy()
    ax.scatter(place[~below], grade[~below], s=2, color="0.45", linewidths=0, rasterized=True)
    ax.scatter(place[below], grade[below], s=7, color=ORANGE, marker="v", linewidths=0, label="below the limit")
    middle = grade.groupby(batch).median()
    odd = int(middle.index[middle > middle.median() * 100].max())
    ax.annotate("in parts per billion", (odd + 1, middle[odd]), (4, 0), textcoords="offset points", va="center")
    ax.set(yscale="log", xlabel="laboratory batch", ylabel="grade_ppm", title="B  Grades as written")
    ax.legend(loc="center left", frameon=False, handletextpad=0.1, markerscale=2)


def unexplained(ground: Ground, soil: Soil) -> Floats:
    """Return what rock, covariates and hot spots leave of the log grade, shape (n,)."""
    left = soil.log_grade - soil.standard @ ground.effects - ground.rock_effects[soil.rock]
    for one in ground.hot_spots:
        away = ((soil.places - [one.east, one.north]) ** 2).sum(axis=1) / one.radius**2
        left = left - one.peak * 0.5**away
    return left


def show_variogram(ax: Axes, ground: Ground, soil: Soil) -> None:
    """Draw the empirical variogram of the unexplained part along two axes, and the curves that it was drawn from."""
    left, edges = unexplained(ground, soil), np.array([40, 75, 125, 200, 300, 450, 600, 800, 1_000, 1_250, 1_500])
    first, second = np.triu_indices(len(left), 1)
    step = soil.places[first] - soil.places[second]
    near = (step**2).sum(axis=1) < edges[-1] ** 2
    first, second, step = first[near], second[near], step[near]
    distance = np.hypot(*step.T)
    azimuth = np.degrees(np.arctan2(step[:, 0], step[:, 1]))
    half = (left[first] - left[second]) ** 2 / 2
    for turn, (label, colour) in zip((0, 90), AXES, strict=True):
        angle = ground.continuity.azimuth + turn
        mine = np.abs((azimuth - angle + 90) % 180 - 90) < 15
        pairs = pd.DataFrame({"x": distance, "y": half})[mine].groupby(np.digitize(distance[mine], edges))
        groups = pairs.mean()[pairs.size() > 100]
        ax.plot(groups["x"], groups["y"], "o", ms=3.5, color=colour, label=label)
        lag = np.linspace(0, edges[-1], 200)
        steps = lag[:, None] * [np.sin(np.deg2rad(angle)), np.cos(np.deg2rad(angle))]
        curve = SPREAD**2 * (1 - (1 - ground.nugget) * ground.continuity.correlation(steps))
        ax.plot(lag, curve, color=colour, lw=1)
        reach = ground.continuity.range_m / (ground.continuity.ratio if turn else 1)
        ax.axvline(reach, color=colour, lw=0.8, ls=":")
    ax.axhline(SPREAD**2 * ground.nugget, color="0.6", lw=0.8, ls=":")
    ax.text(edges[-1] / 3, SPREAD**2 * ground.nugget, "nugget", va="bottom", color="0.4")
    ax.set(
        ylim=(0, None), xlabel="distance, m", ylabel="semivariance", title="C  What covariates leave; dotted: ranges"
    )
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.02))


def show_validation(ax: Axes) -> None:
    """Draw the attainable R² of some data sets of each difficulty."""
    task = GeospatialTask()
    for difficulty in DIFFICULTIES:
        for seed in SEEDS:
            truth = task.generate(seed, difficulty).truth
            shares = [truth.r2_covariates_cv, truth.r2_block_cv, truth.r2_random_cv]
            label = difficulty if seed == SEEDS[0] else None
            ax.plot(range(3), shares, "o-", ms=3, lw=0.8, color=COLOURS[difficulty], label=label)
    ax.set_xticks(
        range(3), ["covariates alone,\nblocks left out", "kriging,\nblocks left out", "kriging,\nrandom folds"]
    )
    ax.set(ylim=(0, 1), ylabel="attainable R² of the log grade", title="D  Random folds flatter a map")
    ax.legend(frameon=False, loc="upper left")


def main() -> None:
    """Draw the figure."""
    task, level = GeospatialTask(), LEVELS[DIFFICULTY]
    ground = draw_ground(level, random_for(task.name, SEED, DIFFICULTY, "ground"))
    places = draw_sites(ground, level, random_for(task.name, SEED, DIFFICULTY, "sites"))
    soil = draw_soil(ground, level, places, random_for(task.name, SEED, DIFFICULTY, "soil"))
    fig, axes = four_panels()
    show_map(axes[0, 0], ground, soil)
    show_records(axes[0, 1], task.generate(SEED, DIFFICULTY).frame)
    show_variogram(axes[1, 0], ground, soil)
    show_validation(axes[1, 1])
    open_frame(axes[0, 1], axes[1, 0], axes[1, 1])
    save(fig, __file__)


if __name__ == "__main__":
    main()
