"""Scripted players by name: what the entries ``scripted:cooperate`` and so on of the baselines' registry are."""

from __future__ import annotations

from labmates.agents.players.base import Player, player

Cooperate = player("cooperate", "Plays what is best for all together, whatever the others do.")
Defect = player("defect", "Plays for itself alone: the secure equilibrium, whatever the others do.")
Random = player("random", "Decides by chance, every allowed decision as likely.")
FairShare = player("fair-share", "Does its equal share of what is needed; where nothing is, takes the middle.")
Conditional = player(
    "conditional", "Begins with what is best for all, then does what its group did in the round before."
)
TitForTat = player("tit-for-tat", "Cooperates if the last that it knows of each co-player is cooperation.")
Grim = player("grim", "Cooperates as long as it knows of nothing but cooperation.")
Standing = player("standing", "Cooperates with those who have not failed co-players in good standing.")
Equilibrium = player("equilibrium", "Plays the strategy under which cooperation is an equilibrium of each mechanism.")
SuspiciousTitForTat = player("suspicious-tit-for-tat", "Defects first, then does what the opponent did last.")
TitForTwoTats = player("tit-for-two-tats", "Defects after two defections of the opponent in a row.")
GenerousTitForTat = player("generous-tit-for-tat", "Plays tit-for-tat, and now and then lets a defection pass.")
WinStayLoseShift = player("win-stay-lose-shift", "Cooperates if both did the same in the round before.")
Alternator = player("alternator", "Cooperates in every other round.")
Joss = player("joss", "Plays tit-for-tat, and defects by chance in a tenth of the rounds in which that cooperates.")
Extort2 = player("extort-2", "Claims twice the opponent's surplus over mutual defection, by chance moves.")

__all__ = ["Player"]
