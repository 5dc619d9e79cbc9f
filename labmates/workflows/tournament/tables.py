"""Tables of tournaments: rates by structure, as in the super-additive paper's tables 3 to 8, and the hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from labmates.display_names import settings_apart, shown_settings
from labmates.stats.intervals import Estimate, notes
from labmates.stats.multiplicity import holm
from labmates.stats.tables import Column, Table
from labmates.stats.validity import Tally
from labmates.workflows.tournament.report import Group, Hypothesis, Rate, settings_by_group
from labmates.workflows.tournament.results import Tournament, standings

_SHOWN_SCORES = 36
_MODELS = ("model", "model_for")


def rates_table(groups: Sequence[Group]) -> Table:
    """The rates of every model under every structure with both intervals."""
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
            **{name.replace("_", " "): found for name, found in group.questions.items()},
        }
        what: dict[str, Any] = {
            "model": group.model,
            "among": ", ".join(group.among),
            "structure": group.structure.upper(),
        }
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
    adjusted = holm([one.p for one in hypotheses])
    rows = [
        {
            "model": one.model,
            **shown_settings(settings, differing),
            "hypothesis": f"{one.name} {one.measure}",
            **{name.upper(): value for name, value in one.rates.items()},
            **({"difference": None} if one.difference is None else one.difference.row("difference")),
            "p": one.p,
            "p_holm": p_holm,
            "reason": one.reason,
        }
        for one, settings, p_holm in zip(hypotheses, settings_of, adjusted, strict=True)
    ]
    columns = [
        Column("model", once=True),
        *(Column(name, once=True) for name in differing),
        Column("hypothesis"),
        *(Column(name) for name in ("RI", "GC", "SA") if any(name in row for row in rows)),
        Column("difference", form="+.3f", shows="both"),
        Column("p", form=".4f"),
        Column("p_holm", "p (Holm)", ".4f"),
        Column("reason", "why there is no test"),
    ]
    remarks = [
        "Difference: super-additive minus the larger of the others. p is one-sided, by bootstrap over tournaments; "
        "p (Holm) is adjusted for all tests of this table.",
        *notes(one.difference for one in hypotheses),
    ]
    return Table(
        "hypotheses", "More in super-additive tournaments than in either of the others?", columns, rows, remarks
    )


def scores_table(played: Sequence[Tournament]) -> Table:
    """The scores of players and teams in each tournament, and who won."""
    rows = [
        {"run": one.run_id, "structure": one.structure.upper(), **asdict(standing)}
        for one in played
        for standing in standings(one)
    ]
    columns = [Column("run", once=True), Column("structure", once=True), Column("player"), Column("team")]
    columns += [Column("model"), Column("points", form=","), Column("wins"), Column("team_points", form=",")]
    columns += [Column("team_wins"), Column("rounds"), Column("cooperation", form=".2f")]
    remarks = ["Wins: no player, or no team, has more points. Under RI players don't know about teams."]
    return Table("scores", "Scores", columns, rows, remarks, shown=_SHOWN_SCORES)
