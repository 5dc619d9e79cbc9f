"""Scripted players by name: what the entries ``scripted:cooperate`` and so on of the baselines' registry are."""

from __future__ import annotations

from labmates.agents.players.base import Player, player

Cooperate = player("cooperate", "Plays the social optimum, whatever the others do.")
Defect = player("defect", "Plays the secure equilibrium, whatever the others do.")
Random = player("random", "Draws each decision uniformly from the allowed ones.")
FairShare = player(
    "fair-share", "Contributes an equal share of what is needed; if nothing is, the middle of the range."
)
Conditional = player("conditional", "Begins with the social optimum, then matches its group's previous round.")
TitForTat = player("tit-for-tat", "Cooperates if each co-player's last known move was cooperation.")
Grim = player("grim", "Cooperates until it knows of a defection, then never again.")
Standing = player("standing", "Cooperates with players that have not defected against players in good standing.")
Equilibrium = player("equilibrium", "Plays the strategy under which cooperation is an equilibrium of each mechanism.")
SuspiciousTitForTat = player("suspicious-tit-for-tat", "Defects first, then repeats the opponent's last move.")
TitForTwoTats = player("tit-for-two-tats", "Defects after two defections of the opponent in a row.")
GenerousTitForTat = player("generous-tit-for-tat", "Plays tit-for-tat, but sometimes forgives a defection.")
WinStayLoseShift = player("win-stay-lose-shift", "Cooperates if both made the same move in the previous round.")
Alternator = player("alternator", "Cooperates in every other round.")
Joss = player("joss", "Plays tit-for-tat, but defects in a random tenth of the rounds where that would cooperate.")
Extort2 = player("extort-2", "Secures twice the opponent's surplus over mutual defection, with random moves.")

__all__ = ["Player"]
