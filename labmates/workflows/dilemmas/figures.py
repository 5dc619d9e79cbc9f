"""Figures of social dilemmas: payoffs and populations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.domains import SHARE
from labmates.stats.figures import (
    LEGEND_ROW,
    add_scale,
    error_bars,
    look,
    name_cells,
    new_figure,
    title_figure,
    write_numbers,
)
from labmates.stats.intervals import mean, means
from labmates.stats.metagame import Array
from labmates.stats.ratings import Cell
from labmates.stats.replicator import fitness_of, replicator_dynamics
from labmates.workflows.dilemmas.dot_figures import LETTER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PANELS = 12
_SIDE, _SMALL_SIDE = 0.5, 0.16
"""Width of a cell of a heat map in inches, with a number and without."""
_MOST_NUMBERS = 2500
"""Maximum number of cells of a heat map with numbers."""


def payoffs_figure(cells: Sequence[Cell]) -> Figure:
    """Payoffs of each model against each other model, means over runs: a heat map, or one for each third player.

    Each cell has its 95 % interval over runs, if there are several, and in small print the payoffs of the co-players.
    Colours range over all payoffs, and from full defection to full cooperation if the game has both. With more than
    three players, payoffs are means over the further ones.
    """
    cell, tensor = cells[0], np.mean([run.payoffs for run in cells], axis=0)
    models, players = cell.models, tensor.ndim
    ends = [*tensor.flat, *((cell.scale.defect, cell.scale.cooperate) if cell.scale else ())]
    low, high = min(ends), max(ends)
    low, high = (low, high) if high > low else (low - 0.5, low + 0.5)
    estimates = _estimates(cells)
    others = _others(estimates[0])
    panels = [estimates] if players == 2 else list(np.moveaxis(estimates, 3, 0))[:_MOST_PANELS]
    title = f"{cell.game}, {cell.mechanism}: payoffs{_left_out(cell)}"
    if players > 3:
        title += ", mean over further co-players"
    if players > 2 and len(panels) < len(models):
        title += f", first {len(panels)} of {len(models)} third players"
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    has_numbers = len(panels) * len(models) ** 2 <= _MOST_NUMBERS
    side = (_SIDE if has_numbers else _SMALL_SIDE) * len(models)
    names = LETTER * max(map(len, models))
    width = max(columns * (max(side, LETTER * 30) + 0.4) + names + 1.2, 1.7 * LETTER * len(title))
    height = rows * (max(side, 1.0) + 0.4) + 0.8 * names + 0.8
    figure, axes = new_figure(width, max(height, 3.0), rows=rows, columns=columns)
    for place, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
        image = ax.imshow(panel[0], cmap="RdYlBu", vmin=low, vmax=high)
        if has_numbers:
            write_numbers(ax, panel[0], panel[1:], others=others[place])
        # Only panels at the figure's edges have names.
        is_lowest = place + columns >= len(panels)
        name_cells(ax, models if place % columns == 0 else (), models if is_lowest else ())
        ax.set_xlabel("co-player" if is_lowest else "")
        if players > 2:
            ax.set_title(f"third player: {models[place]}", fontsize=8)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    add_scale(figure, image, axes, "payoff of the row's model")
    title_figure(figure, title)
    if has_numbers:
        interval = " its 95 % interval," if len(cells) > 1 else ""
        figure.supxlabel(f"cells: payoff of the row's model,{interval} payoffs of the co-players", fontsize=7)
    return figure


def population_figure(cells: Sequence[Cell], *, steps: int = 1000) -> Figure:
    """Shares and fitness of models under replicator dynamics, means over runs.

    Each run's metagame evolves separately, as in the table of cooperation after evolution. Marks have 95 % intervals.
    """
    cell = cells[0]
    paths = [replicator_dynamics(run.payoffs, steps=steps).path for run in cells]
    earned = [np.array([*map(fitness_of(run.payoffs), path)]) for run, path in zip(cells, paths, strict=True)]
    figure, axes = new_figure(6.4, max(5.2, 0.8 + LEGEND_ROW * len(cell.models)), rows=2)
    panels = (("share of the population", paths, SHARE), ("fitness (expected payoff)", earned, cell.domain))
    for ax, (label, runs, domain) in zip(axes, panels, strict=True):
        for model, name in enumerate(cell.models):
            colour, marker = look(model)
            values = np.array(runs)[:, :, model]
            # Marks of different models are offset, so that their intervals don't overlap.
            gap = max(1, steps // 6)
            marked = np.arange(gap * (model + 1) // (len(cell.models) + 1), steps + 1, gap)
            ax.plot(values.mean(axis=0), color=colour)
            estimates = [mean(values[:, step].tolist(), domain) for step in marked]
            middle, bars = [estimate.value for estimate in estimates], error_bars(estimates)
            ax.errorbar(marked, middle, bars, fmt=marker, color=colour, capsize=2, linewidth=1, label=name)
        ax.set_ylabel(label)
    axes[0].set_ylim(bottom=0)
    axes[1].set_xlabel("step of the replicator dynamics")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    title_figure(figure, f"{cell.game}, {cell.mechanism}: evolution{_left_out(cell)}")
    return figure


def _estimates(cells: Sequence[Cell]) -> Array:
    """Means over runs and their intervals, ``(3, models, models)`` or ``(3, models, models, models)``.

    Missing interval ends are NaN. With more than three players, values are means over the further ones.
    """
    tensors = np.array([cell.payoffs for cell in cells])
    while tensors.ndim > 4:
        tensors = tensors.mean(axis=-1)
    estimates = means(tensors.reshape(len(cells), -1).T.tolist(), cells[0].domain)
    rows = [[np.nan if end is None else end for end in (each.value, each.low, each.high)] for each in estimates]
    return np.array(rows, dtype=float).T.reshape(3, *tensors.shape[1:])


def _others(payoffs: Array) -> list[Array]:
    """The payoffs of the co-players, ``(models, models, co-players)``, for the panel of each third player.

    Parameters
    ----------
    payoffs
        Of the first player, by its model and those of its co-players; seats are interchangeable.
    """
    if payoffs.ndim == 2:
        return [payoffs.T[..., np.newaxis]]
    second, third = payoffs.transpose(1, 0, 2), payoffs.transpose(1, 2, 0)
    return list(np.moveaxis(np.stack([second, third], axis=-1), 2, 0))


def _left_out(cell: Cell) -> str:
    """A note on the models left out of a figure for their failed decisions."""
    return f" (left out, failed: {', '.join(cell.left_out)})" if cell.left_out else ""
