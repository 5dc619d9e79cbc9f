"""Tables of tournaments, as in the super-additive paper's tables 3 to 8, and figures, as in its figures 2 to 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from labmates.games.iterated.questions import QUESTIONS
from labmates.stats.figures import COLOURS, GREY, name_cells, new_figure, write_numbers
from labmates.stats.intervals import Estimate, notes
from labmates.stats.multiplicity import holm
from labmates.stats.tables import Column, P, Table
from labmates.stats.validity import Tally
from labmates.util.display_names import settings_apart, shown_settings
from labmates.workflows.tournament.report import (
    STRUCTURES,
    Group,
    Hypothesis,
    Point,
    Rate,
    labels_of,
    settings_by_group,
)
from labmates.workflows.tournament.results import Tournament, standings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOUR = dict(zip(STRUCTURES, COLOURS, strict=False))
_SHOWN_SCORES = 36
_LINE = 0.15
"""Height of a line of a title in inches."""
_MODELS = ("model", "model_for")


def cooperation_figure(groups: Sequence[Group]) -> Figure:
    """The rate of cooperation over the rounds played (figure 2)."""
    return _curves(groups, lambda group: group.curve, "rounds played", "moves so far that cooperate")


def one_shot_figure(groups: Sequence[Group]) -> Figure:
    """The rate of one-shot cooperation over the matches played (figure 3)."""
    return _curves(groups, lambda group: group.one_shot_curve, "matches played", "first moves so far that cooperate")


def teams_figure(groups: Sequence[Group]) -> Figure | None:
    """Cooperation within and between teams (figure 4); None if no tournament has both kinds of matches."""
    both = [group for group in groups if group.within is not None and group.between is not None]
    if not both:
        return None
    titles = _titles(both, 22)
    figure, [axes] = new_figure(1.8 + 1.6 * len(both), 2.9 + _LINE * _lines(titles))
    for place, group in enumerate(both):
        for offset, rate, colour in ((-0.2, group.within, COLOURS[0]), (0.2, group.between, COLOURS[1])):
            label = ("within teams" if offset < 0 else "between teams") if place == 0 else None
            _bar(axes, place + offset, rate, colour, 0.38, label)
    axes.set_xticks(range(len(both)), titles)
    _share(axes, "moves that cooperate")
    figure.legend(loc="outside upper center", ncols=2, fontsize=8, frameon=False)
    return figure


def comprehension_figure(groups: Sequence[Group]) -> Figure | None:
    """The share of right answers by question (figure 5); None without questions."""
    asked = [group for group in groups if group.questions]
    if not asked:
        return None
    rates = [[group.questions.get(question) for question in QUESTIONS] for group in asked]
    ends = [
        [(None, None) if rate is None else (rate.over_players.low, rate.over_players.high) for rate in row]
        for row in rates
    ]
    values = np.array([[np.nan if rate is None else rate.value for rate in row] for row in rates])
    bounds = np.array(ends, dtype=float)
    titles = _titles(asked, 40)
    figure, [axes] = new_figure(3.0 + 0.6 * len(QUESTIONS), 1.4 + (0.1 + _LINE * _lines(titles)) * len(asked))
    image = axes.imshow(values, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    write_numbers(axes, values, [bounds[..., 0], bounds[..., 1]])
    name_cells(axes, titles, (name.replace("_", " ") for name in QUESTIONS))
    figure.colorbar(image, ax=axes, label="right answers")
    return figure


def _curves(groups: Sequence[Group], points: Callable[[Group], Sequence[Point]], x: str, y: str) -> Figure:
    from matplotlib.ticker import MaxNLocator

    cells = [(group.model, group.among, str(sorted(group.settings.items()))) for group in groups]
    rows = list(dict.fromkeys(cells))
    columns = [name for name in STRUCTURES if any(group.structure == name for group in groups)]
    titles = _titles(groups, 40)
    # A panel keeps its size below a title of many lines.
    height = 0.5 + (1.8 + _LINE * _lines(titles)) * len(rows)
    figure, axes = new_figure(0.6 + 2.6 * len(columns), height, rows=len(rows), columns=len(columns))
    for axis in axes:
        axis.set_visible(False)
    for group, cell, title in zip(groups, cells, titles, strict=True):
        axis = axes[rows.index(cell) * len(columns) + columns.index(group.structure)]
        axis.set_visible(True)
        curve = points(group)
        at, colour = [point.at for point in curve], _COLOUR[group.structure]
        low = [point.value if point.low is None else point.low for point in curve]
        high = [point.value if point.high is None else point.high for point in curve]
        axis.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        axis.plot(at, [point.value for point in curve], color=colour, linewidth=1.5, marker="." if len(at) < 12 else "")
        axis.set_title(title, loc="left", fontsize=8)
        axis.set_xlabel(x)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        _share(axis, y if group.structure == columns[0] else "")
    return figure


def _bar(axes: Axes, at: float, rate: Rate | None, colour: str, width: float, label: str | None) -> None:
    if rate is None:
        return
    axes.bar(at, rate.value, width, color=colour, label=label)
    low, high = rate.over_players.low, rate.over_players.high
    if low is not None and high is not None:
        errors = [[rate.value - low], [high - rate.value]]
        axes.errorbar(at, rate.value, yerr=errors, color="black", capsize=2, linewidth=1)


def _share(axes: Axes, label: str) -> None:
    axes.set_ylim(0, 1.02)
    axes.axhline(0.5, color=GREY, linewidth=0.5, linestyle=":")
    axes.set_ylabel(label)


def _titles(groups: Sequence[Group], width: int = 200) -> list[str]:
    """A title for each group: model, varying settings, structure; in lines of at most `width` letters."""
    labels = labels_of(groups)
    return [
        "\n".join(
            line
            for part in (
                ", ".join(filter(None, (group.model, label))),
                f"{group.structure.upper()}: {STRUCTURES[group.structure]}",
            )
            for line in wrap(part, width)
        )
        for group, label in zip(groups, labels, strict=True)
    ]


def _lines(titles: Sequence[str]) -> int:
    return max(title.count("\n") + 1 for title in titles)


def rates_table(groups: Sequence[Group]) -> Table:
    """The rates of every model in every structure, with both intervals."""
    rows: list[dict[str, Any]] = []
    players: list[Estimate] = []
    tournaments: list[Estimate] = []
    settings_of = settings_by_group(groups)
    differing = settings_apart(settings_of, _MODELS)
    for group, settings in zip(groups, settings_of, strict=True):
        rates: dict[str, Rate | None] = {
            "cooperation": group.cooperation,
            "one-shot cooperation": group.one_shot,
            "within teams": group.within,
            "between teams": group.between,
            "right answers": group.comprehension,
            **{name.replace("_", " "): rate for name, rate in group.questions.items()},
        }
        what: dict[str, Any] = {"model": group.model, "among": ", ".join(group.among)}
        what["structure"] = group.structure.upper()
        what |= shown_settings(settings, differing)
        what |= {"failed_rate": group.failures.rate, "failed": group.failures.failed, "asked": group.failures.asked}
        for name, value in rates.items():
            if value is None:
                continue
            row: dict[str, Any] = {**what, "rate": name}
            row |= value.over_players.row("mean") | value.over_tournaments.row("wide")
            rows.append({**row, "players": value.over_players.n, "tournaments": value.over_tournaments.n})
            players.append(value.over_players)
            tournaments.append(value.over_tournaments)
    columns = [
        Column("model", once=True),
        *(Column(name, once=True) for name in differing),
        Column("structure", once=True),
        Column("rate", " "),
        Column("mean", "Mean"),
        Column("mean", shows="interval"),
        Column("wide", "over tournaments", shows="interval"),
        Column("players"),
        Column("tournaments"),
        Column("failed_rate", "failed decisions", ".1%", once=True),
    ]
    remarks = [
        "RI: repeated interaction, GC: group competition, SA: super-additive. The first interval is over players and "
        "replicates, as in the paper; the second over tournaments, whose players are not independent.",
        *(f"Over players: {note}" for note in notes(players)),
        *(f"Over tournaments: {note}" for note in notes(tournaments)),
    ]
    failed: dict[str, Tally] = {}
    for group in groups:
        failed[group.model] = failed.get(group.model, Tally(0, 0)) + group.failures
    remarks += [
        f"{model}: {tally.failed} of {tally.asked} decisions failed; the matches were forfeited, or plans not renewed."
        for model, tally in failed.items()
        if tally.failed
    ]
    return Table("rates", "Cooperation in tournaments", columns, rows, remarks)


def hypotheses_table(hypotheses: Sequence[Hypothesis]) -> Table:
    """The tests of both hypotheses."""
    settings_of = settings_by_group(hypotheses)
    differing = settings_apart(settings_of, _MODELS)
    adjusted = holm([hypothesis.p for hypothesis in hypotheses])
    rows = [
        {
            "model": hypothesis.model,
            **shown_settings(settings, differing),
            "hypothesis": f"{hypothesis.name} {hypothesis.measure}",
            **{name.upper(): value for name, value in hypothesis.rates.items()},
            **({"difference": None} if hypothesis.difference is None else hypothesis.difference.row("difference")),
            "p": hypothesis.p,
            "p_holm": p_holm,
            "reason": hypothesis.reason,
        }
        for hypothesis, settings, p_holm in zip(hypotheses, settings_of, adjusted, strict=True)
    ]
    columns = [
        Column("model", once=True),
        *(Column(name, once=True) for name in differing),
        Column("hypothesis"),
        *(Column(name) for name in ("RI", "GC", "SA") if any(name in row for row in rows)),
        Column("difference", form="+.3f", shows="both"),
        Column("p", form=P),
        Column("p_holm", "p (Holm)", P),
        Column("reason", "why there is no test"),
    ]
    remarks = [
        "Difference: super-additive minus the larger of the others. p is one-sided, by bootstrap over tournaments; "
        "p (Holm) is adjusted for all tests of this table.",
        *notes(hypothesis.difference for hypothesis in hypotheses),
    ]
    return Table("hypotheses", "Is there more cooperation in super-additive tournaments?", columns, rows, remarks)


def scores_table(played: Sequence[Tournament]) -> Table:
    """The scores of players and teams in each tournament, with the winners."""
    rows = [
        {"run": tournament.run_id, "structure": tournament.structure.upper(), **asdict(standing)}
        for tournament in played
        for standing in standings(tournament)
    ]
    columns = [Column("run", once=True), Column("structure", once=True), Column("player"), Column("team")]
    columns += [Column("model"), Column("points", form=","), Column("wins"), Column("team_points", form=",")]
    columns += [Column("team_wins"), Column("rounds"), Column("cooperation", form=".2f")]
    remarks = ["Wins: no player, or no team, has more points. Under RI players don't know about teams."]
    return Table("scores", "Scores", columns, rows, remarks, shown=_SHOWN_SCORES)
