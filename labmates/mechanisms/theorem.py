"""The strategy with the cooperative payoff in equilibrium (CoopEval, theorem 1 and appendix D).

All players propose the same design and approve of no other. Under it, and while no defection is known, they cooperate;
in all other cases they play the bad equilibrium. With limited memory, this grim trigger is the basis of the proof
(lemma 1): the norm of good standing, used for reputation with full history, is then not an equilibrium, since a
punishment with a forgotten cause looks like a defection. The strategy uses only the player's view of the game and its
information.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from labmates.games.normal_form import Dilemma, NormalForm, find_dilemma
from labmates.mechanisms.base import Sheet, Stage, past_of
from labmates.mechanisms.mediation import DELEGATE
from labmates.mechanisms.norms import Deed, IsGood, grim
from labmates.mechanisms.wording import Answer


def dilemma_of(view: NormalForm) -> Dilemma:
    """The dilemma of a game; without one, the first actions as cooperation and the last as defection."""
    dilemma = find_dilemma(view)
    if dilemma is not None:
        return dilemma
    return Dilemma((0,) * view.players, tuple(len(own) - 1 for own in view.labels))


def follow(view: NormalForm, stage: Stage, facts: Mapping[str, Any], seat: int, sheet: Sheet) -> Answer:
    """The answer of the strategy.

    Parameters
    ----------
    view
        The game with the player in the first place.
    facts
        The player's information; see `labmates.mechanisms.base.Question`.
    seat
        Its seat in the game.
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
    """Whether a design is `best_design`."""
    if design is None:
        return False
    if not _is_mediator(view, design):
        return dict(design) == _best_contract(view, design)
    dilemma = dilemma_of(view)
    good, bad = view.labels[0][dilemma.cooperate[0]], view.labels[0][dilemma.defect[0]]
    return all(action == (good if name == str(view.players) else bad) for name, action in design.items())


def does_its_part(view: NormalForm, seat: int) -> IsGood:
    """A test of whether a deed is its player's part of the cooperative profile.

    Parameters
    ----------
    seat
        The seat of the player with this view of the game.
    """
    order = [seat, *(other for other in range(view.players) if other != seat)]
    good = {place: view.labels[number][dilemma_of(view).cooperate[number]] for number, place in enumerate(order)}

    def is_good(deed: Deed) -> bool:
        return deed.action in (good[deed.seat], DELEGATE)

    return is_good


def all_on(labels: list[str], chosen: str) -> dict[str, int]:
    """The distribution with all probability on one action."""
    return {label: 100 if label == chosen else 0 for label in labels}


def _is_mediator(view: NormalForm, names: Iterable[str]) -> bool:
    """Whether a design's keys are numbers of players, as for a mediator; a contract's are actions."""
    return set(names) == {str(number) for number in range(1, view.players + 1)}


def dominant_payment(game: NormalForm) -> int:
    """A payment that makes an action strictly dominant: larger than any difference of payoffs."""
    spread = max(game.payoffs[..., player].max() - game.payoffs[..., player].min() for player in range(game.players))
    return (math.ceil(float(spread)) + 1) * (game.players - 1)


def _best_contract(view: NormalForm, actions: Iterable[str]) -> dict[str, int]:
    payment = dominant_payment(view)
    good = view.labels[0][dilemma_of(view).cooperate[0]]
    return {label: payment if label == good else 0 for label in actions}
