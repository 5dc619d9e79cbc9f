"""The necessity of a team: runs of the arms of divided evidence, paired by seed, over the split.

The necessity index of a finding is (team − restricted) / (oracle − restricted): 0 if the team is no better than one
agent with only the readings, 1 if it equals one agent with all instruments. It is undefined if the oracle is no better
than the restricted agent. Runs of one arm, seed and condition are averaged first; a seed counts if all three arms have
it. An unreadable report has accuracy 0 (intention to treat). The index of the same seats without contact,
(mute − restricted) / (oracle − restricted), is over the seeds with the arm mute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from labmates.records.run import ENDED
from labmates.stats import intervals
from labmates.stats.domains import SHARE
from labmates.stats.figures import GREY, Drawing, add_legend_beside, error_bars, look, new_figure
from labmates.stats.intervals import LEVEL, Estimate, notes
from labmates.stats.paired import Pair, difference
from labmates.stats.tables import Column, Table
from labmates.util.grouping import grouped
from labmates.workflows.science.lab.condition import TEAM_FIELDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from labmates.workflows.science.analyses.judged import Judged

MUTE: Final = "mute"
ARMS: Final = ("restricted", "team", "oracle")
_ALL_ARMS: Final = ("restricted", MUTE, "team", "oracle")
_LABELS: Final = {
    "restricted": "one agent, readings alone",
    MUTE: "team that can't talk",
    "team": "team",
    "oracle": "one agent, all data",
}
ALL: Final = "all findings"
LEAST_GAIN: Final = 0.02
"""The index is undefined if the oracle's gain over the restricted agent is smaller."""
_HEADS: Final = ("task", "difficulty", "model", "budget", "team")
_OF_TEAMS = {*TEAM_FIELDS, "organisation", "solo", "arm", "evidence"}
BETTER, WORSE, CANT_TELL = "team is better", "one agent is better", "can't tell"
_WORDS: Final = {
    BETTER: "a team beats one agent that holds only the readings",
    WORSE: "one agent that holds only the readings beats a team",
    CANT_TELL: "the runs can't tell whether a team beats one agent that holds only the readings",
}


@dataclass(frozen=True)
class Play:
    """Result of a run of one arm."""

    settings: str  # parameters common to all arms of a comparison, as JSON
    split: float
    team: str  # organisation and size of the team; empty for a single agent
    arm: str
    seed: int
    credit: Mapping[str, float]  # accuracy over `ALL` findings, and the credit of each
    spent: float  # dollars
    readable: bool


@dataclass(frozen=True)
class Necessity:
    """A comparison of a team with both single-agent arms, at one split, for one finding."""

    # Condition, team, split, finding, number of common seeds, mean credit and dollars of each arm, as a table's row.
    head: Mapping[str, Any]
    # Team minus restricted by seed, and the mean with its interval over seeds: simultaneous for all splits, teams and
    # conditions, or for all findings of these.
    gains: Sequence[Pair]
    gain: Estimate
    indices: Mapping[str, Estimate | None]  # by arm; None if the oracle is no better than the restricted agent
    credits: Mapping[str, Sequence[float]]  # by arm, the credit of each seed

    @property
    def verdict(self) -> str:
        """The verdict on the team against one agent with the readings."""
        low, high = self.gain.low, self.gain.high
        if low is None or high is None or low <= 0 <= high:
            return CANT_TELL
        return BETTER if low > 0 else WORSE

    def row(self) -> dict[str, Any]:
        """Its values as a table's row."""
        undefined = {"index": None, "index_reason": "undefined"}
        index, mute = self.indices["team"], self.indices.get(MUTE)
        estimates = {**self.gain.row("gain"), **(index.row("index") if index else undefined)}
        return {**self.head, **estimates, **(mute.row("mute_index") if mute else {}), "verdict": self.verdict}


def plays(judged: Sequence[Judged]) -> Iterator[Play]:
    """Ended runs with divided evidence and a score of the verified judge."""
    teams = [each.run.condition for each in judged if each.run.condition.get("arm", "team") in ("team", MUTE)]
    told = [name for name in TEAM_FIELDS if name == "team_size" or len({str(each.get(name)) for each in teams}) > 1]
    for each in judged:
        condition, evidence = each.run.condition, str(each.run.condition.get("evidence", ""))
        scores = [s for s in each.scores if (s.judge, s.metric) == ("verified", "accuracy") and s.value is not None]
        if each.run.status in ENDED and evidence.startswith("split:") and scores:
            arm = str(condition.get("arm", "team"))
            credit = {entry["finding"]: float(entry["credit"]) for entry in scores[-1].details.get("credits", [])}
            settings = {name: value for name, value in condition.items() if name not in _OF_TEAMS}
            yield Play(
                json.dumps(settings, sort_keys=True),
                float(evidence.removeprefix("split:")),
                _team(condition, told) if arm in ("team", MUTE) else "",
                arm,
                each.run.seed,
                {ALL: float(scores[-1].value or 0.0), **credit},
                float((each.run.budget or {}).get("spent", 0.0)),
                each.readable,
            )


def _team(condition: Mapping[str, Any], told: Sequence[str]) -> str:
    """The organisation's name, and these parameters of its team."""
    organisation = condition.get("organisation", "pipeline")
    name = organisation["name"] if isinstance(organisation, Mapping) else organisation
    more = [f"{field.replace('_', ' ')} {condition[field]}" for field in told if field in condition]
    return ", ".join([str(name), *more]).replace("team size", "size")


def necessity(played: Sequence[Play]) -> list[Necessity]:
    """Comparisons of the arms by condition, team and split, over all findings and for each."""
    compared: list[Necessity] = []
    cells_of = grouped(((play.settings, play.split), play) for play in played)
    order = list(dict.fromkeys(settings for settings, _ in cells_of))
    for (settings, split), mine in sorted(cells_of.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        for team in dict.fromkeys(play.team for play in mine if play.arm == "team"):
            cells = grouped(((play.arm, play.seed), play) for play in mine if play.team in ("", team))
            compared += _compared({**json.loads(settings), "team": team, "split": split}, cells)
    domain, overall = SHARE.difference(), [each.head["finding"] == ALL for each in compared]
    levels = {is_all: 1 - (1 - LEVEL) / max(1, overall.count(is_all)) for is_all in (True, False)}
    return [
        replace(each, gain=difference(each.gains, domain, (), levels[is_all]))
        for each, is_all in zip(compared, overall, strict=True)
    ]


def _compared(condition: Mapping[str, Any], cells: Mapping[tuple[str, int], Sequence[Play]]) -> Iterator[Necessity]:
    seeds = [seed for seed in sorted({seed for _, seed in cells}) if all((arm, seed) in cells for arm in ARMS)]
    over = {arm: [seed for seed in seeds if (arm, seed) in cells] for arm in _ALL_ARMS}
    over = {arm: mine for arm, mine in over.items() if mine}
    head = {name: condition.get(name) for name in (*_HEADS, "split")}
    for finding in dict.fromkeys(name for some in cells.values() for play in some for name in play.credit if seeds):
        credit = {
            (arm, seed): fmean(play.credit.get(finding, 0.0) for play in cells[arm, seed])
            for arm in over
            for seed in over[arm]
        }
        spent = {arm: fmean(fmean(play.spent for play in cells[arm, s]) for s in mine) for arm, mine in over.items()}
        credits = {arm: [credit[arm, seed] for seed in mine] for arm, mine in over.items()}
        means = {f"{arm}_credit": fmean(values) for arm, values in credits.items()}
        gains = [
            Pair("", str(seed), "", credit["team", seed] - credit["restricted", seed], is_read)
            for seed in seeds
            for is_read in [all(play.readable for arm in ARMS for play in cells[arm, seed])]
        ]
        indices: dict[str, Estimate | None] = {
            arm: index_of(*([credit[name, seed] for seed in over[arm]] for name in ("restricted", arm, "oracle")))
            for arm in ("team", MUTE)
            if arm in over
        }
        dollars = {f"{arm}_spent": value for arm, value in spent.items()}
        row = {**head, "finding": finding, "seeds": len(seeds), **means, **dollars}
        yield Necessity(row, gains, difference(gains, SHARE.difference()), indices, credits)


def index_of(restricted: Sequence[float], team: Sequence[float], oracle: Sequence[float]) -> Estimate | None:
    """The necessity index with its jackknife interval over seeds; None if undefined."""
    value = _ratio(restricted, team, oracle)
    if value is None:
        return None
    places = range(len(team))
    left_out = [
        _ratio(*([*arm[:place], *arm[place + 1 :]] for arm in (restricted, team, oracle)))
        for place in (places if len(team) > 1 else ())
    ]
    interval = intervals.clusters(value, [float("nan") if ratio is None else ratio for ratio in left_out])
    # The texts of the interval speak of models; here the clusters are seeds.
    return replace(
        interval, method=interval.method.replace("model", "seed"), reason=interval.reason.replace("model", "seed")
    )


def _ratio(restricted: Sequence[float], team: Sequence[float], oracle: Sequence[float]) -> float | None:
    gain = fmean(oracle) - fmean(restricted)
    return (fmean(team) - fmean(restricted)) / gain if gain >= LEAST_GAIN else None


def necessity_table(compared: Sequence[Necessity], name: str, title: str) -> Table:
    """A table of index, accuracy, cost and verdict over the split."""
    arms = [arm for arm in _ALL_ARMS if any(f"{arm}_credit" in each.head for each in compared)]
    columns = [
        *(Column(name, once=True) for name in _HEADS),
        Column("split", form="g"),
        *map(Column, ("finding", "seeds")),
    ]
    columns += [Column(f"{arm}_credit", arm, form=".3f", group="accuracy") for arm in arms]
    columns += [Column("gain", "team − restricted", form="+.3f", shows="both")]
    columns += [Column("index", "necessity index", form=".2f", shows="both")]
    columns += [Column("mute_index", "index of mute", form=".2f", shows="both")] * (MUTE in arms)
    columns += [Column(f"{arm}_spent", arm, form=".3f", group="dollars") for arm in arms]
    note = (
        "The necessity index is (team − restricted) / (oracle − restricted), undefined where the oracle gains less "
        f"than {LEAST_GAIN:g}; intervals are over seeds, on which all arms are paired. Those of team − restricted are "
        "simultaneous for all rows."
    )
    rows = [each.row() for each in compared]
    return Table(name, title, [*columns, Column("verdict")], rows, [note, *notes(each.gain for each in compared)])


def verdicts(compared: Sequence[Necessity]) -> list[str]:
    """Sentences on the splits at which a team beats one agent, by task, team and model."""
    splits: dict[str, dict[str, list[str]]] = {verdict: {} for verdict in _WORDS}
    for each in compared:
        place = "{task} (${budget}, {team}, {model})".format(**each.head)
        gain = Column("gain", "team − restricted", "+.2f", "both").cell(each.gain.row("gain"))
        splits[each.verdict].setdefault(place, []).append(f"{each.head['split']:g} ({gain})")
    told = {
        verdict: "; ".join(f"{place} at split {', '.join(at)}" for place, at in places.items())
        for verdict, places in splits.items()
    }
    return [f"{places}: {_WORDS[verdict]}." for verdict, places in told.items() if places]


def arm_figures(compared: Sequence[Necessity]) -> Iterator[Drawing]:
    """Figures by condition and team: accuracy of each arm, and team minus restricted, over the split."""
    overall = [each for each in compared if each.head["finding"] == ALL]
    for number, mine in enumerate(grouped((tuple(map(each.head.get, _HEADS)), each) for each in overall).values(), 1):
        title = "{task}, {model}: {team} against one agent".format(**mine[0].head)
        alt = "Accuracy of the arms by the split of the evidence; the table has the numbers."
        yield Drawing(
            f"arms-{number}", title, alt, partial(_over_splits, mine) if mine[1:] else partial(_by_arm, mine[0])
        )


def _by_arm(each: Necessity) -> Figure:
    """Draw a row per arm: a point per seed, and the mean."""
    figure, [ax] = new_figure(7.2, 0.8 + 0.4 * len(each.credits))
    for place, (arm, values) in enumerate(each.credits.items()):
        colour, marker = look(_ALL_ARMS.index(arm))
        spread = [place - 0.2 + 0.4 * (at + 0.5) / len(values) for at in range(len(values))]
        ax.plot(values, spread, marker, color=colour, markersize=5, alpha=0.8, linestyle="")
        ax.plot([fmean(values)], [place], "|", color="black", markersize=18)
        ax.annotate(f"{fmean(values):.2f}", (1.08, place), va="center", annotation_clip=False)
    ax.set_yticks(range(len(each.credits)), [_LABELS[arm] for arm in each.credits])
    ax.set_ylim(len(each.credits) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.04)
    ax.set_xlabel(f"accuracy of {each.head['task']}, a point per data set; the mean at the line")
    return figure


def _over_splits(mine: Sequence[Necessity]) -> Figure:
    figure, [accuracy, gain] = new_figure(7.2, 3.0, columns=2)
    for place, arm in enumerate(_ALL_ARMS):
        shown = [each.head for each in mine if f"{arm}_credit" in each.head]
        if shown:
            colour, marker = look(place)
            splits, means = [head["split"] for head in shown], [head[f"{arm}_credit"] for head in shown]
            size = (
                4 if place % 2 else 8
            )  # arms that often coincide, mute on restricted and oracle on team, are both seen
            accuracy.plot(splits, means, marker=marker, color=colour, markersize=size, linewidth=1, label=_LABELS[arm])
    accuracy.set_ylabel("mean accuracy")
    accuracy.set_ylim(-0.02, 1.02)
    gains = [each.gain for each in mine]
    at, values = [each.head["split"] for each in mine], [each.value for each in gains]
    gain.errorbar(at, values, error_bars(gains), color="black", marker="o", markersize=4, capsize=2, linewidth=1)
    gain.axhline(0, color=GREY, linewidth=0.8)
    gain.set_ylabel("team − one agent,\nsimultaneous 95 % interval")
    for ax in (accuracy, gain):
        ax.set_xlabel("share of findings that need several instruments")
        ax.set_xlim(-0.05, 1.05)
    add_legend_beside(accuracy)
    return figure
