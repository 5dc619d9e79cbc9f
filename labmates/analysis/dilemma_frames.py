"""Tables of what models do in social dilemmas: actions, answers to co-players, votes and adoption, designs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from labmates.analysis.dilemma_records import CrossPlay, places
from labmates.mechanisms.mediation import DELEGATE

if TYPE_CHECKING:
    import pandas as pd

_WHO = ["mechanism", "game", "model"]


def actions_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return how likely each model takes each action, a row for each mechanism, game, model and action.

    Columns: ``mechanism``, ``game``, ``model``, ``action``, ``share`` (mean of the distributions that were handed in,
    in [0, 1]) and ``choices`` (number of distributions).
    """
    rows = [{**_who(play, entrant), **row} for play in plays for entrant, row in _choices(play)]
    frame = _frame(rows, [*_WHO, "action", "share"])
    found = frame.groupby([*_WHO, "action"], sort=False)["share"].agg(["mean", "size"]).reset_index()
    return found.rename(columns={"mean": "share", "size": "choices"})


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

    Columns beside these, all shares in [0, 1] or missing: ``proposes`` (usable proposals), ``approves`` (of proposals
    voted on), ``approved`` (by how many a proposal of the model is approved), ``wins`` (how often its proposal is
    played), ``signs`` (contracts voted for), ``delegates`` (mean probability, under mediation).
    """
    rows = []
    for play in plays:
        for one in play.agreements:
            offered = [seat for seat, design in enumerate(one.proposals) if design is not None]
            for seat, entrant in enumerate(one.entrants):
                row: dict[str, Any] = {**_who(play, entrant), "proposes": float(seat in offered)}
                if offered:
                    row["approves"] = len(one.votes[seat]) / len(offered)
                if seat in offered:
                    row["approved"] = sum(seat in vote for vote in one.votes) / len(one.votes)
                    row["wins"] = (seat in one.winners) / len(one.winners)
                if one.signed:
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
    """Yield entrant, action and share of every action of every distribution."""
    for one in play.rounds:
        for entrant, labels, mix in zip(one.entrants, one.labels, one.mixes, strict=True):
            for label, share in zip(labels, mix, strict=True):
                yield entrant, {"action": label, "share": share / 100}


def _who(play: CrossPlay, entrant: int) -> dict[str, str]:
    return {"mechanism": play.mechanism, "game": play.game, "model": play.models[entrant]}


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def reasons_frame(plays: Iterable[CrossPlay]) -> pd.DataFrame:
    """Return how often choices are explained by each kind of reasons, a row for each mechanism, game, model and label.

    Columns beside these: ``judge``, ``share`` (of the labelled choices that carry the label) and ``labelled`` (their
    number).
    """
    rows = [
        {**_who(play, entrant), "judge": judge, "labels": labels}
        for play in plays
        for entrant, judge, labels in play.labels
    ]
    frame = _frame(rows, [*_WHO, "judge", "labels"])
    found = []
    for key, group in frame.groupby([*_WHO, "judge"], sort=False):
        for label in sorted({label for labels in group["labels"] for label in labels}):
            share = sum(label in labels for labels in group["labels"]) / len(group)
            named = dict(zip([*_WHO, "judge"], key, strict=True))
            found.append({**named, "label": label, "share": share, "labelled": len(group)})
    return _frame(found, [*_WHO, "judge", "label", "share", "labelled"])
