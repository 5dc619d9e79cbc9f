"""Designs that players agree on: each proposes one, all vote by approval, and the game is played under the winner."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from labmates.games.normal_form import NormalForm, Profile
from labmates.mechanisms.base import Answer, Blank, Calls, Mechanism, Negotiated, Play, Result, Seats, Sheet, Then
from labmates.seeds import derive

_VOTE = "Vote: which of the proposals do you approve of? You may approve of any number of them, of all, or of none."


class Negotiation(Mechanism):
    """What mediation and contracts share: proposals, votes, and the game under the winning design.

    Attributes
    ----------
    thing
        What a design is called, for instance ``mediator``.
    is_signed
        Whether all have to sign the winner before it holds.
    """

    thing: ClassVar[str]
    is_signed: ClassVar[bool] = False

    proposals: Literal["per-match", "once"] = Field(
        "per-match", description="Each player proposes in every match, or once for all its matches at a seat (cheaper)."
    )
    ties: Literal["random", "all"] = Field(
        "random", description="Of proposals with equally many approvals one is drawn, or each is played and averaged."
    )

    @abstractmethod
    def sheet(self, game: NormalForm) -> Sheet:
        """Return the form of a proposal."""

    @abstractmethod
    def ask_for(self, game: NormalForm) -> str:
        """Return how a proposal is asked for."""

    @abstractmethod
    def tell(self, game: NormalForm, design: Answer) -> str:
        """Return a design in words, on one line."""

    @abstractmethod
    def apply(self, game: NormalForm, design: Answer) -> NormalForm:
        """Return the game under a design, with the play in which all cooperate under it, if there is one."""

    def stability(self, game: NormalForm, design: Answer) -> tuple[bool, bool]:
        """Tell whether full cooperation is a Nash equilibrium under a design, and whether it is weakly dominant."""
        under = self.apply(game, design)
        ways = self.cooperative(game, design)
        dominant = [
            {action for action in {way[player] for way in ways} if under.is_weakly_dominant(player, action)}
            for player in range(game.players)
        ]
        return (
            any(map(under.is_nash, ways)),
            any(all(action in own for action, own in zip(way, dominant, strict=True)) for way in ways),
        )

    def cooperative(self, game: NormalForm, design: Answer) -> list[Profile]:
        """Return all plays of the game under a design in which everybody's cooperative action is taken."""
        good = cooperation(game)
        return [] if good is None else [good]

    def calls(self, game: NormalForm, inner: Calls) -> Calls:
        """Ask everybody for a vote, for a signature if there is one, and for a proposal."""
        once = self.proposals == "once"
        asked = game.players * (1 + self.is_signed + (not once))
        return Calls(inner.per_match + asked, inner.shared + once)

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Let players propose and vote, and the game be played under what has won."""
        self.check(game)
        n = game.players
        here = f"{seats.step}{self.name}/"
        table = seats.telling([""] * n, [{}] * n, step=here)
        sheet = self.sheet(game)
        shared = self.name if self.proposals == "once" else ""
        asked = table.ask("propose", [self.ask_for(game)] * n, [sheet] * n, shared=shared)
        answers = yield asked
        proposals = [dict(answer) if answer else None for answer in answers]
        offered = [seat for seat, design in enumerate(proposals) if design is not None]
        votes: list[tuple[int, ...]] = [()] * n
        tied: list[int] = []
        if offered:
            votes = yield from self._vote(game, table, offered, proposals)
            approvals = {seat: sum(seat in vote for vote in votes) for seat in offered}
            tied = [seat for seat in offered if approvals[seat] == max(approvals.values())]
        winners = tied
        if self.ties == "random" and tied:
            winners = [random.Random(derive(seats.seed, "tie", here)).choice(tied)]
        signed: list[tuple[bool, ...]] = []
        results, shares = [], []
        for alike in _alike(winners, proposals):
            share = len(alike) / len(winners)
            design = proposals[alike[0]]
            assert design is not None
            label = "" if len(alike) == len(winners) else f"{alike[0]}/"
            now = table.telling([""] * n, [{}] * n, step=f"{here}{label}", weight=seats.weight * share)
            result = yield from self._under(game, now, design, then, signed)
            results.append(result)
            shares.append(share)
        if not results:
            said = f"## The {self.thing}\nNobody has proposed one; the game is played without."
            now = table.telling([said] * n, [{"design": None, "in_force": False}] * n)
            results, shares = [(yield from then(game, now))], [1.0]
        seats.log.append(
            Negotiated(
                step=f"{here}outcome",
                round=seats.round,
                agents=seats.agents,
                proposals=tuple(proposals),
                stable=tuple(None if one is None else self.stability(game, one) for one in proposals),
                votes=tuple(votes),
                winners=tuple(winners),
                tied=len(tied),
                signed=tuple(signed),
            )
        )
        return _mean(results, shares)

    def _vote(self, game: NormalForm, table: Seats, offered: Sequence[int], proposals: Sequence[Answer | None]) -> Any:
        """Ask for votes; return the seats that each approves of."""
        n = game.players
        names = {seat: f"P{place + 1}" for place, seat in enumerate(offered)}
        designs = {name: proposals[seat] for seat, name in names.items()}
        lines = [f"- {name}: {self.tell(game, design)}" for name, design in designs.items() if design is not None]
        told = "\n".join([f"## Proposals for the {self.thing}", *lines])
        asking = table.telling([told] * n, [{"proposals": designs}] * n)
        blanks = tuple(Blank(name, None) for name in designs)
        sheet = Sheet(blanks, dict.fromkeys(designs, False))
        answers = yield asking.ask("vote", [_VOTE] * n, [sheet] * n)
        return [tuple(seat for seat, name in names.items() if answer[name]) for answer in answers]

    def _under(
        self, game: NormalForm, seats: Seats, design: Answer, then: Then, signed: list[tuple[bool, ...]]
    ) -> Play:
        """Let the game be played under a design, if all sign it where that is needed."""
        n = game.players
        line = self.tell(game, design)
        if self.is_signed:
            told = f"## The {self.thing} that has won the vote\n{line}"
            asking = seats.telling([told] * n, [{"design": design}] * n)
            sheet = Sheet((Blank("sign", None),), {"sign": False})
            ask = f"Sign: do you sign the {self.thing}? It holds only if all players sign it."
            answers = yield asking.ask("sign", [ask] * n, [sheet] * n)
            signed.append(tuple(bool(answer["sign"]) for answer in answers))
            if not all(signed[-1]):
                told = f"## The {self.thing}\nIt does not hold, since not all have signed it: {line}"
                without = seats.telling([told] * n, [{"design": design, "in_force": False}] * n)
                return (yield from then(game, without))
        told = f"## The {self.thing} that holds\n{line}"
        now = seats.telling([told] * n, [{"design": design, "in_force": True}] * n)
        return (yield from then(self.apply(game, design), now))


def cooperation(game: NormalForm) -> Profile | None:
    """Return the cooperative play of a game: the one that it names, or else the one that its payoffs tell."""
    from labmates.games.normal_form import find_dilemma

    if game.cooperate is not None:
        return game.cooperate
    found = find_dilemma(game)
    return None if found is None else found.cooperate


def _alike(winners: Sequence[int], proposals: Sequence[Mapping[str, Any] | None]) -> list[list[int]]:
    """Return winners with equal designs together: each design is played once."""
    groups: list[list[int]] = []
    for seat in winners:
        for group in groups:
            if proposals[group[0]] == proposals[seat]:
                group.append(seat)
                break
        else:
            groups.append([seat])
    return groups


def _mean(results: Sequence[Result], shares: Sequence[float]) -> Result:
    payoffs = np.array(shares) @ np.array([result.payoffs for result in results])
    expected = np.array(shares) @ np.array([result.expected for result in results])
    return Result(tuple(map(float, payoffs)), tuple(map(float, expected)), results[0].deeds)
