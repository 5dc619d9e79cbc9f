"""A dozen classical strategies for the iterated prisoner's dilemma.

Each is a function of the match so far that returns the probability of cooperation in the next round; deterministic
strategies return 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from labmates.games.iterated.match import Action, Payoffs, Round

Rule = Callable[[Sequence[Round], Payoffs], float]


@dataclass(frozen=True)
class Strategy:
    """A strategy.

    Attributes
    ----------
    about
        Its behaviour, in one line.
    source
        Its first or best description in the literature.
    library
        Its name in the library `axelrod`.
    rule
        The probability of cooperation after the player's rounds so far, with these payoffs.
    """

    name: str
    about: str
    source: str
    library: str
    rule: Rule

    def action(self, rounds: Sequence[Round], payoffs: Payoffs, chance: float) -> Action:
        """The next move.

        Parameters
        ----------
        rounds
            The rounds so far, with the player's moves first.
        chance
            A uniform random number in [0, 1) for this round.
        """
        return "C" if chance < self.rule(rounds, payoffs) else "D"


def _cooperate(_rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return 1.0


def _defect(_rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return 0.0


def _random(_rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return 0.5


def _tit_for_tat(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return float(not rounds or rounds[-1][1] == "C")


def _suspicious(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return float(bool(rounds) and rounds[-1][1] == "C")


def _two_tats(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return float([other for _, other in rounds[-2:]] != ["D", "D"])


def _generous(rounds: Sequence[Round], payoffs: Payoffs) -> float:
    return 1.0 if _tit_for_tat(rounds, payoffs) else generosity(payoffs)


def generosity(payoffs: Payoffs) -> float:
    """The probability with which generous tit-for-tat forgives a defection (Nowak and Sigmund 1992)."""
    gain, loss = payoffs.temptation - payoffs.reward, payoffs.reward - payoffs.sucker
    return min(1 - gain / loss, (payoffs.reward - payoffs.punishment) / (payoffs.temptation - payoffs.punishment))


def _grim(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return float(all(other == "C" for _, other in rounds))


def _win_stay_lose_shift(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return float(not rounds or rounds[-1][0] == rounds[-1][1])


def _alternate(rounds: Sequence[Round], _payoffs: Payoffs) -> float:
    return float(len(rounds) % 2 == 0)


def _joss(rounds: Sequence[Round], payoffs: Payoffs) -> float:
    return 1.0 if not rounds else 0.9 * _tit_for_tat(rounds, payoffs)


def _extort(rounds: Sequence[Round], payoffs: Payoffs) -> float:
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


STRATEGIES: Mapping[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy("cooperate", "always cooperates", "Axelrod 1984", "Cooperator", _cooperate),
        Strategy("defect", "always defects", "Axelrod 1984", "Defector", _defect),
        Strategy("random", "cooperates in half of the rounds, by chance", "Axelrod 1980", "Random", _random),
        Strategy(
            "tit-for-tat",
            "cooperates first, then does what the opponent did last",
            "Rapoport, in Axelrod 1980",
            "TitForTat",
            _tit_for_tat,
        ),
        Strategy(
            "suspicious-tit-for-tat",
            "defects first, then does what the opponent did last",
            "Boyd and Lorberbaum 1987",
            "SuspiciousTitForTat",
            _suspicious,
        ),
        Strategy(
            "tit-for-two-tats",
            "defects after two defections in a row",
            "Axelrod 1984",
            "TitFor2Tats",
            _two_tats,
        ),
        Strategy(
            "generous-tit-for-tat",
            "plays tit-for-tat and now and then lets a defection pass",
            "Nowak and Sigmund 1992",
            "GTFT",
            _generous,
        ),
        Strategy("grim", "cooperates until the first defection, then never", "Friedman 1971", "Grudger", _grim),
        Strategy(
            "win-stay-lose-shift",
            "cooperates if both did the same last time",
            "Nowak and Sigmund 1993",
            "WinStayLoseShift",
            _win_stay_lose_shift,
        ),
        Strategy("alternator", "cooperates in every other round", "Mittal and Deb 2009", "Alternator", _alternate),
        Strategy(
            "joss",
            "plays tit-for-tat, and defects by chance in a tenth of the rounds in which that cooperates",
            "Joss, in Axelrod 1980",
            "FirstByJoss",
            _joss,
        ),
        Strategy(
            "extort-2",
            "claims twice the opponent's surplus over mutual defection",
            "Press and Dyson 2012; Stewart and Plotkin 2012",
            "ZDExtort2",
            _extort,
        ),
    )
}
"""All strategies by name."""
IN_PRISONERS_DILEMMA = frozenset({"generous-tit-for-tat", "extort-2"})
"""Strategies whose probabilities are defined for payoffs of a prisoner's dilemma alone."""
