"""The results of tournaments by model, structure and settings: rates with two intervals, curves, behaviour, hypotheses.

Rates have two intervals. One is over players and replicates, as in the paper; it treats players of one tournament as
independent, which they are not. The other is over tournaments, which are independent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate, chain
from statistics import fmean
from typing import Any, Final

from labmates.games.iterated.match import Action
from labmates.games.iterated.questions import QUESTIONS
from labmates.stats.advantages import Advantage, advantage
from labmates.stats.domains import SHARE
from labmates.stats.intervals import Estimate, mean, notes
from labmates.stats.multiplicity import holm
from labmates.stats.tables import Column, P, Table
from labmates.stats.validity import Tally, total
from labmates.util.display_names import labels_apart, order_of_settings, settings_apart, shown_settings
from labmates.util.grouping import grouped
from labmates.workflows.tournament.results import MEASURES, Measure, Tournament, answered, standings

STRUCTURES: Final = {"ri": "repeated interaction", "gc": "group competition", "sa": "super-additive"}
RATES: Final[Mapping[str, Measure]] = {
    "cooperation": MEASURES["cooperation"],
    "one-shot cooperation": MEASURES["one_shot_cooperation"],
    "within teams": MEASURES["within_team_cooperation"],
    "between teams": MEASURES["between_team_cooperation"],
    "right answers": MEASURES["comprehension"],
    **{question.replace("_", " "): answered(question) for question in QUESTIONS},
}
"""The reported rates of a player; those of teams have no meaning without teams."""
_OF_TEAMS: Final = ("within teams", "between teams")
HYPOTHESES: Final = {"H1": "cooperation", "H2": "one-shot cooperation"}
_TOTAL: Final = "rounds_per_player"
_FREE: Final = ("structure", _TOTAL, "prices")
"""Fields in which compared tournaments may differ; a player's rounds follow from the structure."""
_MODELS: Final = ("model", "model_for")
_SHOWN_SCORES: Final = 36
_SIGNIFICANT: Final = 0.05


@dataclass(frozen=True)
class Rate:
    """A rate, as mean over players and replicates."""

    over_players: Estimate  # the mean of all players, with an interval that treats them as independent
    over_tournaments: Estimate  # the mean of the tournaments' means

    @property
    def value(self) -> float:
        """The mean over players."""
        return self.over_players.value


@dataclass(frozen=True)
class Group:
    """The players of one model in tournaments of one structure."""

    structure: str
    model: str
    among: tuple[str, ...]  # all models in these tournaments
    settings: Mapping[str, Any]  # the other settings; includes a player's rounds if they vary within a structure
    tournaments: tuple[Tournament, ...]

    def _players(self, tournament: Tournament) -> list[str]:
        return sorted(player for player, name in tournament.models.items() if name == self.model)

    @property
    def players(self) -> list[tuple[Tournament, str]]:
        """Its players in each tournament."""
        return [(tournament, player) for tournament in self.tournaments for player in self._players(tournament)]

    def values(self, measure: Measure) -> list[list[float]]:
        """A measure of its players, by tournament."""
        of_all = ([measure(each, player) for player in self._players(each)] for each in self.tournaments)
        return [[value for value in values if value is not None] for values in of_all]

    @cached_property
    def rates(self) -> Mapping[str, Rate]:
        """Its rates by name (`RATES`), without those that had no occasion."""
        named = (name for name in RATES if self.structure != "ri" or name not in _OF_TEAMS)
        return {name: rate for name in named if (rate := rate_of(self.values(RATES[name]))) is not None}

    def curve(self, moves: Callable[[Tournament, str], Sequence[Action]]) -> list[Estimate]:
        """The mean over players of the cooperative share of their moves so far, move by move."""
        shares = [
            [count / at for at, count in enumerate(accumulate(int(move == "C") for move in moves(*who)), start=1)]
            for who in self.players
        ]
        longest = max(map(len, shares), default=0)
        return [mean([own[at] for own in shares if len(own) > at], SHARE) for at in range(longest)]

    @cached_property
    def profiles(self) -> list[dict[str, Any]]:
        """Traits of each player, and its likeness to strategies; None without an occasion."""
        rows = []
        for tournament, player in self.players:
            profile = tournament.profile([player])
            likeness = {f"like {name}": value for name, value in profile.affinity.items()}
            rows.append({"player": f"{tournament.run_id} {player}", **profile.traits, **likeness})
        return rows

    @property
    def mean_profile(self) -> dict[str, Any]:
        """The means of `profiles`, over players with an occasion."""
        columns = {name: [row[name] for row in self.profiles] for name in self.profiles[0] if name != "player"}
        known = {name: [value for value in column if value is not None] for name, column in columns.items()}
        return {"player": "mean", **{name: fmean(values) if values else None for name, values in known.items()}}

    @property
    def failures(self) -> Tally:
        """Tally of the decisions of its players."""
        return total(each.failures.get(self.model, Tally(0, 0)) for each in self.tournaments)


def compared(tournaments: Sequence[Tournament]) -> list[list[Group]]:
    """The groups of each model and setting, by structure, in the order of `order_of_settings`."""
    each = [
        [Group(name, model, among, settings, members) for name, members in by_structure.items() if members]
        for same, free in _alike(tournaments)
        for settings in [{name: value for name, value in same[0].condition.items() if name not in free}]
        for by_structure in [{name: tuple(each for each in same if each.structure == name) for name in STRUCTURES}]
        for among in [tuple(dict.fromkeys(same[0].models.values()))]
        for model in among
    ]
    conditions = [{**groups[0].settings, "model": groups[0].model} for groups in each]
    order = order_of_settings(conditions, ["model", *settings_apart(conditions, _MODELS)])
    return [each[place] for place in order]


def rate_of(values: Sequence[Sequence[float]]) -> Rate | None:
    """A rate from the values of players, by tournament; None without values."""
    by_tournament = [list(players) for players in values if players]
    if not by_tournament:
        return None
    return Rate(mean([*chain(*by_tournament)], SHARE), mean([fmean(players) for players in by_tournament], SHARE))


def _alike(
    tournaments: Sequence[Tournament], free: tuple[str, ...] = _FREE
) -> Iterator[tuple[list[Tournament], tuple[str, ...]]]:
    """Groups of tournaments that differ only in these fields and the seed, with these fields."""

    def key(tournament: Tournament) -> str:
        return json.dumps({k: v for k, v in tournament.condition.items() if k not in free}, sort_keys=True, default=str)

    for same in grouped((key(tournament), tournament) for tournament in tournaments).values():
        totals = {(tournament.structure, tournament.condition.get(_TOTAL)) for tournament in same}
        if _TOTAL in free and len(totals) > len({structure for structure, _ in totals}):
            # Rounds per player vary within a structure, so they were chosen.
            yield from _alike(same, tuple(name for name in free if name != _TOTAL))
        else:
            yield same, free


def settings_of(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The settings of groups, with the models that one plays among if these vary."""
    among: dict[str, set[tuple[str, ...]]] = {}
    for group in groups:
        among.setdefault(group.model, set()).add(group.among)
    varies = any(len(distinct) > 1 for distinct in among.values())
    return [{**({"among": group.among} if varies else {}), **group.settings} for group in groups]


def labels_of(groups: Sequence[Group]) -> list[str]:
    """A label of each group, from the settings that differ and the models that it plays among."""
    return labels_apart(settings_of(groups), _MODELS)


def rates_table(groups: Sequence[Group]) -> Table:
    """The rates of every model in every structure, with both intervals (the paper's tables 3 to 8)."""
    settings = settings_of(groups)
    differing = settings_apart(settings, _MODELS)
    rows = []
    for group, own in zip(groups, settings, strict=True):
        what: dict[str, Any] = {"model": group.model, "among": ", ".join(group.among)}
        what |= {"structure": group.structure.upper(), **shown_settings(own, differing)}
        what |= {"failed_rate": group.failures.rate, **asdict(group.failures)}
        for name, rate in group.rates.items():
            row = rate.over_players.row("mean") | rate.over_tournaments.row("wide")
            counts = {"players": rate.over_players.n, "tournaments": rate.over_tournaments.n}
            rows.append({**what, "rate": name, **row, **counts})
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
    every = [rate for group in groups for rate in group.rates.values()]
    remarks = [
        "RI: repeated interaction, GC: group competition, SA: super-additive. The first interval is over players and "
        "replicates, as in the paper; the second over tournaments, whose players are not independent.",
        *(f"Over players: {note}" for note in notes(rate.over_players for rate in every)),
        *(f"Over tournaments: {note}" for note in notes(rate.over_tournaments for rate in every)),
    ]
    for model in dict.fromkeys(group.model for group in groups):
        tally = total(group.failures for group in groups if group.model == model)
        if tally.failed:
            told = f"{model}: {tally.failed} of {tally.asked} decisions failed"
            remarks.append(f"{told}; the matches were forfeited, or plans not renewed.")
    return Table("rates", "Cooperation in tournaments", columns, rows, remarks)


def _tested(groups: Sequence[Group], measure: Measure) -> tuple[dict[str, float], Advantage | None, str]:
    """Means of tournaments by structure, the advantage of super-additive ones, and why there is no test of it."""
    means = {
        group.structure: of_tournaments
        for group in groups
        if (of_tournaments := [fmean(values) for values in group.values(measure) if values])
    }
    rates = {structure: fmean(values) for structure, values in means.items()}
    if missing := [structure for structure in STRUCTURES if len(means.get(structure, ())) < 2]:
        return rates, None, f"needs at least two tournaments of each structure; too few of: {', '.join(missing)}"
    gain = advantage(means["sa"], [means["ri"], means["gc"]], SHARE.difference())
    return rates, gain, "all tournaments of each structure are equal" if gain.p is None else ""


def hypotheses_table(compared: Sequence[Sequence[Group]]) -> Table:
    """Tests for each model and setting: a rate in super-additive tournaments against the larger of both others."""
    settings = settings_of([groups[0] for groups in compared])
    differing = settings_apart(settings, _MODELS)
    rows: list[dict[str, Any]] = []
    gains: list[Advantage | None] = []
    for groups, own in zip(compared, settings, strict=True):
        for name, rate in HYPOTHESES.items():
            means, gain, reason = _tested(groups, RATES[rate])
            row = {"model": groups[0].model, **shown_settings(own, differing), "hypothesis": f"{name} {rate}"}
            row |= {structure.upper(): value for structure, value in means.items()}
            row |= {"difference": None} if gain is None else gain.difference.row("difference")
            rows.append({**row, "p": None if gain is None else gain.p, "reason": reason})
            gains.append(gain)
    for row, adjusted in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = adjusted
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
        *notes(None if gain is None else gain.difference for gain in gains),
    ]
    return Table("hypotheses", "Is there more cooperation in super-additive tournaments?", columns, rows, remarks)


def answers(hypotheses: Table) -> list[str]:
    """A sentence on each test of a table of hypotheses."""
    sentences = []
    settings = [column.key for column in hypotheses.columns if column.once]
    for row in hypotheses.rows:
        who = ", ".join(str(row[name]) for name in settings if len({str(each[name]) for each in hypotheses.rows}) > 1)
        what = f"{row['hypothesis'].partition(' ')[2]} in super-additive tournaments{who and f' ({who})'}"
        cell = Column("difference", form="+.3f", shows="both").cell(row)
        p = f"p = {Column('p_holm', 'p (Holm)', P).cell(row)}".replace("= <", "<")
        if row["p_holm"] is None:
            sentences.append(f"No test of more {what}: {row['reason']}.")
        elif row["p_holm"] < _SIGNIFICANT:
            sentences.append(f"More {what} than in both others: {cell}, {p}.")
        else:
            sentences.append(f"Can't tell whether there is more {what}: {cell}, {p}.")
    return sentences


def behaviour_table(groups: Sequence[Group], *, single: bool) -> Table:
    """Traits and likeness to known strategies, as group means and, with `single`, for each player."""
    rows = [
        {"model": group.model, "structure": STRUCTURES[group.structure], **profile}
        for group in groups
        for profile in (group.mean_profile, *(group.profiles if single else ()))
    ]
    measured = [name for name in rows[0] if name not in ("model", "structure", "player")]
    columns = [Column("model", once=True), Column("structure", once=True), Column("player")]
    return Table("behaviour", "Behaviour", [*columns, *(Column(name, form=".2f") for name in measured)], rows)


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
