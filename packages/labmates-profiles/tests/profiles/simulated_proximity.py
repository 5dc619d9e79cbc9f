"""Simulated studies of the behavioural games with known coefficients, to test whether an analysis recovers them.

The true coefficients are those of the cooperative-profiles paper (Table 6), whose data are unpublished. How the paper's
residual standard deviation of .233 divides into differences between models, games and cells, and noise, is unknown: two
divisions with about the same sum are assumed (`CLUSTERED`, `MILD`), beside the paper's assumption of pure noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from labmates.models.roster import KnownModel
from labmates_profiles.proximity.cells import (
    GAME_PREFIX,
    INTERCEPT,
    REFERENCE_GAME,
    Cells,
    cells_of,
    game_columns,
    with_predictors,
)
from labmates_profiles.proximity.report import PUBLISHED

if TYPE_CHECKING:
    import pandas as pd

ROWS: Final = 87_475
GROUP_SIZES: Final = {
    "collective-risk": (3, 5, 8, 10),
    "common-pool": (3, 5, 8, 10),
    "common-pool-sanctions": (5,),
    "o-ring": (3, 5, 8),
    "public-goods": (3, 4, 5, 8, 10),
    "weakest-link": (3, 5, 8, 10),
}
"""Group sizes of each game in the paper; 5 is the common one."""
_SIMULATIONS, _CANONICAL, _USUAL_SIZE = 50, 18_000, 5


@dataclass(frozen=True)
class Truth:
    """The parameters of a simulated study.

    Attributes
    ----------
    residual
        Standard deviation of simulations within a cell.
    family, model, game, cell
        Standard deviations of the intercepts of families, models, models in a game, and cells.
    slope
        Standard deviation of the models' own reactions to chain of thought and to theory of mind.
    size_slope
        That of their reactions to one more player.
    freedom
        Degrees of freedom of Student's t for all differences between models; None for normal differences.
    """

    residual: float = 0.233
    family: float = 0.068
    model: float = 0.0
    slope: float = 0.0
    game: float = 0.0
    cell: float = 0.0
    size_slope: float = 0.0
    freedom: float | None = None
    coefficients: Mapping[str, float] = field(default_factory=lambda: PUBLISHED)


INDEPENDENT: Final = Truth()
"""The paper's assumption: simulations of a family differ only by chance."""
CLUSTERED: Final = Truth(residual=0.10, model=0.04, slope=0.03, game=0.20, cell=0.05)
REACTIVE: Final = replace(CLUSTERED, size_slope=0.012)
"""Models also react differently to group size."""
HEAVY_TAILED: Final = replace(REACTIVE, freedom=2.1)
MILD: Final = Truth(residual=0.22, model=0.02, slope=0.015, game=0.07, cell=0.02)


def proximity_design(models: Sequence[KnownModel], *, rows: int = ROWS) -> pd.DataFrame:
    """The cells of a study like the paper's, one row each, with the number of simulations of each.

    The usual condition (18,000 simulations in all at full size), chain of thought, theory of mind and other group sizes
    (50 simulations per cell), and a sweep of payoffs with the rest; 1,365 cells with the 35 models of the roster.

    Returns
    -------
    frame
        Columns ``model``, ``family``, ``size``, ``thinking``, ``game``, ``condition``, ``reasoning``, ``group_size``,
        ``framing``, ``count``.
    """
    import pandas as pd

    rows_of_cells = []
    for model in models:
        for game, sizes in GROUP_SIZES.items():
            cells = [("canonical", "none", 5), ("cot", "cot", 5), ("tom", "tom", 5), ("payoffs", "none", 5)]
            cells += [(f"size {size}", "none", size) for size in sizes if size != 5]
            rows_of_cells += [(model.name, model.family, model.size, model.thinking, game, *cell) for cell in cells]
    columns = ["model", "family", "size", "thinking", "game", "condition", "reasoning", "group_size"]
    frame = pd.DataFrame(rows_of_cells, columns=columns).assign(framing="standard")
    swept = ~frame["condition"].isin(["canonical", "payoffs"])
    per_cell = max(2, round(_SIMULATIONS * rows / ROWS))
    usual = len(models) * len(GROUP_SIZES)
    canonical = max(2, round(_CANONICAL * rows / ROWS / usual))
    rest = max(2 * usual, rows - per_cell * int(swept.sum()) - canonical * usual)
    payoffs = frame["condition"] == "payoffs"
    count = np.where(swept, per_cell, canonical)
    count[payoffs] = rest // usual + (np.arange(usual) < rest % usual)
    return frame.assign(count=count)


def simulated_means(design: pd.DataFrame, truth: Truth, *, seed: int) -> np.ndarray:
    """The true mean of each cell of a design, shape ``(cells,)``."""
    rng = np.random.default_rng(seed)
    frame = with_predictors(design, REFERENCE_GAME)
    means = np.full(len(frame), truth.coefficients[INTERCEPT])
    for name, value in truth.coefficients.items():
        if name != INTERCEPT and name in frame:
            means += value * frame[name].to_numpy()
    for columns, deviation in (
        (["family"], truth.family),
        (["model"], truth.model),
        (["model", "game"], truth.game),
    ):
        group = frame.groupby(columns, sort=False).ngroup().to_numpy()
        means += deviation * _between(rng, truth, group.max() + 1)[group]
    model = frame.groupby("model", sort=False).ngroup().to_numpy()
    for name in ("cot", "tom"):
        means += truth.slope * _between(rng, truth, model.max() + 1)[model] * frame[name].to_numpy()
    means += truth.cell * rng.standard_normal(len(frame))
    more = frame["group_size"].to_numpy() - _USUAL_SIZE
    return np.asarray(means + truth.size_slope * _between(rng, truth, model.max() + 1)[model] * more)


def _between(rng: np.random.Generator, truth: Truth, number: int) -> np.ndarray:
    """Differences between models in units of their standard deviation."""
    return rng.standard_normal(number) if truth.freedom is None else rng.standard_t(truth.freedom, number)


def simulated_cells(design: pd.DataFrame, truth: Truth, *, seed: int) -> Cells:
    """The cells of a simulated study, with normal simulations around each cell's mean."""
    means = simulated_means(design, truth, seed=seed)
    rng = np.random.default_rng([seed, 1])
    count = design["count"].to_numpy()
    frame = with_predictors(design, REFERENCE_GAME).assign(
        mean=means + truth.residual * rng.standard_normal(len(count)) / np.sqrt(count),
        squares=truth.residual**2 * rng.chisquare(np.maximum(count - 1, 1e-9)),
    )
    return cells_of(frame, true_names(design))


def simulated_rows(design: pd.DataFrame, truth: Truth, *, seed: int) -> pd.DataFrame:
    """A simulated study with one row per simulation: the columns of the design, and ``pareto_proximity``.

    Values are normal; unlike measured ones, some are outside [0, 1].
    """
    means = simulated_means(design, truth, seed=seed)
    rng = np.random.default_rng([seed, 1])
    at = np.repeat(np.arange(len(design)), design["count"].to_numpy())
    values = means[at] + truth.residual * rng.standard_normal(len(at))
    return design.drop(columns="count").iloc[at].reset_index(drop=True).assign(pareto_proximity=values)


def true_names(design: pd.DataFrame) -> list[str]:
    """The predictors of a design with known coefficients, in order."""
    games = set(game_columns(design["game"], REFERENCE_GAME))
    predictors = [name for name in PUBLISHED if name != INTERCEPT]
    return [name for name in predictors if not name.startswith(GAME_PREFIX) or name in games]
