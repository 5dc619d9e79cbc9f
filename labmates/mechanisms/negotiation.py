"""Negotiated designs: each player proposes one, all vote by approval, and the game is played under the winner."""

from __future__ import annotations

import json
import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from labmates.games.normal_form import NormalForm, Profile, cooperation
from labmates.mechanisms.base import Blank, Mechanism, Negotiated, Play, Seats, Sheet, Then
from labmates.mechanisms.play import average
from labmates.mechanisms.wording import Answer, player_names
from labmates.util.grouping import grouped
from labmates.util.seeds import derive


class Negotiation(Mechanism):
    """Base of mediation and contracts: proposals, votes, and the game under the winning design.

    Attributes
    ----------
    thing
        The word for a design, for instance ``mediator``.
    is_signed
        Whether the winner takes effect only if all sign it.
    """

    encloses: ClassVar[str] = "The agreement applies to everything below, and is made only once."
    thing: ClassVar[str]
    is_signed: ClassVar[bool] = False

    proposals: Literal["per-match", "once"] = Field(
        "per-match", description="Each player proposes in every match, or once for all its matches at a seat (cheaper)."
    )
    ties: Literal["random", "all"] = Field(
        "random", description="Of proposals with equally many approvals one is drawn, or each is played and averaged."
    )
    selection: Literal["vote", "choice"] = Field(
        "vote",
        description="An approval vote, or everybody chooses one of all proposals: it holds if all choose the same "
        "(CoopEval, footnote 7).",
    )

    @abstractmethod
    def sheet(self, game: NormalForm) -> Sheet:
        """The form of a proposal."""

    @abstractmethod
    def ask_for(self, game: NormalForm) -> str:
        """The request for a proposal."""

    @abstractmethod
    def tell(self, game: NormalForm, design: Answer) -> str:
        """A design as text, on one line."""

    @abstractmethod
    def apply(self, game: NormalForm, design: Answer) -> NormalForm:
        """The game under a design, with its cooperative profile, if any."""

    def stability(self, game: NormalForm, design: Answer) -> tuple[bool, bool]:
        """Whether full cooperation is a Nash equilibrium under a design, and whether it is weakly dominant."""
        under = self.apply(game, design)
        ways = self.cooperative(game, design)
        dominant = [
            {action for action in {way[player] for way in ways} if under.is_weakly_dominant(player, action)}
            for player in range(game.players)
        ]
        return (
            any(map(under.is_nash, ways)),
            any(all(action in actions for action, actions in zip(way, dominant, strict=True)) for way in ways),
        )

    def cooperative(self, game: NormalForm, design: Answer) -> list[Profile]:
        """All profiles under a design in which every player's cooperative action is taken."""
        good = cooperation(game)
        return [] if good is None else [good]

    def voting(self) -> str:
        """The selection of a proposal, as a rule for players."""
        if self.selection == "choice":
            return (
                f"Before the game, players agree on a {self.thing}: each proposes one, and then all choose, at the "
                "same time, one of the proposals or none. A proposal takes effect if all players choose it. If they "
                f"choose differently, or nobody makes a valid proposal, the game is played without a {self.thing}."
            )
        tie = "one of them is drawn" if self.ties == "random" else "each of them is played, and points are averaged"
        return (
            f"Before the game, players agree on a {self.thing}: each proposes one, and then all vote by approval. The "
            f"proposal with the most approvals wins; if several are tied, {tie}. If nobody makes a valid proposal or "
            f"approves of one, the game is played without a {self.thing}."
        )

    @property
    def _asks_to_sign(self) -> bool:
        """Whether to ask for signatures; to choose a contract among all proposals is to sign it."""
        return self.is_signed and self.selection == "vote"

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Ask for proposals and votes, then play the game under the winner."""
        self.check(game)
        n = game.players
        here = f"{seats.step}{self.name}/"
        table = replace(seats, step=here)
        sheet = self.sheet(game)
        shared = self.name if self.proposals == "once" else ""
        ask = seats.words.proposal(self, game, once=bool(shared))
        answers = yield table.ask("propose", [ask] * n, [sheet] * n, shared=shared)
        proposals = [dict(answer) if answer else None for answer in answers]
        offered = [seat for seat, design in enumerate(proposals) if design is not None]
        votes: list[tuple[int, ...]] = [()] * n
        tied: list[int] = []
        if offered:
            votes = yield from self._vote(game, table, offered, proposals)
            approvals = {seat: sum(seat in vote for vote in votes) for seat in offered}
            most = max(approvals.values())
            tied = [seat for seat in offered if approvals[seat] == most > 0]
        winners = tied
        if self.selection == "choice":
            winners = [seat for seat in tied if all(seat in vote for vote in votes)]
        elif self.ties == "random" and tied:
            winners = [random.Random(derive(seats.seed, "tie", here)).choice(tied)]
        signed: list[tuple[bool, ...]] = []
        results, shares = [], []
        # Each design is played once.
        for alike in grouped((json.dumps(proposals[seat], sort_keys=True), seat) for seat in winners).values():
            share = len(alike) / len(winners)
            design = proposals[alike[0]]
            assert design is not None
            label = "" if len(alike) == len(winners) else f"{alike[0]}/"
            now = replace(table, step=f"{here}{label}", weight=seats.weight * share)
            result = yield from self._under(game, now, alike, design, then, signed)
            results.append(result)
            shares.append(share)
        if not results:
            now = table.telling(
                [seats.words.no_design(self, proposed=bool(offered))] * n, [{"design": None, "in_force": False}] * n
            )
            results, shares = [(yield from then(game, now))], [1.0]
        seats.log.append(
            Negotiated(
                step=f"{here}outcome",
                round=seats.round,
                agents=seats.agents,
                proposals=tuple(proposals),
                stable=tuple(None if design is None else self.stability(game, design) for design in proposals),
                votes=tuple(votes),
                winners=tuple(winners),
                tied=len(tied),
                signed=tuple(signed),
            )
        )
        return replace(average(results, shares), deeds=results[0].deeds)

    def _vote(self, game: NormalForm, table: Seats, offered: Sequence[int], proposals: Sequence[Answer | None]) -> Any:
        """The seats of the approved proposals, for each voter."""
        n = game.players
        designs = {f"P{seat + 1}": proposals[seat] for seat in offered}
        told = [table.words.ballot(self, game, proposals, me) for me in range(n)]
        asking = table.telling(told, [{"proposals": designs}] * n)
        if self.selection == "choice":
            sheet = Sheet((Blank("choice", (*designs, "none")),), {"choice": "none"})
        else:
            sheet = Sheet(tuple(Blank(name, None) for name in designs), dict.fromkeys(designs, False))
        answers = yield asking.ask("vote", [table.words.text(self.selection, thing=self.thing)] * n, [sheet] * n)
        return [
            tuple(seat for seat in offered if (name := f"P{seat + 1}") == answer.get("choice") or answer.get(name))
            for answer in answers
        ]

    def _under(
        self,
        game: NormalForm,
        seats: Seats,
        proposers: Sequence[int],
        design: Answer,
        then: Then,
        signed: list[tuple[bool, ...]],
    ) -> Play:
        """Play the game under a design, or without it if a required signature is refused."""
        n, words = game.players, seats.words
        designs = [words.design(self, game, design, proposers, me) for me in range(n)]
        told = [words.in_force(self, game, text) for text in designs]
        if self.is_signed and not self._asks_to_sign:
            signed.append((True,) * n)
        if self._asks_to_sign:
            asking = seats.telling(
                [words.text("winner", thing=self.thing, design=text) for text in designs], [{"design": design}] * n
            )
            sheet = Sheet((Blank("sign", None),), {"sign": False})
            answers = yield asking.ask("sign", [words.text("sign", thing=self.thing)] * n, [sheet] * n)
            signed.append(tuple(bool(answer["sign"]) for answer in answers))
            if not all(signed[-1]):
                refusers = [seat for seat in range(n) if not signed[-1][seat]]
                told = [
                    words.text("refused", thing=self.thing, names=player_names(refusers, me), design=text)
                    for me, text in enumerate(designs)
                ]
                without = seats.telling(told, [{"design": design, "in_force": False}] * n)
                return (yield from then(game, without))
        now = seats.telling(told, [{"design": design, "in_force": True}] * n)
        return (yield from then(self.apply(game, design), now))
