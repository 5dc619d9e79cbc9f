"""Scripted players by name: what the entries ``scripted:cooperate`` and so on of the baselines' registry are."""

from __future__ import annotations

from labmates.agents.players.base import Player


class Cooperate(Player):
    """Plays what is best for all together."""

    baseline = "cooperate"
    description = "Plays what is best for all together, whatever the others do."


class Defect(Player):
    """Plays the secure equilibrium."""

    baseline = "defect"
    description = "Plays for itself alone: the secure equilibrium, whatever the others do."


class Random(Player):
    """Decides by chance."""

    baseline = "random"
    description = "Decides by chance, every allowed decision as likely."


class FairShare(Player):
    """Does its equal share."""

    baseline = "fair-share"
    description = "Does its equal share of what is needed; where nothing is, takes the middle."


class Conditional(Player):
    """Does what its group did last."""

    baseline = "conditional"
    description = "Begins with what is best for all, then does what its group did in the round before."


class TitForTat(Player):
    """Does what its co-players did last."""

    baseline = "tit-for-tat"
    description = "Cooperates if the last that it knows of each co-player is cooperation."


class Grim(Player):
    """Never forgives what it knows of."""

    baseline = "grim"
    description = "Cooperates as long as it knows of nothing but cooperation."


class Standing(Player):
    """Cooperates with those in good standing."""

    baseline = "standing"
    description = "Cooperates with those who have not failed co-players in good standing."


class Equilibrium(Player):
    """Plays the equilibrium that makes cooperation pay."""

    baseline = "equilibrium"
    description = "Plays the strategy under which cooperation is an equilibrium of each mechanism."


class SuspiciousTitForTat(Player):
    """Defects first, then does what the opponent did last."""

    baseline = "suspicious-tit-for-tat"
    description = "Defects first, then does what the opponent did last."


class TitForTwoTats(Player):
    """Defects after two defections of the opponent in a row."""

    baseline = "tit-for-two-tats"
    description = "Defects after two defections of the opponent in a row."


class GenerousTitForTat(Player):
    """Plays tit-for-tat, and now and then lets a defection pass."""

    baseline = "generous-tit-for-tat"
    description = "Plays tit-for-tat, and now and then lets a defection pass."


class WinStayLoseShift(Player):
    """Cooperates if both did the same in the round before."""

    baseline = "win-stay-lose-shift"
    description = "Cooperates if both did the same in the round before."


class Alternator(Player):
    """Cooperates in every other round."""

    baseline = "alternator"
    description = "Cooperates in every other round."


class Joss(Player):
    """Plays tit-for-tat, and defects by chance in a tenth of the rounds in which that cooperates."""

    baseline = "joss"
    description = "Plays tit-for-tat, and defects by chance in a tenth of the rounds in which that cooperates."


class Extort2(Player):
    """Claims twice the opponent's surplus over mutual defection, by chance moves."""

    baseline = "extort-2"
    description = "Claims twice the opponent's surplus over mutual defection, by chance moves."
