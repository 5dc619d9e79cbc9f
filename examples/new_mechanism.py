"""A cooperation mechanism in one file.

Whoever defects pays a fine to the others. How high does it have to be before cooperating is an equilibrium of the
prisoner's dilemma, and what do cooperators and defectors earn against each other?
"""

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from pydantic import Field

import labmates
from labmates.games.dilemmas import get_dilemma
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Mechanism, Play, Seats, Then
from labmates.mechanisms.registry import MECHANISMS
from labmates.records.store import Store
from labmates.stats.metagame import mean_payoffs
from labmates.workflows.dilemmas.records import read_cross_play
from labmates_author.mechanisms import check_mechanism


class Fines(Mechanism):
    """Who takes the defecting action pays the others, in equal parts: points are neither made nor lost."""

    name: ClassVar[str] = "fines"
    title: ClassVar[str] = "Fines"
    summary: ClassVar[str] = "Whoever defects pays a fine, which the others share."
    is_theorem: ClassVar[bool] = False
    ignorable: ClassVar[bool] = False

    fine: int = Field(1, ge=0, le=1000, description="What defecting costs.")

    def rules(self, game: NormalForm) -> str:
        """Say what costs how much."""
        assert game.defect is not None
        bad = game.labels[0][game.defect[0]]
        return f"Whoever chooses {bad} pays a fine of {self.fine}, which all other players share equally."

    def fined(self, game: NormalForm) -> NormalForm:
        """Return the game with the fines."""
        assert game.defect is not None
        payoffs = game.payoffs.copy()
        for profile in game.profiles():
            for player, action in enumerate(profile):
                if action == game.defect[player]:
                    payoffs[profile] += Fraction(self.fine, game.players - 1)
                    payoffs[(*profile, player)] -= self.fine + Fraction(self.fine, game.players - 1)
        return replace(game, payoffs=payoffs)

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Let the game with the fines be played."""
        return (yield from then(self.fined(game), seats))


prisoners = get_dilemma("prisoners").game()
assert prisoners.cooperate is not None
print(f"Problems: {check_mechanism(Fines(), {'prisoners': prisoners}) or 'none'}\n")

MECHANISMS.register("fines", Fines)
STORE = "sqlite:///fines.db"
print("fine   cooperation is an equilibrium   cooperator earns   defector earns")
for fine in range(4):
    stable = Fines(fine=fine).fined(prisoners).is_nash(prisoners.cooperate)
    entrants = ["scripted:cooperate", "scripted:defect"]
    [run] = labmates.run("dilemma", game="prisoners", mechanism=f"fines(fine={fine})", entrants=entrants, store=STORE)
    store = Store(STORE)
    play = read_cross_play(run.id, run.condition, entrants, list(store.events(run.id)))
    cooperator, defector = mean_payoffs(play.cell("expected").payoffs)
    store.close()
    print(f"{fine:>4}   {'yes' if stable else 'no':>29}   {cooperator:>16.2f}   {defector:>14.2f}")
