"""The strategy under which the cooperative payoff is that of an equilibrium (CoopEval, theorem 1 and appendix D).

All propose the same design and approve of no other; under it, and as long as nothing is known but cooperation, they
cooperate; in all other cases they play the bad equilibrium. Where only the last rounds are known, that grim trigger is
what the proof rests on (lemma 1): the norm of good standing, which it uses for reputation with all of history known, is
no equilibrium then, since a punishment looks like an offence when its cause is forgotten. The strategy is one of a
player who knows the game as it sees it and what it was told, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from labmates.games.normal_form import Dilemma, NormalForm, find_dilemma
from labmates.mechanisms.base import Answer, Sheet, Stage, past_of
from labmates.mechanisms.mediation import DELEGATE
from labmates.mechanisms.norms import Deed, IsGood, grim


def dilemma_of(view: NormalForm) -> Dilemma:
    """The dilemma of a game; for one that has none, the first actions and the last."""
    dilemma = find_dilemma(view)
    if dilemma is not None:
        return dilemma
    return Dilemma((0,) * view.players, tuple(len(own) - 1 for own in view.labels))


def follow(view: NormalForm, stage: Stage, facts: Mapping[str, Any], seat: int, sheet: Sheet) -> Answer:
    """The answer of the strategy.

    Parameters
    ----------
    view
        The game as the player sees it, itself in the first place.
    facts
        What it was told; see `labmates.mechanisms.base.Question`.
    seat
        Where it sits in the game.
    sheet
        What it may answer.
    """
    dilemma = dilemma_of(view)
    if stage == "propose":
        return best_design(view, sheet)
    if stage == "vote" and "choice" in sheet.fallback:
        best = (name for name, design in facts["proposals"].items() if is_best(view, design))
        return {"choice": next(best, "none")}
    if stage == "vote":
        return {name: is_best(view, design) for name, design in facts["proposals"].items()}
    if stage == "sign":
        return {"sign": is_best(view, facts["design"])}
    if stage in ("announce", "settle"):
        return sheet.fallback
    labels = [blank.name for blank in sheet.blanks]
    cooperates = False
    if "design" in facts:
        cooperates = facts["in_force"] and is_best(view, facts["design"])
        if cooperates and DELEGATE in labels:
            return all_on(labels, DELEGATE)
    past = past_of(facts)
    if past is not None:
        cooperates = (cooperates or "design" not in facts) and grim(past, does_its_part(view, seat))
    profile = dilemma.cooperate if cooperates else dilemma.defect
    return all_on(labels, view.labels[0][profile[0]])


def best_design(view: NormalForm, sheet: Sheet) -> Answer:
    """The mediator or the contract that makes cooperation an equilibrium."""
    dilemma = dilemma_of(view)
    names = [blank.name for blank in sheet.blanks]
    if not _is_mediator(view, names):
        return _best_contract(view, names)
    good, bad = view.labels[0][dilemma.cooperate[0]], view.labels[0][dilemma.defect[0]]
    return {name: good if int(name) == view.players else bad for name in names}


def is_best(view: NormalForm, design: Answer | None) -> bool:
    """Whether a design is the one of `best_design`."""
    if design is None:
        return False
    if not _is_mediator(view, design):
        return dict(design) == _best_contract(view, design)
    dilemma = dilemma_of(view)
    good, bad = view.labels[0][dilemma.cooperate[0]], view.labels[0][dilemma.defect[0]]
    return all(action == (good if name == str(view.players) else bad) for name, action in design.items())


def does_its_part(view: NormalForm, seat: int) -> IsGood:
    """A test of whether a player did its part of the cooperative play.

    Parameters
    ----------
    seat
        Where the player sits who sees the game like this.
    """
    order = [seat, *(other for other in range(view.players) if other != seat)]
    good = {place: view.labels[number][dilemma_of(view).cooperate[number]] for number, place in enumerate(order)}

    def is_good(deed: Deed) -> bool:
        return deed.action in (good[deed.seat], DELEGATE)

    return is_good


def all_on(labels: list[str], chosen: str) -> dict[str, int]:
    """The distribution that takes one action for sure."""
    return {label: 100 if label == chosen else 0 for label in labels}


def _is_mediator(view: NormalForm, names: Iterable[str]) -> bool:
    """Whether a design covers each number of players; for a contract, each action."""
    return set(names) == {str(number) for number in range(1, view.players + 1)}


def dominant_payment(game: NormalForm) -> int:
    """A payment for an action that makes it strictly dominant: more than any payoffs are apart."""
    spread = max(game.payoffs[..., player].max() - game.payoffs[..., player].min() for player in range(game.players))
    return (math.ceil(float(spread)) + 1) * (game.players - 1)


def _best_contract(view: NormalForm, actions: Iterable[str]) -> dict[str, int]:
    payment = dominant_payment(view)
    good = view.labels[0][dilemma_of(view).cooperate[0]]
    return {label: payment if label == good else 0 for label in actions}
