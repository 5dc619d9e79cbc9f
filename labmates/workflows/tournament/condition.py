"""The condition of a tournament: the single declaration of its parameters."""

from __future__ import annotations

from functools import cached_property
from string import ascii_uppercase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from labmates.games.iterated.match import Payoffs
from labmates.models.catalog import ModelRef
from labmates.workflows.play.wordings import AblatedCondition

DEFAULT_SHARE = (4, 5)
"""Default rounds of a player, as a share of the maximum of its matches: 0.8."""


def _sizes(value: object) -> object:
    """Team sizes in their shortest form: one number if all are equal."""
    parts = [part.strip() for part in str(value).split(",")]
    if not all(part.isascii() and part.isdigit() and 1 <= int(part) <= 50 for part in parts):
        raise ValueError("must be a number from 1 to 50, or one for each team, for instance 3,2")
    numbers = [str(int(part)) for part in parts]
    return numbers[0] if len(set(numbers)) == 1 and len(numbers) > 1 else ",".join(numbers)


class TournamentCondition(AblatedCondition):
    """Play a tournament of an iterated dilemma, by default the prisoner's (super-additive paper, section 3)."""

    kind: ClassVar[str] = "tournament"
    material: ClassVar[frozenset[str]] = frozenset(
        {
            "structure",
            "teams",
            "team_size",
            "rounds",
            "rounds_per_player",
            "noise",
            "continuation",
            "temptation",
            "reward",
            "punishment",
            "sucker",
        }
    )

    structure: Literal["ri", "gc", "sa"] = Field(
        description="Who meets, and which score counts: ri (repeated interaction: everybody meets, each player's own "
        "score), gc (group competition: only players of different teams meet, the team's score) or sa "
        "(super-additive: everybody meets, both scores)."
    )
    model: ModelRef = Field(description="The model of all players, provider:name (see: labmates models).")
    model_for: dict[str, ModelRef] = Field(
        default_factory=dict,
        description="Model of one team or player, A=MODEL or P2=MODEL; repeatable.",
    )
    teams: int = Field(2, ge=1, le=26, description="Number of teams.")
    team_size: Annotated[str, BeforeValidator(_sizes)] = Field(
        "3", description="Players per team, at most 50: one number, or one per team such as 3,2."
    )
    rounds: int = Field(20, ge=1, le=200, description="Maximum number of rounds per match.")
    rounds_per_player: int | None = Field(
        None,
        ge=1,
        description="Rounds per player in the whole tournament, below the maximum of its matches; by default 0.8 "
        "times that maximum, rounded down.",
    )
    noise: float = Field(
        0.0,
        ge=0,
        le=0.5,
        description="Probability that a move is flipped; all players see the flipped move.",
    )
    continuation: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Probability of another round in a match, up to --rounds.",
    )
    plan_every: int = Field(5, ge=1, le=1000, description="Rounds between a player's plans.")
    critique_turns: int = Field(
        1, ge=0, le=5, description="Rounds in which a plan is criticised and improved; 0 switches planning off."
    )
    plans: Literal["own", "shared"] = Field(
        "own",
        description="Visibility of plans: own, or shared (planner and critic also see the latest plans of the "
        "player's teammates).",
    )
    messages: Literal["none", "each-match", "each-round"] = Field(
        "none",
        description="Simultaneous messages between the players of a match, before its first round or before each "
        "round.",
    )
    reputation: Literal["none", "shown"] = Field(
        "none",
        description="Visibility of the opponent's cooperation rate in its earlier matches.",
    )
    standings: Literal["none", "shown"] = Field(
        "none",
        description="Visibility of points and places before each match, of players (ri), teams (gc) or both (sa).",
    )
    team_choice: Literal["given", "wished"] = Field(
        "given",
        description="Formation of teams: given, or wished (players introduce themselves to all and name desired "
        "teammates).",
    )
    comprehension: Literal["asked", "skipped"] = Field(
        "asked", description="Comprehension questions to both players after each match."
    )
    temptation: int = Field(5, ge=-1000, le=1000, description="Points for defecting against a cooperator.")
    reward: int = Field(3, ge=-1000, le=1000, description="Points for each when both cooperate.")
    punishment: int = Field(0, ge=-1000, le=1000, description="Points for each when both defect.")
    sucker: int = Field(-1, ge=-1000, le=1000, description="Points for cooperating against a defector.")

    _formed: dict[str, list[str]] | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _complete(self) -> TournamentCondition:
        assert self.payoffs.game  # Payoffs of no dilemma are refused.
        sizes = self.team_size.split(",")
        if len(sizes) not in (1, self.teams):
            raise ValueError(f"--team-size names {len(sizes)} sizes for {self.teams} teams")
        if self.structure == "gc" and self.teams < 2:
            raise ValueError("group competition needs at least two teams")
        if self.team_choice == "wished":
            self._check_choice()
        if self.plans == "shared" and (self.structure == "ri" or not self.critique_turns or max(map(int, sizes)) < 2):
            raise ValueError("shared plans need the structure gc or sa, teams of two or more, and critique turns")
        if len(self.players) < 2:
            raise ValueError("a tournament needs at least two players")
        most = self.rounds * min(self.matches_of(player) for player in self.players)
        if most < 2:
            raise ValueError("the matches of a player must have at least two rounds in total")
        if self.rounds_per_player is None:
            share, of = DEFAULT_SHARE
            # Recorded explicitly, so that equal conditions have equal keys.
            object.__setattr__(self, "rounds_per_player", max(1, most * share // of))
        elif self.rounds_per_player >= most:
            raise ValueError(
                f"--rounds-per-player must be below {most}, the rounds that a player's matches could have "
                f"(given: {self.rounds_per_player})"
            )
        return self

    def _check_choice(self) -> None:
        if self.structure == "ri" or self.teams < 2 or len(set(self.team_size.split(","))) > 1:
            raise ValueError("wished teams need the structure gc or sa, and at least two teams of equal size")
        if teams := set(self.model_for) & set(self.players_of):
            raise ValueError(f"wished teams are unknown in advance; give models to players (P2=…), not to {min(teams)}")

    def with_teams(self, players_of: dict[str, list[str]]) -> TournamentCondition:
        """The condition with the teams formed by players' wishes."""
        formed = type(self).model_validate(self.model_dump())
        formed._formed = players_of
        for name in ("players_of", "players"):
            formed.__dict__.pop(name, None)  # cached properties
        return formed

    @property
    def has_teams(self) -> bool:
        """Whether the teams are known."""
        return self.team_choice == "given" or self._formed is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """Tags of its traces."""
        return self.structure, self.model

    @property
    def payoffs(self) -> Payoffs:
        """The payoffs of a round."""
        return Payoffs(self.temptation, self.reward, self.punishment, self.sucker)

    @property
    def total_rounds(self) -> int:
        """Rounds of each player in the whole tournament."""
        assert self.rounds_per_player is not None
        return self.rounds_per_player

    @property
    def within_teams(self) -> bool:
        """Whether players of one team meet too."""
        return self.structure != "gc"

    @cached_property
    def players_of(self) -> dict[str, list[str]]:
        """The players of each team; names do not reveal teams."""
        if self._formed is not None:
            return self._formed
        sizes = [int(size) for size in self.team_size.split(",")]
        sizes = sizes * self.teams if len(sizes) == 1 else sizes
        firsts = [sum(sizes[:number]) + 1 for number in range(self.teams)]
        return {
            ascii_uppercase[number]: [f"P{first + place}" for place in range(size)]
            for number, (first, size) in enumerate(zip(firsts, sizes, strict=True))
        }

    @cached_property
    def players(self) -> dict[str, str]:
        """The team of each player."""
        return {player: team for team, players in self.players_of.items() for player in players}

    def mates(self, player: str) -> list[str]:
        """The teammates of a player."""
        return [other for other in self.players_of[self.players[player]] if other != player]

    def matches_of(self, player: str) -> int:
        """Number of scheduled matches of a player."""
        others = len(self.players) - 1
        return others if self.within_teams else others + 1 - len(self.players_of[self.players[player]])

    def model_of(self, player: str) -> str:
        """The model of a player."""
        return self.model_for.get(player, self.model_for.get(self.players[player], self.model))

    def models(self) -> list[str]:
        """The models, each once, in the order of the players."""
        return list(dict.fromkeys(map(self.model_of, self.players)))

    def check(self) -> None:
        """Check that models are known and can play, and that teams and players with a model exist."""
        from labmates.agents.players.base import check_player
        from labmates.errors import unknown_name
        from labmates.models.names import parse_model

        known: list[Any] = [*self.players_of, *self.players]
        for name in self.model_for:
            if name not in known:
                raise unknown_name("team or player", name, known)
        for model in self.models():
            parsed = parse_model(model)
            if parsed.scripted:
                check_player(parsed.name, self.payoffs)
        self.check_structured()
