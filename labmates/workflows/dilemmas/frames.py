"""Tables of choices in social dilemmas: actions, responses to co-players, votes and adoption, designs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from labmates.mechanisms.mediation import DELEGATE
from labmates.stats.domains import SHARE
from labmates.stats.intervals import means
from labmates.stats.replicator import replicator_dynamics
from labmates.stats.validity import invalid
from labmates.util.grouping import grouped
from labmates.workflows.dilemmas.records import CrossPlay, Round, places

if TYPE_CHECKING:
    import pandas as pd

_WHO = ["mechanism", "game", "model"]


def actions_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The probability of each action: a row for each mechanism, game, model and action.

    Columns: ``mechanism``, ``game``, ``model``, ``action``, ``share`` (mean of the players' distributions, weighted as
    payoffs are, in [0, 1], with its interval over runs), ``choices`` (number of distributions) and ``failed`` (share of
    the model's failed decisions there, which are excluded).
    """
    plays = list(plays)
    rows = [row for play in plays for row in _choices(play)]
    means_of = counted(frame_of(rows, [*_WHO, "run", "action", "share", "weight"]), [*_WHO, "action"])
    counts = failures_frame(plays).groupby(_WHO, sort=False)[["asked", "failed"]].sum()
    rates = (counts["failed"] / counts["asked"]).rename("failed")
    return means_of.merge(rates.reset_index(), how="left", on=_WHO)


def matches_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Every play of every match: a row for each seat.

    Columns: ``run``, ``mechanism``, ``game``, ``match``, ``round`` (missing without rounds), ``step``, ``seat`` (from
    1), ``model``, ``agent`` (from 1, under reputation), ``mix`` (the distribution in percent, as JSON), ``action``
    (drawn), ``payoff``, ``expected`` (its expectation), ``weight`` (of the play in its match), ``failed`` (whether the
    fallback was played) and ``design`` (the mediator, contract or other proposal in effect, as JSON).
    """
    rows = []
    for play in plays:
        for each in play.rounds:
            design = next(map(json.dumps, play.designs(each.step)), None)
            shared = {"match": each.match, "round": each.round or None, "step": each.step, "weight": each.weight}
            rows += [
                {**_who(play, model), **shared, "design": design, "seat": seat + 1, "agent": each.agents[seat] + 1}
                | {"mix": json.dumps(dict(zip(each.labels[seat], each.mixes[seat], strict=True)))}
                | {name: getattr(each, f"{name}s")[seat] for name in ("action", "payoff")}
                | {name: getattr(each, name)[seat] for name in ("expected", "failed")}
                for seat, model in enumerate(each.models)
            ]
    of_seat = ["seat", "model", "agent", "mix", "action", "payoff", "expected", "weight", "failed", "design"]
    return frame_of(rows, ["run", "mechanism", "game", "match", "round", "step", *of_seat])


def action_names(plays: Iterable[CrossPlay]) -> dict[str, dict[str, str]]:
    """Names of the cooperative and defecting actions that say so (``A0 (cooperates)``), by game and action."""
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
    rows = [row for play in plays for row in _choices(play)]
    return counted(frame_of(rows, [*_WHO, "run", "action", "share", "weight"]), ["mechanism", "game", "action"])


def evolution_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Cooperation before and after evolution, a row for each mechanism and game with a metagame.

    Further columns, with intervals over runs: ``uniform`` and ``evolved``, the probability of the cooperative action
    with players drawn from all models alike, and from the population after replicator dynamics.
    """
    rows = []
    for whole in plays:
        play = whole.without(invalid(whole.failures))
        if not play.has_metagame or play.table.game().cooperate is None:
            continue
        matches: dict[tuple[str, ...], list[tuple[float, float]]] = {}
        for round_ in play.rounds:
            made = [
                likely for likely, failed in zip(play.cooperation(round_), round_.failed, strict=True) if not failed
            ]
            if made:
                matches.setdefault(round_.models, []).append((fmean(made), round_.weight))
        if not matches:
            continue
        population = replicator_dynamics(play.cell().payoffs).path[-1]
        row: dict[str, Any] = {"mechanism": play.mechanism, "game": play.game, "run": play.run}
        for name, shares in (("uniform", np.full(len(population), 1 / len(population))), ("evolved", population)):
            # A multiset that was played once represents all of its orders.
            weights = [_likely(dict(zip(play.models, shares, strict=True)), models, matches) for models in matches]
            rates = [fmean(*zip(*values, strict=True)) for values in matches.values()]
            row[name] = float(np.average(rates, weights=weights))
        rows.append(row)
    columns = ["uniform", "evolved"]
    return shares_over_runs(frame_of(rows, ["mechanism", "game", "run", *columns]), ["mechanism", "game"], columns)


def _likely(shares: Mapping[str, float], models: tuple[str, ...], played: Mapping[tuple[str, ...], object]) -> float:
    """The probability that a match of a population has these models, or an order of them that was not played."""
    orders = set(permutations(models))
    alike = len(orders) / len(orders & played.keys())
    return float(np.prod([shares[model] for model in models])) * alike


def failures_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Counts of failed decisions, a row for each mechanism, game, model, stage and seat.

    Further columns: ``asked``, ``failed`` (numbers of decisions) and ``share``. Seats count from 1. The stages are
    ``choose``, ``propose``, ``vote``, ``sign``, and those of other mechanisms.
    """
    where = [*_WHO, "stage", "seat"]
    rows = [
        {**_who(play, each.model), "stage": each.stage, "seat": each.seat + 1, "asked": 1, "failed": int(each.failed)}
        for play in plays
        for each in sorted(play.decided, key=lambda one: (play.models.index(one.model), one.stage, one.seat))
    ]
    counts = frame_of(rows, [*where, "asked", "failed"]).groupby(where, sort=False)[["asked", "failed"]].sum()
    counts["share"] = counts["failed"] / counts["asked"]
    return counts.reset_index()


def responses_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The probability of each action after the co-players' actions of the round before, by model.

    For repetition and reputation. ``before`` has the co-players' actions in their last matches, in the order of seats
    and joined by a plus sign, or ``-`` in the first round, which comes first. Other columns as in `actions_frame`.
    """
    rows: list[dict[str, Any]] = []
    players: dict[tuple[str, str, str], None] = {}
    for play in plays:
        if not any(round_.round for round_ in play.rounds):
            continue
        players |= dict.fromkeys((play.mechanism, play.game, model) for model in play.models)
        last: dict[tuple[str, int, int], str] = {}
        for round_ in play.rounds:
            for agent, action in zip(round_.agents, round_.actions, strict=True):
                last[round_.match, agent, round_.round] = action
        for round_ in play.rounds:
            for seat, who in enumerate(round_.agents):
                others = [last.get((round_.match, agent, round_.round - 1)) for agent in round_.agents if agent != who]
                before = "-" if None in others else "+".join(map(str, others))
                rows += [{**choice, "before": before} for choice in _choices_of(play, round_, seat)]
    places = {player: place for place, player in enumerate(players)}
    rows.sort(key=lambda row: (places[row["mechanism"], row["game"], row["model"]], len(row["before"]), row["before"]))
    return counted(frame_of(rows, [*_WHO, "run", "before", "action", "share"]), [*_WHO, "before", "action"])


def adoption_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Votes and adoption under mediation and contracts, a row for each mechanism, game and model.

    Failed votes, signatures and choices are excluded. Further columns, all shares in [0, 1] or missing: ``proposes``
    (usable proposals), ``approves`` (of proposals voted on), ``approved`` (voters who approve the model's proposal),
    ``wins`` (how often its proposal is played), ``signs`` (of contracts that won), ``delegates`` (mean probability,
    under mediation).
    """
    rows = []
    for play in plays:
        for agreement in play.agreements:
            offered = [seat for seat, design in enumerate(agreement.proposals) if design is not None]
            no_vote, no_signature = play.failed_at(agreement.place, "vote"), play.failed_at(agreement.place, "sign")
            votes = [vote for seat, vote in enumerate(agreement.votes) if seat not in no_vote]
            for seat, model in enumerate(agreement.models):
                row: dict[str, Any] = {**_who(play, model), "proposes": float(seat in offered)}
                if offered and seat not in no_vote:
                    row["approves"] = len(agreement.votes[seat]) / len(offered)
                if seat in offered:
                    row["approved"] = sum(seat in vote for vote in votes) / len(votes) if votes else None
                    row["wins"] = (seat in agreement.winners) / max(len(agreement.winners), 1)
                if agreement.signed and seat not in no_signature:
                    row["signs"] = sum(signed[seat] for signed in agreement.signed) / len(agreement.signed)
                rows.append(row)
        rows += [{**row, "delegates": row["share"]} for row in _choices(play) if row["action"] == DELEGATE]
    columns = ["proposes", "approves", "approved", "wins", "signs", "delegates"]
    return shares_over_runs(frame_of(rows, [*_WHO, "run", *columns]), _WHO, columns)


def outcomes_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The outcomes of votes, a row for each mechanism and game.

    Further columns: ``votes`` (number), ``unanimous`` (all approved some proposal), ``tied`` (several proposals had the
    most approvals), both missing without any proposals, and ``adopted`` (a design took effect: all signed or, under
    mediation, somebody delegated).
    """
    rows = []
    for play in plays:
        delegated = {place for each in play.rounds if DELEGATE in each.actions for place in places(each.step)}
        for agreement in play.agreements:
            counts = [sum(seat in vote for vote in agreement.votes) for seat in range(len(agreement.proposals))]
            signed = [all(signed) for signed in agreement.signed]
            row: dict[str, Any] = {"mechanism": play.mechanism, "game": play.game, "run": play.run}
            if any(design is not None for design in agreement.proposals):
                row["unanimous"] = float(max(counts) == len(agreement.votes))
                row["tied"] = float(agreement.tied > 1)
            row["adopted"] = sum(signed) / len(signed) if signed else float(agreement.place in delegated)
            rows.append(row)
    keys, columns = ["mechanism", "game"], ["unanimous", "tied", "adopted"]
    frame = frame_of(rows, [*keys, "run", *columns])
    votes = frame.groupby(keys, sort=False)["tied"].count().rename("votes").reset_index()
    return votes.merge(shares_over_runs(frame, keys, columns), on=keys)


def designs_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """The quality of proposed mediators and contracts, a row for each mechanism, game and model.

    Further columns: ``designs`` (usable proposals), ``nash`` and ``dominant`` (shares that make full cooperation a Nash
    equilibrium, or weakly dominant).
    """
    rows = [
        {**_who(play, model), "nash": float(stable[0]), "dominant": float(stable[1])}
        for play in plays
        for agreement in play.agreements
        for model, stable in zip(agreement.models, agreement.stable, strict=True)
        if stable is not None
    ]
    frame = frame_of(rows, [*_WHO, "run", "nash", "dominant"])
    designs = frame.groupby(_WHO, sort=False).size().rename("designs").reset_index()
    return designs.merge(shares_over_runs(frame, _WHO, ["nash", "dominant"]), on=_WHO)


def counted(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The means of shares by keys, with intervals over runs and their number (``choices``)."""
    choices = frame.groupby(keys, sort=False).size().rename("choices").reset_index()
    return shares_over_runs(frame, keys, ["share"]).merge(choices, on=keys)


def _choices(play: CrossPlay) -> Iterator[dict[str, Any]]:
    """Model, action, share and weight of every action of every usable distribution."""
    for round_ in play.rounds:
        for seat in range(len(round_.models)):
            yield from _choices_of(play, round_, seat)


def _choices_of(play: CrossPlay, round_: Round, seat: int) -> Iterator[dict[str, Any]]:
    for action, share in () if round_.failed[seat] else round_.shares[seat].items():
        yield {**_who(play, round_.models[seat]), "action": action, "share": share, "weight": round_.weight}


def _who(play: CrossPlay, model: str) -> dict[str, str]:
    return {"mechanism": play.mechanism, "game": play.game, "model": model, "run": play.run}


def shares_over_runs(frame: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """The means of shares over runs by keys, with intervals (`NAME_low`, `NAME_high`) or the reason for none.

    The share of a run is weighted by the column ``weight``, if there is one.
    """
    frame_of_means = frame.groupby(keys, sort=False).size().to_frame("size")
    weights = frame.get("weight", 1.0)
    for name in columns:
        products = frame.assign(product=frame[name] * weights, weight=frame[name].notna() * weights)
        sums = products.astype({"product": float}).groupby([*keys, "run"], sort=False)[["product", "weight"]].sum()
        by_run = (sums["product"] / sums["weight"]).dropna()
        runs = grouped(
            (row[: len(keys)], float(row[-1])) for row in by_run.reset_index().itertuples(index=False, name=None)
        )
        estimates = dict(zip(runs, means(list(runs.values()), SHARE), strict=True))
        by_row = [estimates.get(key if isinstance(key, tuple) else (key,)) for key in frame_of_means.index]
        for end, column in (
            ("value", name),
            ("low", f"{name}_low"),
            ("high", f"{name}_high"),
            ("reason", f"{name}_reason"),
        ):
            frame_of_means[column] = [None if each is None else getattr(each, end) for each in by_row]
    return frame_of_means.drop(columns="size").reset_index()


def frame_of(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """A data frame of rows with these columns, also without rows."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)
