"""Figures of social dilemmas: payoffs of the metagame, populations, actions, answers, adoption, designs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from labmates.analysis.figures import COLOURS, GREY, MARKERS, new_figure
from labmates.analysis.metagame import Array
from labmates.analysis.ratings import Cell
from labmates.analysis.replicator import replicator_dynamics

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_PANELS = 12
_MOST_NUMBERS = 12
"""Cells of heat maps with more models than this have no numbers."""


def payoffs_figure(cells: Sequence[Cell]) -> Figure:
    """Draw what each model gets against each other one, the mean over runs: a heat map, or one for each third player.

    Colours go from all defect to all cooperate where the game has both.
    """
    cell, tensor = _mean(cells)
    panels = [tensor] if tensor.ndim == 2 else [tensor[:, :, third] for third in range(len(tensor))][:_MOST_PANELS]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    side = 1.6 + 0.45 * len(cell.models)
    figure, axes = new_figure(columns * (side + 0.6), rows * side + 0.4, rows=rows, columns=columns)
    low, high = (cell.scale.defect, cell.scale.cooperate) if cell.scale else (tensor.min(), tensor.max())
    for place, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
        image = ax.imshow(panel, cmap="RdYlBu", vmin=low, vmax=max(high, low + 1e-9))
        _numbers(ax, panel)
        _ticks(ax, cell.models, cell.models)
        ax.set_xlabel("co-player")
        if len(panels) > 1:
            ax.set_title(f"third player: {cell.models[place]}")
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    figure.colorbar(image, ax=axes, label="payoff of the model in the row", extend="both")
    figure.suptitle(f"{cell.game}, {cell.mechanism}: payoffs", x=0.01, ha="left", fontweight="bold")
    return figure


def population_figure(cells: Sequence[Cell], *, steps: int = 1000) -> Figure:
    """Draw the shares of models under replicator dynamics and what each earns on the way, for the mean metagame."""
    cell, tensor = _mean(cells)
    dynamics = replicator_dynamics(tensor, steps=steps)
    fitness = np.array([_against(tensor, population) for population in dynamics.path])
    figure, axes = new_figure(6.4, 5.2, rows=2)
    for ax, values, label in zip(axes, (dynamics.path, fitness), ("share of the population", "fitness"), strict=True):
        for model in range(len(cell.models)):
            style = "-" if model < len(COLOURS) else "--"
            colour, marker = COLOURS[model % len(COLOURS)], MARKERS[model % len(MARKERS)]
            every = max(1, steps // 8)
            ax.plot(values[:, model], style, color=colour, marker=marker, markevery=every, label=cell.models[model])
        ax.set_ylabel(label)
    axes[1].set_xlabel("step")
    axes[0].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    figure.suptitle(f"{cell.game}, {cell.mechanism}: evolution", x=0.01, ha="left", fontweight="bold")
    return figure


def actions_figure(frame: pd.DataFrame) -> Figure:
    """Draw how likely each model takes each action, a bar for each model and mechanism, a panel for each game.

    Parameters
    ----------
    frame
        As `labmates.analysis.dilemma_frames.actions_frame` returns it.
    """
    games = {str(game): of_game for game, of_game in frame.groupby("game", sort=False)}
    bars = {
        game: list(dict.fromkeys(zip(of_game["mechanism"], of_game["model"], strict=True)))
        for game, of_game in games.items()
    }
    heights = [2 + len(own) for own in bars.values()]
    figure, axes = new_figure(7.4, 0.6 + 0.22 * sum(heights), rows=len(games), height_ratios=heights)
    for ax, (game, of_game) in zip(axes, games.items(), strict=True):
        shares = {
            (row["mechanism"], row["model"], row["action"]): float(row["share"]) for row in of_game.to_dict("records")
        }
        left = np.zeros(len(bars[game]))
        for place, action in enumerate(dict.fromkeys(of_game["action"])):
            widths = np.array([shares.get((*bar, action), 0.0) for bar in bars[game]])
            ax.barh(range(len(widths)), widths, left=left, color=COLOURS[place % len(COLOURS)], label=action)
            left += widths
        ax.set_yticks(range(len(left)), [f"{mechanism}: {model}" for mechanism, model in bars[game]], fontsize=7)
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        ax.set_title(game, loc="left")
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    axes[-1].set_xlabel("mean probability of the action")
    return figure


def responses_figure(frame: pd.DataFrame) -> Figure:
    """Draw how likely each action is after what co-players did last, a panel for each mechanism and game.

    Parameters
    ----------
    frame
        As `labmates.analysis.dilemma_frames.responses_frame` returns it.
    """
    panels = list(dict.fromkeys(zip(frame["mechanism"], frame["game"], strict=True)))
    tables = [
        frame[(frame["mechanism"] == mechanism) & (frame["game"] == game)].pivot_table(
            index=["model", "before"], columns="action", values="share", sort=False
        )
        for mechanism, game in panels
    ]
    heights = [2 + len(table) for table in tables]
    figure, axes = new_figure(6.4, 0.6 + 0.25 * sum(heights), rows=len(panels), height_ratios=heights)
    for ax, (mechanism, game), table in zip(axes, panels, tables, strict=True):
        values = table.to_numpy(dtype=float)
        ax.imshow(values, cmap="viridis", vmin=0, vmax=1, aspect="auto")
        _numbers(ax, values, always=True)
        labels = [f"{model} after {before}" if before != "-" else f"{model} at first" for model, before in table.index]
        ax.set_yticks(range(len(labels)), labels, fontsize=7)
        ax.set_xticks(range(len(table.columns)), [str(column) for column in table.columns])
        ax.set_title(f"{game}, {mechanism}", loc="left")
    return figure


def shares_figure(frame: pd.DataFrame, columns: Mapping[str, str], title: str) -> Figure:
    """Draw shares as dots, a row for each mechanism, game and model (as far as the table has them).

    Parameters
    ----------
    frame
        A table of votes and adoption, or of designs; see `labmates.analysis.dilemma_frames`.
    columns
        The shares that are drawn, with what they are called.
    """
    who = [name for name in ("mechanism", "game", "model") if name in frame]
    figure, [ax] = new_figure(7.2, 1.2 + 0.28 * len(frame))
    drawn = [(column, said) for column, said in columns.items() if column in frame and frame[column].notna().any()]
    for place, (column, said) in enumerate(drawn):
        values = frame[column].to_numpy(dtype=float)
        marker = MARKERS[place % len(MARKERS)]
        ax.plot(values, range(len(values)), marker, color=COLOURS[place % len(COLOURS)], label=said)
    for row in range(len(frame)):
        ax.axhline(row, color=GREY, linewidth=0.3, zorder=0)
    ax.set_yticks(range(len(frame)), [" ".join(map(str, row)) for row in frame[who].to_numpy()], fontsize=7)
    ax.invert_yaxis()
    ax.set_xlim(-0.03, 1.03)
    ax.set_title(title, loc="left", fontweight="bold")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    return figure


def reasons_figure(frame: pd.DataFrame) -> Figure:
    """Draw how often choices are explained by each kind of reasons, by mechanism and model, over all games.

    Parameters
    ----------
    frame
        As `labmates.analysis.dilemma_frames.reasons_frame` returns it.
    """
    table = frame.pivot_table(index="label", columns=["mechanism", "model"], values="share", fill_value=0.0)
    values = table.to_numpy(dtype=float)
    figure, [ax] = new_figure(3.0 + 0.5 * values.shape[1], 1.6 + 0.28 * values.shape[0])
    ax.imshow(values, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    _numbers(ax, values, always=True)
    _ticks(ax, map(str, table.index), (": ".join(column) for column in table.columns.to_list()))
    ax.set_title("Reasons: share of explained choices", loc="left", fontweight="bold")
    return figure


ADOPTION = {
    "approves": "approves of proposals",
    "approved": "its proposals are approved of",
    "wins": "its proposal is played",
    "signs": "signs the winner",
    "delegates": "delegates",
}
DESIGNS = {"nash": "cooperation is an equilibrium", "dominant": "cooperation is weakly dominant"}


def _mean(cells: Sequence[Cell]) -> tuple[Cell, Array]:
    return cells[0], np.mean([cell.payoffs for cell in cells], axis=0)


def _against(tensor: Array, population: Array) -> Array:
    values = tensor
    for _ in range(tensor.ndim - 1):
        values = values @ population
    return values


def _numbers(ax: Axes, panel: Array, *, always: bool = False) -> None:
    if max(panel.shape) > _MOST_NUMBERS and not always:
        return
    for row, column in product(range(panel.shape[0]), range(panel.shape[1])):
        if np.isfinite(panel[row, column]):
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7}
            halo = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.6}
            ax.text(column, row, f"{panel[row, column]:.2f}", bbox=halo, **style)


def _ticks(ax: Axes, rows: Iterable[str], columns: Iterable[str]) -> None:
    down, across = list(rows), list(columns)
    ax.set_yticks(range(len(down)), down, fontsize=7)
    ax.set_xticks(range(len(across)), across, fontsize=7, rotation=45, ha="right")
