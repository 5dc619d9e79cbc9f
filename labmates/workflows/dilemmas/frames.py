"""Tables of what models do in social dilemmas: actions, answers to co-players, votes and adoption, designs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from labmates.grouping import grouped
from labmates.mechanisms.mediation import DELEGATE
from labmates.stats.domains import SHARE
from labmates.stats.intervals import means
from labmates.stats.metagame import Array
from labmates.stats.replicator import replicator_dynamics
from labmates.stats.validity import invalid
from labmates.workflows.dilemmas.reason_judge import CATEGORIES, OTHER
from labmates.workflows.dilemmas.records import CrossPlay, places

if TYPE_CHECKING:
    import pandas as pd

_WHO = ["mechanism", "game", "model"]


def actions_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The probability of each action: a row for each mechanism, game, model and action.

    Columns: ``mechanism``, ``game``, ``model``, ``action``, ``share`` (mean of the distributions that were handed in,
    in [0, 1], with its interval over runs), ``choices`` (number of distributions) and ``failed`` (share of the model's
    decisions there that failed, in whose place nothing counts).
    """
    plays = list(plays)
    rows = [{**_who(play, entrant), **row} for play in plays for entrant, row in _choices(play)]
    means_of = _counted(_frame(rows, [*_WHO, "run", "action", "share"]), [*_WHO, "action"])
    counts = failures_frame(plays).groupby(_WHO, sort=False)[["asked", "failed"]].sum()
    rates = (counts["failed"] / counts["asked"]).rename("failed")
    return means_of.merge(rates.reset_index(), how="left", on=_WHO)


def action_names(plays: Iterable[CrossPlay]) -> dict[str, dict[str, str]]:
    """By game, the actions that cooperate or defect, with a name that says so (``A0 (cooperates)``)."""
    games = {play.game: play.table.game() for play in plays}
    names: dict[str, dict[str, str]] = {}
    for name, game in games.items():
        for word, profile in (("cooperates", game.cooperate), ("defects", game.defect)):
            for labels, action in zip(game.labels, profile or (), strict=False):
                names.setdefault(name, {})[labels[action]] = f"{labels[action]} ({word})"
    return names


def pooled_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The probability of each action over all models: a row for each mechanism, game and action.

    Columns as in `actions_frame`, without ``model`` and ``failed``.
    """
    rows = [{**_who(play, entrant), **row} for play in plays for entrant, row in _choices(play)]
    return _counted(_frame(rows, [*_WHO, "run", "action", "share"]), ["mechanism", "game", "action"])


def evolution_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Cooperation before and after evolution, a row for each mechanism and game with a metagame.

    Columns beside these, both with intervals over runs: ``uniform`` and ``evolved``, the probability of the cooperative
    action where players are drawn from all models alike, and from the population after replicator dynamics.
    """
    rows = []
    for whole in plays:
        play = whole.without(invalid(whole.failures))
        if not play.has_metagame or play.table.game().cooperate is None:
            continue
        matches: dict[tuple[int, ...], list[float]] = {}
        for round_ in play.rounds:
            made = [
                likely for likely, failed in zip(play.cooperation(round_), round_.failed, strict=True) if not failed
            ]
            if made:
                matches.setdefault(round_.entrants, []).append(fmean(made))
        if not matches:
            continue
        population = replicator_dynamics(play.cell().payoffs).path[-1]
        row: dict[str, Any] = {"mechanism": play.mechanism, "game": play.game, "run": play.run}
        for name, shares in (("uniform", np.full(len(population), 1 / len(population))), ("evolved", population)):
            # A multiset played once represents all of its orders.
            weights = [_likely(shares, entrants, matches) for entrants in matches]
            row[name] = float(np.average([fmean(values) for values in matches.values()], weights=weights))
        rows.append(row)
    columns = ["uniform", "evolved"]
    return _shares(_frame(rows, ["mechanism", "game", "run", *columns]), ["mechanism", "game"], columns)


def _likely(shares: Array, entrants: tuple[int, ...], played: Mapping[tuple[int, ...], object]) -> float:
    """The probability that a match of a population is one of these entrants, in orders that were not played."""
    orders = set(permutations(entrants))
    alike = len(orders) / len(orders & played.keys())
    return float(np.prod([shares[entrant] for entrant in entrants])) * alike


def failures_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Counts of failed decisions, a row for each mechanism, game, model, stage and seat.

    Columns beside these: ``asked``, ``failed`` (numbers of decisions) and ``share``. Seats count from 1. The stages are
    ``choose``, ``propose``, ``vote``, ``sign``, and those of other mechanisms.
    """
    where = [*_WHO, "stage", "seat"]
    rows = [
        {**_who(play, one.entrant), "stage": one.stage, "seat": one.seat + 1, "asked": 1, "failed": int(one.failed)}
        for play in plays
        for one in sorted(play.decided, key=lambda one: (one.entrant, one.stage, one.seat))
    ]
    counts = _frame(rows, [*where, "asked", "failed"]).groupby(where, sort=False)[["asked", "failed"]].sum()
    counts["share"] = counts["failed"] / counts["asked"]
    return counts.reset_index()


def responses_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The probability of each action after the co-players' actions of the round before, by model.

    For repetition and reputation. ``before`` is what the co-players did in their last matches, in the order of seats
    and joined by a plus sign, or ``-`` in the first round. Other columns as in `actions_frame`.
    """
    rows = []
    for play in plays:
        if not any(one.number for one in play.rounds):
            continue
        last: dict[tuple[str, int, int], str] = {}
        for round_ in play.rounds:
            for agent, action in zip(round_.agents, round_.actions, strict=True):
                last[round_.match, agent, round_.number] = action
        for round_ in play.rounds:
            for seat, entrant in enumerate(round_.entrants):
                if round_.failed[seat]:
                    continue
                others = [agent for place, agent in enumerate(round_.agents) if place != seat]
                did = [last.get((round_.match, agent, round_.number - 1)) for agent in others]
                before = "-" if None in did else "+".join(str(action) for action in did)
                for label, share in zip(round_.labels[seat], round_.mixes[seat], strict=True):
                    rows.append({**_who(play, entrant), "before": before, "action": label, "share": share / 100})
    return _counted(_frame(rows, [*_WHO, "run", "before", "action", "share"]), [*_WHO, "before", "action"])


def adoption_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Votes and adoption under mediation and contracts, a row for each mechanism, game and model.

    Failed votes, signatures and choices do not count. Columns beside these, all shares in [0, 1] or missing:
    ``proposes`` (usable proposals), ``approves`` (of proposals voted on), ``approved`` (by how many a proposal of the
    model is approved), ``wins`` (how often its proposal is played), ``signs`` (contracts voted for), ``delegates``
    (mean probability, under mediation).
    """
    rows = []
    for play in plays:
        for agreement in play.agreements:
            offered = [seat for seat, design in enumerate(agreement.proposals) if design is not None]
            unsaid, unsigned = play.failed_at(agreement.place, "vote"), play.failed_at(agreement.place, "sign")
            votes = [vote for seat, vote in enumerate(agreement.votes) if seat not in unsaid]
            for seat, entrant in enumerate(agreement.entrants):
                row: dict[str, Any] = {**_who(play, entrant), "proposes": float(seat in offered)}
                if offered and seat not in unsaid:
                    row["approves"] = len(agreement.votes[seat]) / len(offered)
                if seat in offered:
                    row["approved"] = sum(seat in vote for vote in votes) / len(votes) if votes else None
                    row["wins"] = (seat in agreement.winners) / max(len(agreement.winners), 1)
                if agreement.signed and seat not in unsigned:
                    row["signs"] = sum(signed[seat] for signed in agreement.signed) / len(agreement.signed)
                rows.append(row)
        rows += [
            {**_who(play, entrant), "delegates": row["share"]}
            for entrant, row in _choices(play)
            if row["action"] == DELEGATE
        ]
    columns = ["proposes", "approves", "approved", "wins", "signs", "delegates"]
    return _shares(_frame(rows, [*_WHO, "run", *columns]), _WHO, columns)


def outcomes_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The outcomes of votes, a row for each mechanism and game.

    Columns beside these: ``votes`` (how many were held), ``unanimous`` (some proposal was approved by all), ``tied``
    (several proposals had the most approvals), both missing where nothing was ever proposed, and ``adopted`` (a design
    held in the end: all have signed, or, under mediation, somebody delegated).
    """
    rows = []
    for play in plays:
        delegated = {place for one in play.rounds if DELEGATE in one.actions for place in places(one.step)}
        for agreement in play.agreements:
            counts = [sum(seat in vote for vote in agreement.votes) for seat in range(len(agreement.proposals))]
            signed = [all(signed) for signed in agreement.signed]
            row: dict[str, Any] = {"mechanism": play.mechanism, "game": play.game, "run": play.run}
            if agreement.tied:
                row["unanimous"] = float(max(counts) == len(agreement.votes))
                row["tied"] = float(agreement.tied > 1)
            row["adopted"] = sum(signed) / len(signed) if signed else float(agreement.place in delegated)
            rows.append(row)
    keys, columns = ["mechanism", "game"], ["unanimous", "tied", "adopted"]
    frame = _frame(rows, [*keys, "run", *columns])
    votes = frame.groupby(keys, sort=False)["tied"].count().rename("votes").reset_index()
    return votes.merge(_shares(frame, keys, columns), on=keys)


def designs_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The quality of proposed mediators and contracts, a row for each mechanism, game and model.

    Columns beside these: ``designs`` (usable proposals), ``nash`` and ``dominant`` (shares under which full cooperation
    is a Nash equilibrium, or is weakly dominant).
    """
    rows = [
        {**_who(play, entrant), "nash": float(stable[0]), "dominant": float(stable[1])}
        for play in plays
        for one in play.agreements
        for entrant, stable in zip(one.entrants, one.stable, strict=True)
        if stable is not None
    ]
    frame = _frame(rows, [*_WHO, "run", "nash", "dominant"])
    designs = frame.groupby(_WHO, sort=False).size().rename("designs").reset_index()
    return designs.merge(_shares(frame, _WHO, ["nash", "dominant"]), on=_WHO)


def _counted(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The means of shares by keys, with intervals over runs and their number (``choices``)."""
    choices = frame.groupby(keys, sort=False).size().rename("choices").reset_index()
    return _shares(frame, keys, ["share"]).merge(choices, on=keys)


def _choices(play: CrossPlay) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield entrant, action and share of every action of every distribution that was handed in."""
    for round_ in play.rounds:
        for entrant, labels, mix, failed in zip(
            round_.entrants, round_.labels, round_.mixes, round_.failed, strict=True
        ):
            for label, share in () if failed else zip(labels, mix, strict=True):
                yield entrant, {"action": label, "share": share / 100}


def _who(play: CrossPlay, entrant: int) -> dict[str, str]:
    return {"mechanism": play.mechanism, "game": play.game, "model": play.models[entrant], "run": play.run}


def _shares(frame: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """The means of shares by keys, each with its interval over runs (`NAME_low`, `NAME_high`) or why it has none."""
    frame_of_means = frame.groupby(keys, sort=False)[list(columns)].mean()
    for name in columns:
        by_run = frame.groupby([*keys, "run"], sort=False)[name].mean().dropna()
        runs = grouped(
            (row[: len(keys)], float(row[-1])) for row in by_run.reset_index().itertuples(index=False, name=None)
        )
        estimates = dict(zip(runs, means(list(runs.values()), SHARE), strict=True))
        by_row = [estimates.get(key if isinstance(key, tuple) else (key,)) for key in frame_of_means.index]
        for end in ("low", "high", "reason"):
            frame_of_means[f"{name}_{end}"] = [None if one is None else getattr(one, end) for one in by_row]
    return frame_of_means.reset_index()


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def agreement_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The agreement of judges on the reasons of the same choices, a row for each pair of judges and label.

    Columns: ``first``, ``second`` (the judges), ``label``, ``same`` (share of the choices on which both say the same of
    it, with its interval over runs), ``kappa`` (Cohen's; missing where neither judge varies) and ``choices`` that both
    labelled.
    """
    rows = []
    for play in plays:
        by_choice: dict[str, dict[str, set[str]]] = {}
        for one in play.labels:
            by_choice.setdefault(one.step, {})[one.judge] = set(one.labels)
        for given in by_choice.values():
            for (first, ours), (second, theirs) in combinations(sorted(given.items()), 2):
                rows += [
                    {"first": first, "second": second, "label": label, "run": play.run}
                    | {"a": label in ours, "b": label in theirs, "same": float((label in ours) == (label in theirs))}
                    for label in (*CATEGORIES, OTHER)
                ]
    keys = ["first", "second", "label"]
    frame = _frame(rows, [*keys, "run", "a", "b", "same"])
    given_at_all = frame[frame["a"].astype(bool) | frame["b"].astype(bool)]["label"].unique()
    frame = frame[frame["label"].isin(given_at_all)]
    groups = frame.groupby(keys, sort=False)
    kappas = [{**dict(zip(keys, key, strict=True)), **_kappa(group)} for key, group in groups]
    return _shares(frame, keys, ["same"]).merge(_frame(kappas, [*keys, "kappa", "choices"]), on=keys)


def _kappa(frame: pd.DataFrame) -> dict[str, Any]:
    first, second = frame["a"].astype(float).mean(), frame["b"].astype(float).mean()
    by_chance = first * second + (1 - first) * (1 - second)
    kappa = (frame["same"].mean() - by_chance) / (1 - by_chance) if by_chance < 1 else None
    return {"kappa": kappa, "choices": len(frame)}


def reasons_frame(plays: Iterable[CrossPlay], *, by_game: bool = True) -> pd.DataFrame:
    """The share of choices with each kind of reason, a row for each mechanism, game, model and label.

    Columns beside these: ``judge``, ``share`` (of the labelled choices that carry the label, with its interval over
    runs), ``labelled`` (their number) and ``confidence`` (the judge's own, mean over those with the label). A label
    that a judge gave anywhere has a row everywhere that this judge labelled, with the share 0 if need be.

    Parameters
    ----------
    by_game
        Otherwise over all games, which count by the number of their labelled choices.
    """
    labelled = [(_who(play, one.entrant), one) for play in plays for one in play.labels]
    given: dict[str, set[str]] = {}
    for _, reasons in labelled:
        given.setdefault(reasons.judge, set()).update(reasons.labels)
    rows = [
        {**who, "judge": one.judge, "label": label, "share": float(label in one.labels)}
        | {"confidence": one.confidence if label in one.labels else None}
        for who, one in labelled
        for label in sorted(given[one.judge])
    ]
    keys = [*(name for name in _WHO if by_game or name != "game"), "judge", "label"]
    frame = _frame(rows, [*_WHO, "judge", "label", "run", "share", "confidence"])
    counted = _counted(frame, keys).rename(columns={"choices": "labelled"})
    sure = frame.astype({"confidence": float}).groupby(keys, sort=False)["confidence"].mean().reset_index()
    return counted.merge(sure, on=keys)
