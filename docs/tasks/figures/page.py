"""What the figures of the task pages share: size, type and a small file."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

BLUE, RED, ORANGE, GREEN, VIOLET = "#4c72b0", "#c44e52", "#dd8452", "#55a868", "#8172b3"


def four_panels() -> tuple[Figure, npt.NDArray[np.object_]]:
    """Return a figure with two rows of two panels."""
    mpl.rcParams.update({"font.size": 8, "axes.titlesize": 9, "axes.titlelocation": "left"})
    fig, axes = plt.subplots(2, 2, figsize=(9, 6.2), dpi=100, layout="constrained")
    return fig, axes


def open_frame(*axes: Axes) -> None:
    """Take away the lines at the top and on the right."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)


def save(fig: Figure, script: str) -> None:
    """Write the figure beside the page, under the name of the `script` that drew it."""
    drawn = io.BytesIO()
    fig.savefig(drawn)
    # Few colours are in it: with a palette the file is much smaller.
    palette = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    palette.save(Path(script).parents[1] / f"{Path(script).stem}.png", optimize=True)
