"""Tables of tournaments: rates by structure, as in the super-additive paper's tables 3 to 8, and the hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labmates.analysis.tables import Column, Table, settings_apart, shown_settings
from labmates.analysis.tournament_report import Group, Hypothesis, Rate

_MODELS = ("model", "model_for")


def rates_table(groups: Sequence[Group]) -> Table:
    """Return the rates of every model under every structure with both intervals."""
    rows: list[dict[str, Any]] = []
    differing = settings_apart([group.settings for group in groups], _MODELS)
    for group in groups:
        rates: dict[str, Rate | None] = {
            "cooperation": group.cooperation,
            "one-shot cooperation": group.one_shot,
            "within teams": group.within,
            "between teams": group.between,
            "right answers": group.comprehension,
            **{name.replace("_", " "): found for name, found in group.questions.items()},
        }
        what = {"model": group.model, "among": ", ".join(group.among), "structure": group.structure.upper()}
        what |= shown_settings(group.settings, differing)
        for name, one in rates.items():
            if one is None:
                continue
            row: dict[str, Any] = {**what, "rate": name, "mean": one.value, "mean_low": one.low, "mean_high": one.high}
            row |= {"wide": one.value, "wide_low": one.wide_low, "wide_high": one.wide_high}
            rows.append({**row, "players": one.players, "tournaments": one.tournaments})
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
    ]
    notes = [
        "RI: repeated interaction, GC: group competition, SA: super-additive. The first interval is Student's t over "
        "players and replicates, as the paper has it; the second is by bootstrap over tournaments, whose players are "
        "not independent."
    ]
    failed, decisions = sum(group.failed for group in groups), sum(group.decisions for group in groups)
    if failed:
        notes.append(f"{failed} of {decisions} decisions could not be used.")
    return Table("rates", "Cooperation in tournaments", columns, rows, notes)


def hypotheses_table(found: Sequence[Hypothesis]) -> Table:
    """Return the tests of both hypotheses."""
    differing = settings_apart([one.settings for one in found], _MODELS)
    rows = [
        {
            "model": one.model,
            **shown_settings(one.settings, differing),
            "hypothesis": f"{one.name} {one.measure}",
            **{name.upper(): value for name, value in one.rates.items()},
            "difference": one.difference,
            "difference_low": one.low,
            "difference_high": one.high,
            "p": one.p,
            "reason": one.reason,
        }
        for one in found
    ]
    columns = [
        Column("model", once=True),
        *(Column(name, once=True) for name in differing),
        Column("hypothesis"),
        *(Column(name) for name in ("RI", "GC", "SA") if any(name in row for row in rows)),
        Column("difference", form="+.3f", shows="both"),
        Column("p", form=".4f"),
        Column("reason", "why there is no test"),
    ]
    notes = [
        "Difference: super-additive minus the larger of the others. p is one-sided, by bootstrap over tournaments."
    ]
    return Table("hypotheses", "More in super-additive tournaments than in either of the others?", columns, rows, notes)
