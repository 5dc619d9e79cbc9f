"""Contrasts as a table, figures and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from labmates.stats.contrasts import Contrast
from labmates.stats.figures import GREY, Drawing, look, new_figure
from labmates.stats.intervals import notes
from labmates.stats.multiplicity import SIGNIFICANT, mark
from labmates.stats.tables import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_DRAWN: Final = 60
Found = Mapping[str, Sequence[Contrast]]
"""Contrasts by what they are within."""


def contrasts_table(contrasts: Found, remark: str) -> Table:
    """The table of all contrasts, a row for each pair of levels.

    Parameters
    ----------
    remark
        What the outcomes are.
    """
    rows = [_row(part, contrast) for part, some in contrasts.items() for contrast in some]
    columns = [Column(name, once=True) for name in ("within", "outcome", "factor")]
    columns += [Column("first"), Column("second", "minus"), Column("strata"), Column("difference_n", "runs")]
    columns += [Column("difference", form="+.3f", shows="both", marked="mark")]
    columns += [Column("p", form=".4f"), Column("p_holm", "p (Holm)", ".4f")]
    remarks = [
        remark,
        "Strata: equal conditions that a difference is the mean over; runs: the fewest in one of them. "
        f"‡: p (Holm) below {SIGNIFICANT}, adjusted for all pairs of a factor.",
        *notes(contrast.difference for some in contrasts.values() for contrast in some),
    ]
    return Table("contrasts", "Contrasts", columns, rows, remarks)


def _row(part: str, contrast: Contrast) -> dict[str, Any]:
    difference = contrast.difference
    leaves_out = (
        difference.low is not None and difference.high is not None and not difference.low <= 0 <= difference.high
    )
    return {
        "within": part,
        "outcome": contrast.outcome,
        "factor": contrast.factor,
        "first": contrast.first,
        "second": contrast.second,
        "strata": contrast.strata,
        **difference.row("difference"),
        "p": contrast.p,
        "p_holm": contrast.p_holm,
        "mark": mark(leaves_out, contrast.p_holm),
    }


def verdict(contrasts: Sequence[Contrast]) -> list[str]:
    """For each outcome, how far the levels of each factor are apart, the largest first."""
    sentences = []
    for outcome in dict.fromkeys(one.outcome for one in contrasts):
        largest: dict[str, Contrast] = {}
        for contrast in contrasts:
            before = largest.get(contrast.factor)
            if contrast.outcome == outcome and (
                before is None or abs(contrast.difference.value) > abs(before.difference.value)
            ):
                largest[contrast.factor] = contrast
        ordered = sorted(largest.values(), key=lambda one: -abs(one.difference.value))
        differences = [f"{one.factor} {one.difference.value:+.2f} ({one.first} minus {one.second})" for one in ordered]
        if differences:
            sentences.append(f"Largest difference in {outcome} by factor: {'; '.join(differences)}.")
    return sentences


def contrasts_drawing(contrasts: Found) -> Iterator[Drawing]:
    """A figure of the contrasts of each outcome over all runs."""
    for outcome in dict.fromkeys(one.outcome for one in contrasts["all"]):
        own = [one for one in contrasts["all"] if one.outcome == outcome][:_MOST_DRAWN]
        alt = f"Differences in {outcome} between levels of each factor, with intervals; the table has the numbers."
        name = f"contrasts-{outcome.replace(' ', '-')}"
        yield Drawing(name, f"Differences in {outcome}", alt, partial(contrasts_figure, own))


def contrasts_figure(contrasts: Sequence[Contrast]) -> Figure:
    """Draw differences with their intervals, a row for each pair of levels, factors by colour and marker."""
    factors = list(dict.fromkeys(one.factor for one in contrasts))
    figure, [ax] = new_figure(7.2, 1.0 + 0.24 * len(contrasts))
    for number, factor in enumerate(factors):
        places = [place for place, one in enumerate(contrasts) if one.factor == factor]
        values = [contrasts[place].difference.value for place in places]
        ends = [contrasts[place].difference.ends() for place in places]
        reach = [[value - low for value, (low, _) in zip(values, ends, strict=True)]]
        reach.append([high - value for value, (_, high) in zip(values, ends, strict=True)])
        colour, marker = look(number)
        ax.errorbar(
            values, places, xerr=reach, fmt=marker, color=colour, markersize=4, capsize=2, linewidth=1, label=factor
        )
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(contrasts)), [f"{one.first} − {one.second}" for one in contrasts], fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel(f"difference in {contrasts[0].outcome}, 95 % interval")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    return figure
