"""Figures of social dilemmas: payoffs, populations, actions, responses, adoption, designs and reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from labmates.stats.domains import SHARE
from labmates.stats.figures import (
    GREY,
    LEGEND_ROW,
    add_legend_beside,
    error_bars,
    look,
    name_cells,
    new_figure,
    write_numbers,
)
from labmates.stats.intervals import mean, means
from labmates.stats.metagame import Array
from labmates.stats.ratings import Cell
from labmates.stats.replicator import replicator_dynamics

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ENDS = ["share_low", "share_high"]
ActionNames = Mapping[str, Mapping[str, str]]
"""Displayed names of actions, by game and action."""
_NO_NAMES: ActionNames = MappingProxyType({})
_MOST_PANELS = 12
_SIDE, _SMALL_SIDE = 0.5, 0.16
"""Width of a cell of a heat map in inches, with a number and without."""
_LETTER = 0.062
"""Width of a letter in the axes' labels, in inches."""
_MOST_NUMBERS = 2500
"""Maximum number of cells of a heat map with numbers."""


def payoffs_figure(cells: Sequence[Cell]) -> Figure:
    """Payoffs of each model against each other model, means over runs: a heat map, or one for each third player.

    Each cell has its 95 % interval over runs, if there are several, and in small print the payoffs of the co-players.
    Colours range from full defection to full cooperation if the game has both. With more than three players, payoffs
    are means over the further ones.
    """
    cell, tensor = cells[0], np.mean([run.payoffs for run in cells], axis=0)
    models, players = cell.models, tensor.ndim
    low, high = (cell.scale.defect, cell.scale.cooperate) if cell.scale else (tensor.min(), tensor.max())
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
    names = _LETTER * max(map(len, models))
    width = max(columns * (max(side, _LETTER * 30) + 0.4) + names + 1.2, 1.7 * _LETTER * len(title))
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
    figure.colorbar(image, ax=axes, label="payoff of the row's model", extend="both")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    if has_numbers:
        figure.supxlabel("cells: payoff of the row's model, its 95 % interval, payoffs of the co-players", fontsize=7)
    return figure


def population_figure(cells: Sequence[Cell], *, steps: int = 1000) -> Figure:
    """Shares and fitness of models under replicator dynamics, means over runs.

    Each run's metagame evolves separately, as in the table of cooperation after evolution. Marks have 95 % intervals.
    """
    cell = cells[0]
    paths = [replicator_dynamics(run.payoffs, steps=steps).path for run in cells]
    earned = [
        np.array([_against(run.payoffs, population) for population in path])
        for run, path in zip(cells, paths, strict=True)
    ]
    figure, axes = new_figure(6.4, max(5.2, 0.8 + LEGEND_ROW * len(cell.models)), rows=2)
    panels = (("share of the population", paths, SHARE), ("fitness", earned, cell.domain))
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
    axes[1].set_xlabel("step")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    figure.suptitle(f"{cell.game}, {cell.mechanism}: evolution{_left_out(cell)}", x=0.01, ha="left", fontweight="bold")
    return figure


def actions_figure(frame: pd.DataFrame, names: ActionNames = _NO_NAMES) -> Figure:
    """Probability of each action with its interval, a row for each mechanism (and model), a panel for each game.

    Parameters
    ----------
    frame
        From `labmates.workflows.dilemmas.frames.actions_frame` or `pooled_frame`.
    names
        From `labmates.workflows.dilemmas.frames.action_names`.
    """
    games = {str(game): _wide(of_game) for game, of_game in frame.groupby("game", sort=False)}
    heights = [0.6 + _row_height(len(actions)) * len(rows) for rows, actions in games.values()]
    figure, axes = new_figure(7.8, 0.4 + sum(heights), rows=len(games), height_ratios=heights)
    for ax, (game, (rows, actions)) in zip(axes, games.items(), strict=True):
        _dots(ax, rows, {action: names.get(game, {}).get(action, action) for action in actions})
        ax.set_title(game, loc="left")
    axes[-1].set_xlabel("mean probability of the action, 95 % interval")
    return figure


def _wide(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """One row per mechanism (and model), with the share of each action and its interval; and the actions."""
    import pandas as pd

    who = [name for name in ("mechanism", "model") if name in frame]
    rows = []
    for key, of_row in frame.groupby(who, sort=False):
        row: dict[str, Any] = dict(zip(who, key if isinstance(key, tuple) else (key,), strict=True))
        for record in of_row.to_dict("records"):
            row |= {record["action"]: record["share"]}
            row |= {f"{record['action']}_{end}": record[f"share_{end}"] for end in ("low", "high")}
        rows.append(row)
    return pd.DataFrame(rows), [str(action) for action in dict.fromkeys(frame["action"])]


def responses_figure(frame: pd.DataFrame, names: ActionNames = _NO_NAMES) -> Figure:
    """Probability of each action after the co-players' last actions, games in rows and mechanisms in columns.

    Parameters
    ----------
    frame
        From `labmates.workflows.dilemmas.frames.responses_frame`.
    names
        From `labmates.workflows.dilemmas.frames.action_names`.
    """
    games, mechanisms = (list(dict.fromkeys(frame[name])) for name in ("game", "mechanism"))
    tables = {game: _responses(of_game) for game, of_game in frame.groupby("game", sort=False)}
    heights = [0.9 + 0.3 * len(tables[game]) for game in games]
    width = 4.0 + len(mechanisms) * max(1.4, 0.65 * frame["action"].nunique())
    figure, axes = new_figure(
        width, 0.2 + sum(heights), rows=len(games), columns=len(mechanisms), height_ratios=heights
    )
    for ax, (game, mechanism) in zip(axes, product(games, mechanisms), strict=True):
        table = tables[game]
        if mechanism not in table.columns.get_level_values("mechanism"):
            ax.set_axis_off()
            continue
        shown = table.xs(mechanism, axis="columns", level="mechanism")
        values = shown["share"].to_numpy(dtype=float)
        image = ax.imshow(values, cmap="viridis", vmin=0, vmax=1, aspect="auto")
        write_numbers(ax, values, [shown[end].to_numpy(dtype=float) for end in _ENDS])
        action_labels = names.get(game, {})
        labels = [f"{model}, {_after(before, action_labels)}" for model, before in table.index]
        columns = [action_labels.get(action, action) for action in map(str, shown["share"].columns)]
        name_cells(ax, labels if mechanism == mechanisms[0] else (), columns)
        ax.set_title(f"{game}, {mechanism}", loc="left", fontsize=8)
    figure.colorbar(image, ax=axes, label="share of choices, 95 % interval below", aspect=60)
    return figure


def _after(before: str, names: Mapping[str, str]) -> str:
    """The co-players' actions in the previous round, as a label of `responses_figure`."""
    if before == "-":
        return "at first"
    return f"after {' + '.join(names.get(action, action) for action in before.split('+'))}"


def _responses(frame: pd.DataFrame) -> pd.DataFrame:
    """The shares of a game: a row for each model and previous actions, a column for each mechanism and action."""
    index, columns = ["model", "before"], ["mechanism", "action"]
    table = frame.pivot(index=index, columns=columns, values=["share", *_ENDS])
    return table.sort_index(key=lambda level: level.where(level != "-", "") if level.name == "before" else level)


ADOPTION = {
    "approves": "approves proposals",
    "approved": "its proposals are approved",
    "wins": "its proposal is played",
    "signs": "signs the winner",
    "delegates": "delegates",
}
OUTCOMES = {
    "unanimous": "a proposal is approved by all",
    "tied": "the vote is tied",
    "adopted": "a design takes effect",
}
EVOLUTION = {"uniform": "all models alike", "evolved": "after replicator dynamics"}
DESIGNS = {"nash": "cooperation is an equilibrium", "dominant": "cooperation is weakly dominant"}


def shares_figure(frame: pd.DataFrame, columns: Mapping[str, str], title: str) -> Figure:
    """Shares as dots, a row for each mechanism, game and model that the table has.

    Parameters
    ----------
    frame
        A table of votes and adoption, or of designs; see `labmates.workflows.dilemmas.frames`.
    columns
        The shares to draw, with their labels.
    """
    drawn = sum(bool(frame[column].notna().any()) for column in columns if column in frame)
    figure, [ax] = new_figure(7.2, 1.0 + _row_height(drawn) * len(frame))
    _dots(ax, frame, columns)
    ax.set_xlabel("share, 95 % interval")
    ax.set_title(title, loc="left", fontweight="bold")
    return figure


def _dots(ax: Axes, frame: pd.DataFrame, columns: Mapping[str, str]) -> None:
    """Draw shares as dots with intervals, in rows by game, mechanism and model."""
    who = [name for name in ("game", "mechanism", "model") if name in frame]
    frame = frame.sort_values(who, key=lambda column: column.where(column != "none", ""))
    drawn = [(column, label) for column, label in columns.items() if column in frame and frame[column].notna().any()]
    for place, (column, label) in enumerate(drawn):
        values = frame[column].to_numpy(dtype=float)
        low, high = (frame.get(f"{column}_{end}", frame[column]).to_numpy(dtype=float) for end in ("low", "high"))
        reach = [np.nan_to_num(values - low), np.nan_to_num(high - values)]
        # Offset vertically, so that equal shares do not overlap.
        offset = (place + 0.5) / len(drawn) * 0.8 - 0.4
        colour, marker = look(place)
        at = np.arange(len(values)) + offset
        ax.errorbar(
            values, at, xerr=np.maximum(reach, 0), fmt=marker, color=colour, label=label, markersize=4, linewidth=1
        )
    for row in range(len(frame)):
        ax.axhline(row, color=GREY, linewidth=0.3, zorder=0)
    ax.set_yticks(range(len(frame)), [", ".join(map(str, row)) for row in frame[who].to_numpy()], fontsize=7)
    ax.set_ylim(len(frame) - 0.5, -0.5)
    ax.set_xlim(-0.03, 1.03)
    add_legend_beside(ax)


def _row_height(series: int) -> float:
    """Height in inches of a row with this number of series."""
    return 0.1 + 0.07 * max(series, 1)


def reasons_figure(frame: pd.DataFrame) -> Figure:
    """Frequency of each kind of reasons, by mechanism and model, a panel for each judge.

    Parameters
    ----------
    frame
        From `labmates.workflows.dilemmas.frames.reasons_frame` over all games.
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
        ax.set_title(f"Reasons: share of choices labelled by {judge}", loc="left", fontweight="bold")
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


def _against(tensor: Array, population: Array) -> Array:
    values = tensor
    for _ in range(tensor.ndim - 1):
        values = values @ population
    return values
