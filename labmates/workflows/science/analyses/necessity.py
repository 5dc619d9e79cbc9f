"""The necessity of a team: runs of the arms of divided evidence, paired by seed, over the split.

The necessity index of a finding is (team − restricted) / (oracle − restricted): 0 if the team is no better than one
agent with only the readings, 1 if it equals one agent with all instruments. It is undefined if the oracle is no better
than the restricted agent. Runs of one arm, seed and condition are averaged first; a seed counts if all three arms have
it. An unreadable report has accuracy 0 (intention to treat). The index of the same seats without contact,
(mute − restricted) / (oracle − restricted), is over the seeds with the arm mute.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
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

_ARMS: Final = ("oracle", "team", "mute", "restricted")
ARMS: Final = ("restricted", "team", "oracle")
MUTE: Final = "mute"
ALL: Final = "all findings"
CANT_TELL: Final = "can't tell"
LEAST_GAIN: Final = 0.02
"""The index is undefined if the oracle's gain over the restricted agent is smaller."""

_OF_TEAMS = {*TEAM_FIELDS, "organisation", "solo", "arm", "evidence"}


def arm_figures(compared: Sequence[Necessity]) -> Iterator[Drawing]:
    """Figures by condition and team: accuracy of each arm, and team minus restricted, over the split."""
    rows = grouped(((_text(each.condition), _text(each.teams)), each) for each in compared if each.finding == ALL)
    for number, mine in enumerate(rows.values(), 1):
        condition = mine[0].condition
        title = f"{condition.get('task')}, {condition.get('model')}: {team_name(mine[0].teams)} against one agent"
        alt = "Mean accuracy of the arms over the split of the evidence, and the team's gain with its interval."
        yield Drawing(f"arms-{number}", title, alt, partial(_figure, mine))


def _figure(mine: Sequence[Necessity]) -> Figure:
    figure, [accuracy, gain] = new_figure(7.2, 3.0, columns=2)
    for place, arm in enumerate(_ARMS):
        if shown := [each for each in mine if arm in each.means]:
            colour, marker = look(place)
            splits, means = [each.split for each in shown], [each.means[arm] for each in shown]
            accuracy.plot(splits, means, marker=marker, color=colour, markersize=4, linewidth=1, label=arm)
    accuracy.set_ylabel("mean accuracy")
    accuracy.set_ylim(-0.02, 1.02)
    gains = [each.gain for each in mine]
    at, values = [each.split for each in mine], [each.value for each in gains]
    gain.errorbar(at, values, error_bars(gains), color="black", marker="o", markersize=4, capsize=2, linewidth=1)
    gain.axhline(0, color=GREY, linewidth=0.8)
    gain.set_ylabel("team − restricted, simultaneous 95 % interval")
    for ax in (accuracy, gain):
        ax.set_xlabel("split of the evidence")
    add_legend_beside(accuracy)
    return figure


@dataclass(frozen=True)
class Play:
    """Result of a run of one arm.

    Attributes
    ----------
    settings
        Parameters common to all arms of a comparison, as JSON.
    teams
        Organisation and parameters of the team, as JSON; empty for a single agent.
    credit
        Accuracy over `ALL` findings, and the credit of each.
    spent
        Dollars.
    readable
        Whether its report states readable findings.
    """

    settings: str
    teams: str
    split: float
    arm: str
    seed: int
    credit: Mapping[str, float]
    spent: float
    readable: bool


@dataclass(frozen=True)
class Necessity:
    """A comparison of a team with both single-agent arms, at one split, for one finding.

    Attributes
    ----------
    seeds
        Number of seeds common to all arms.
    means, spent
        Mean credit and dollars of each arm.
    gains, gain
        Team minus restricted by seed, and the mean with its interval over seeds: simultaneous for all splits, teams and
        conditions, or for all findings of these.
    index, mute_index
        None if the oracle is no better than the restricted agent, or without runs of the arm.
    """

    condition: Mapping[str, Any]
    teams: Mapping[str, Any]
    split: float
    finding: str
    seeds: int
    means: Mapping[str, float]
    spent: Mapping[str, float]
    gains: Sequence[Pair]
    gain: Estimate
    index: Estimate | None
    mute_index: Estimate | None

    @property
    def verdict(self) -> str:
        """The verdict on the team against one agent with the readings."""
        low, high = self.gain.low, self.gain.high
        if low is None or high is None or low <= 0 <= high:
            return CANT_TELL
        return "team is better" if low > 0 else "one agent is better"


def plays(judged: Sequence[Judged]) -> Iterator[Play]:
    """Ended runs with divided evidence and a score of the verified judge."""
    for each in judged:
        condition = each.run.condition
        scores = [s for s in each.scores if (s.judge, s.metric) == ("verified", "accuracy") and s.value is not None]
        if each.run.status not in ENDED or not str(condition.get("evidence", "")).startswith("split:") or not scores:
            continue
        arm = str(condition.get("arm", "team"))
        credit = {entry["finding"]: float(entry["credit"]) for entry in scores[-1].details.get("credits", [])}
        yield Play(
            settings=_text({name: value for name, value in condition.items() if name not in _OF_TEAMS}),
            teams=_text({name: condition[name] for name in (*TEAM_FIELDS, "organisation", "solo") if name in condition})
            if arm in ("team", MUTE)
            else "",
            split=float(condition["evidence"].removeprefix("split:")),
            arm=arm,
            seed=each.run.seed,
            credit={ALL: float(scores[-1].value or 0.0), **credit},
            spent=float((each.run.budget or {}).get("spent", 0.0)),
            readable=each.readable,
        )


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def necessity(played: Sequence[Play]) -> list[Necessity]:
    """Comparisons of the arms by condition, team and split, over all findings and for each."""
    compared: list[Necessity] = []
    groups = groupby(sorted(played, key=_place), key=_place)
    for (settings, split), members in groups:
        by_arm = [*members]
        for teams in dict.fromkeys(play.teams for play in by_arm if play.arm == "team"):
            mine = [play for play in by_arm if play.teams in ("", teams)]
            compared += _compared(settings, teams, split, mine)
    rows = Counter(each.finding == ALL for each in compared)
    domain = SHARE.difference()
    levels = {is_all: 1 - (1 - LEVEL) / number for is_all, number in rows.items()}
    return [replace(each, gain=difference(each.gains, domain, (), levels[each.finding == ALL])) for each in compared]


def _place(play: Play) -> tuple[str, float]:
    return play.settings, play.split


def _compared(settings: str, teams: str, split: float, played: Sequence[Play]) -> Iterator[Necessity]:
    having = {arm: {play.seed for play in played if play.arm == arm} for arm in (*ARMS, MUTE)}
    seeds = sorted(set.intersection(*(having[arm] for arm in ARMS)))
    if not seeds:
        return
    over = {arm: [seed for seed in seeds if seed in having[arm]] for arm in having if having[arm] & {*seeds}}
    cells = {(arm, seed): [p for p in played if (p.arm, p.seed) == (arm, seed)] for arm in over for seed in seeds}
    spent = {arm: fmean(fmean(play.spent for play in cells[arm, seed]) for seed in over[arm]) for arm in over}
    for finding in dict.fromkeys(name for play in played for name in play.credit):
        credit = {
            arm: {seed: fmean(play.credit.get(finding, 0.0) for play in cells[arm, seed]) for seed in over[arm]}
            for arm in over
        }

        def index(arm: str, credit: Mapping[str, Mapping[int, float]] = credit) -> Estimate | None:
            return index_of(*([credit[name][seed] for seed in over[arm]] for name in ("restricted", arm, "oracle")))

        read = {seed: all(play.readable for arm in ARMS for play in cells[arm, seed]) for seed in seeds}
        gains = [Pair("", str(s), "", credit["team"][s] - credit["restricted"][s], read[s]) for s in seeds]
        yield Necessity(
            json.loads(settings),
            json.loads(teams),
            split,
            finding,
            len(seeds),
            {arm: fmean(values.values()) for arm, values in credit.items()},
            spent,
            gains,
            difference(gains, SHARE.difference()),
            index("team"),
            index(MUTE) if MUTE in over else None,
        )


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
    arms = [arm for arm in ("restricted", MUTE, "team", "oracle") if any(arm in each.means for each in compared)]
    rows = [
        {
            **{name: each.condition.get(name) for name in ("task", "difficulty", "model", "budget")},
            "team": team_name(each.teams),
            "split": each.split,
            "finding": each.finding,
            "seeds": each.seeds,
            **{f"{arm}_credit": each.means.get(arm) for arm in arms},
            **each.gain.row("gain"),
            **(each.index.row("index") if each.index else {"index": None, "index_reason": "undefined"}),
            **(each.mute_index.row("mute_index") if each.mute_index else {"mute_index": None}),
            **{f"{arm}_spent": each.spent.get(arm) for arm in arms},
            "verdict": each.verdict,
        }
        for each in compared
    ]
    heads = [Column(name, once=True) for name in ("task", "difficulty", "model", "budget", "team")]
    columns = [
        *heads,
        Column("split", form="g"),
        Column("finding"),
        Column("seeds"),
        *(Column(f"{arm}_credit", arm, form=".3f", group="accuracy") for arm in arms),
        Column("gain", "team − restricted", form="+.3f", shows="both"),
        Column("index", "necessity index", form=".2f", shows="both"),
        *[Column("mute_index", "index of mute", form=".2f", shows="both")] * (MUTE in arms),
        *(Column(f"{arm}_spent", arm, form=".3f", group="dollars") for arm in arms),
        Column("verdict"),
    ]
    note = (
        "The necessity index is (team − restricted) / (oracle − restricted), undefined where the oracle gains less "
        f"than {LEAST_GAIN:g}; intervals are over seeds, on which all arms are paired. Those of team − restricted are "
        "simultaneous for all rows."
    )
    return Table(name, title, columns, rows, [note, *notes(each.gain for each in compared)])


def team_name(teams: Mapping[str, Any]) -> str:
    """The organisation and the size of a condition's teams."""
    organisation = teams.get("organisation", "solo" if teams.get("solo") else "pipeline")
    name = organisation["name"] if isinstance(organisation, Mapping) else organisation
    return f"{name}, size {teams['team_size']}" if "team_size" in teams else str(name)


def verdicts(compared: Sequence[Necessity]) -> list[str]:
    """Sentences on the splits at which a team beats one agent, by task, team and model."""
    words = {
        "team is better": "A team beats one agent with the readings",
        "one agent is better": "One agent with the readings beats a team",
        CANT_TELL: "The runs can't tell",
    }
    sentences = []
    for verdict, lead in words.items():
        splits: dict[str, list[str]] = {}
        for each in compared:
            if each.verdict == verdict:
                setting = f"${each.condition.get('budget')}, {team_name(each.teams)}, {each.condition.get('model')}"
                splits.setdefault(f"{each.condition.get('task')} ({setting})", []).append(f"{each.split:g}")
        if splits:
            places = [f"{place} at split {', '.join(at)}" for place, at in splits.items()]
            sentences.append(f"{lead}: {'; '.join(places)}.")
    return sentences
