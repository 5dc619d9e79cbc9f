"""A dozen classical strategies for the iterated prisoner's dilemma, each with its source.

A rule is a function of the match so far, the player's moves first, and the payoffs: it returns the probability of
cooperation in the next round, which is 0 or 1 for deterministic strategies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labmates.games.iterated.match import Action, Payoffs, Round

Rule = Callable[[Sequence[Round], Payoffs], float]


def move_of(rule: Rule, rounds: Sequence[Round], payoffs: Payoffs, chance: float) -> Action:
    """The next move by a rule; `chance` is a uniform random number in [0, 1) for this round."""
    return "C" if chance < rule(rounds, payoffs) else "D"


def _cooperate(_rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Axelrod 1984."""
    return 1.0


def _defect(_rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Axelrod 1984."""
    return 0.0


def _random(_rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Axelrod 1980."""
    return 0.5


def _tit_for_tat(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Rapoport, in Axelrod 1980."""
    return float(not rounds or rounds[-1][1] == "C")


def _suspicious(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Boyd and Lorberbaum 1987."""
    return float(bool(rounds) and rounds[-1][1] == "C")


def _two_tats(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Axelrod 1984."""
    return float([other for _, other in rounds[-2:]] != ["D", "D"])


def _generous(rounds: Sequence[Round], payoffs: Payoffs) -> float:
    """Nowak and Sigmund 1992."""
    return 1.0 if _tit_for_tat(rounds, payoffs) else generosity(payoffs)


def generosity(payoffs: Payoffs) -> float:
    """The probability with which generous tit-for-tat forgives a defection (Nowak and Sigmund 1992)."""
    gain, loss = payoffs.temptation - payoffs.reward, payoffs.reward - payoffs.sucker
    return min(1 - gain / loss, (payoffs.reward - payoffs.punishment) / (payoffs.temptation - payoffs.punishment))


def _grim(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Friedman 1971."""
    return float(all(other == "C" for _, other in rounds))


def _win_stay_lose_shift(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Nowak and Sigmund 1993."""
    return float(not rounds or rounds[-1][0] == rounds[-1][1])


def _alternate(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    """Mittal and Deb 2009."""
    return float(len(rounds) % 2 == 0)


def _joss(rounds: Sequence[Round], payoffs: Payoffs) -> float:
    """Joss, in Axelrod 1980."""
    return 1.0 if not rounds else 0.9 * _tit_for_tat(rounds, payoffs)


def _extort(rounds: Sequence[Round], payoffs: Payoffs) -> float:
    """Press and Dyson 2012; Stewart and Plotkin 2012."""
    return 1.0 if not rounds else extortion(payoffs)[rounds[-1]]


def extortion(payoffs: Payoffs) -> Mapping[Round, float]:
    """The probability of cooperation after each kind of round, with extortion factor 2 (Press and Dyson 2012).

    In the long run, the player's surplus over mutual defection is twice the opponent's. The remaining free parameter is
    1/9 (Stewart and Plotkin 2012), or the greatest value at which all four are probabilities if that is less.
    """
    base, slope = payoffs.punishment, 0.5
    gain, loss, mutual = payoffs.temptation - base, base - payoffs.sucker, payoffs.reward - base
    after_alone, after_defecting = slope * loss + gain, loss + slope * gain
    scale = min(1 / 9, 1 / max(after_alone, after_defecting, (1 - slope) * mutual))
    return {
        ("C", "C"): 1 - scale * (1 - slope) * mutual,
        ("C", "D"): 1 - scale * after_alone,
        ("D", "C"): scale * after_defecting,
        ("D", "D"): 0.0,
    }


STRATEGIES: Mapping[str, Rule] = {
    "cooperate": _cooperate,
    "defect": _defect,
    "random": _random,
    "tit-for-tat": _tit_for_tat,
    "suspicious-tit-for-tat": _suspicious,
    "tit-for-two-tats": _two_tats,
    "generous-tit-for-tat": _generous,
    "grim": _grim,
    "win-stay-lose-shift": _win_stay_lose_shift,
    "alternator": _alternate,
    "joss": _joss,
    "extort-2": _extort,
}
"""The rules of all strategies by name."""
IN_PRISONERS_DILEMMA = frozenset({"generous-tit-for-tat", "extort-2"})
"""Strategies whose probabilities are defined for payoffs of a prisoner's dilemma alone."""
