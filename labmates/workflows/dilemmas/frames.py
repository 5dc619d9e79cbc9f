"""Tables of what models do in social dilemmas: actions, answers to co-players, votes and adoption, designs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from labmates.mechanisms.mediation import DELEGATE
from labmates.workflows.dilemmas.records import CrossPlay, places

if TYPE_CHECKING:
    import pandas as pd

_WHO = ["mechanism", "game", "model"]


def actions_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return how likely each model takes each action, a row for each mechanism, game, model and action.

    Columns: ``mechanism``, ``game``, ``model``, ``action``, ``share`` (mean of the distributions that were handed in,
    in [0, 1]), ``choices`` (number of distributions) and ``failed`` (share of the model's decisions there that failed,
    in whose place nothing counts).
    """
    plays = list(plays)
    rows = [{**_who(play, entrant), **row} for play in plays for entrant, row in _choices(play)]
    frame = _frame(rows, [*_WHO, "action", "share"])
    found = frame.groupby([*_WHO, "action"], sort=False)["share"].agg(["mean", "size"]).reset_index()
    found = found.rename(columns={"mean": "share", "size": "choices"})
    counts = failures_frame(plays).groupby(_WHO, sort=False)[["asked", "failed"]].sum()
    rates = (counts["failed"] / counts["asked"]).rename("failed")
    return found.merge(rates.reset_index(), how="left", on=_WHO)


def failures_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return counts of failed decisions, a row for each mechanism, game, model, stage and seat.

    Columns beside these: ``asked``, ``failed`` (numbers of decisions) and ``share``. Seats count from 1. The stages are
    ``choose``, ``propose``, ``vote``, ``sign``, and those of other mechanisms.
    """
    where = [*_WHO, "stage", "seat"]
    rows = [
        {**_who(play, one.entrant), "stage": one.stage, "seat": one.seat + 1, "asked": 1, "failed": int(one.failed)}
        for play in plays
        for one in sorted(play.decided, key=lambda one: (one.entrant, one.stage, one.seat))
    ]
    found = _frame(rows, [*where, "asked", "failed"]).groupby(where, sort=False)[["asked", "failed"]].sum()
    found["share"] = found["failed"] / found["asked"]
    return found.reset_index()


def responses_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return how likely each model takes each action after what its co-players did in the round before.

    For repetition and reputation. ``before`` is what the co-players did in their last matches, in the order of seats
    and joined by a plus sign, or ``-`` in the first round. Other columns as in `actions_frame`.
    """
    rows = []
    for play in plays:
        if not any(one.number for one in play.rounds):
            continue
        last: dict[tuple[str, int, int], str] = {}
        for one in play.rounds:
            for agent, action in zip(one.agents, one.actions, strict=True):
                last[one.match, agent, one.number] = action
        for one in play.rounds:
            for seat, entrant in enumerate(one.entrants):
                if one.failed[seat]:
                    continue
                others = [agent for place, agent in enumerate(one.agents) if place != seat]
                did = [last.get((one.match, agent, one.number - 1)) for agent in others]
                before = "-" if None in did else "+".join(str(action) for action in did)
                for label, share in zip(one.labels[seat], one.mixes[seat], strict=True):
                    rows.append({**_who(play, entrant), "before": before, "action": label, "share": share / 100})
    frame = _frame(rows, [*_WHO, "before", "action", "share"])
    found = frame.groupby([*_WHO, "before", "action"], sort=False)["share"].agg(["mean", "size"]).reset_index()
    return found.rename(columns={"mean": "share", "size": "choices"})


def adoption_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return votes and adoption under mediation and contracts, a row for each mechanism, game and model.

    Failed votes, signatures and choices do not count. Columns beside these, all shares in [0, 1] or missing:
    ``proposes`` (usable proposals), ``approves`` (of proposals voted on), ``approved`` (by how many a proposal of the
    model is approved), ``wins`` (how often its proposal is played), ``signs`` (contracts voted for), ``delegates``
    (mean probability, under mediation).
    """
    rows = []
    for play in plays:
        for one in play.agreements:
            offered = [seat for seat, design in enumerate(one.proposals) if design is not None]
            unsaid, unsigned = play.failed_at(one.place, "vote"), play.failed_at(one.place, "sign")
            votes = [vote for seat, vote in enumerate(one.votes) if seat not in unsaid]
            for seat, entrant in enumerate(one.entrants):
                row: dict[str, Any] = {**_who(play, entrant), "proposes": float(seat in offered)}
                if offered and seat not in unsaid:
                    row["approves"] = len(one.votes[seat]) / len(offered)
                if seat in offered:
                    row["approved"] = sum(seat in vote for vote in votes) / len(votes) if votes else None
                    row["wins"] = (seat in one.winners) / len(one.winners)
                if one.signed and seat not in unsigned:
                    row["signs"] = sum(signed[seat] for signed in one.signed) / len(one.signed)
                rows.append(row)
        rows += [
            {**_who(play, entrant), "delegates": row["share"]}
            for entrant, row in _choices(play)
            if row["action"] == DELEGATE
        ]
    columns = ["proposes", "approves", "approved", "wins", "signs", "delegates"]
    return _frame(rows, [*_WHO, *columns]).groupby(_WHO, sort=False)[columns].mean().reset_index()


def outcomes_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return how votes end, a row for each mechanism and game.

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
            row: dict[str, Any] = {"mechanism": play.mechanism, "game": play.game}
            if agreement.tied:
                row["unanimous"] = float(max(counts) == len(agreement.votes))
                row["tied"] = float(agreement.tied > 1)
            row["adopted"] = sum(signed) / len(signed) if signed else float(agreement.place in delegated)
            rows.append(row)
    frame = _frame(rows, ["mechanism", "game", "unanimous", "tied", "adopted"])
    groups = frame.groupby(["mechanism", "game"], sort=False)
    return groups.agg(
        votes=("tied", "count"), unanimous=("unanimous", "mean"), tied=("tied", "mean"), adopted=("adopted", "mean")
    ).reset_index()


def designs_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return how good proposed mediators and contracts are, a row for each mechanism, game and model.

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
    groups = _frame(rows, [*_WHO, "nash", "dominant"]).groupby(_WHO, sort=False)
    return groups.agg(designs=("nash", "size"), nash=("nash", "mean"), dominant=("dominant", "mean")).reset_index()


def _choices(play: CrossPlay) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield entrant, action and share of every action of every distribution that was handed in."""
    for one in play.rounds:
        for entrant, labels, mix, failed in zip(one.entrants, one.labels, one.mixes, one.failed, strict=True):
            for label, share in () if failed else zip(labels, mix, strict=True):
                yield entrant, {"action": label, "share": share / 100}


def _who(play: CrossPlay, entrant: int) -> dict[str, str]:
    return {"mechanism": play.mechanism, "game": play.game, "model": play.models[entrant]}


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def reasons_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return how often choices are explained by each kind of reasons, a row for each mechanism, game, model and label.

    Columns beside these: ``judge``, ``share`` (of the labelled choices that carry the label) and ``labelled`` (their
    number). A label that a judge gave anywhere has a row everywhere that this judge labelled, with the share 0 if need
    be.
    """
    rows: list[dict[str, Any]] = [
        {**_who(play, entrant), "judge": judge, "labels": labels}
        for play in plays
        for entrant, judge, labels in play.labels
    ]
    frame = _frame(rows, [*_WHO, "judge", "labels"])
    given: dict[str, set[str]] = {}
    for row in rows:
        given.setdefault(row["judge"], set()).update(row["labels"])
    found = []
    for key, group in frame.groupby([*_WHO, "judge"], sort=False):
        named = dict(zip([*_WHO, "judge"], map(str, key), strict=True))
        for label in sorted(given[named["judge"]]):
            share = sum(label in labels for labels in group["labels"]) / len(group)
            found.append({**named, "label": label, "share": share, "labelled": len(group)})
    return _frame(found, [*_WHO, "judge", "label", "share", "labelled"])
