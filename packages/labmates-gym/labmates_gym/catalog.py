"""The environments to train on and to test with, split by framing and by game."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from labmates.errors import UsageError
from labmates.games.dilemmas import DILEMMAS, get_dilemma
from labmates.games.registry import GAMES
from labmates.mechanisms.registry import MECHANISMS, make_mechanisms

Split = Literal["train", "framing", "game"]
SPLITS: Final[tuple[Split, ...]] = ("train", "framing", "game")
HELD_OUT: Final[Mapping[str, tuple[str, ...]]] = {
    "dilemma": ("travellers", "trust"),
    "game": ("common-pool-sanctions", "o-ring"),
    "science": ("anomaly",),
    "tournament": ("sa",),
}
"""Games of no training environment, by kind: for tournaments structures, for the lab tasks."""
_FRAMINGS: Final[Mapping[str, tuple[str, str, str]]] = {
    "dilemma": ("wording", "ours", "paper"),
    "game": ("framing", "standard", "alternate"),
    "tournament": ("wording", "ours", "paper"),
}
"""The parameter that frames a game, its value for training and the held-out one; the lab has one framing."""
_SMALL: Final[Mapping[str, Mapping[str, Any]]] = {
    "dilemma": {},
    "game": {"groups": 2, "group_size": 3},
    "science": {
        "difficulty": "easy",
        "organisation": "decentralised",
        "budget": "0.50",
        "max_turns": 3,
        "deliberation_rounds": 0,
        "max_requests": 0,
    },
    "tournament": {"teams": 2, "team_size": "2", "rounds": 5, "critique_turns": 0, "comprehension": "skipped"},
}
_GAME_OF: Final = {"dilemma": "game", "game": "game", "science": "task", "tournament": "structure"}


@dataclass(frozen=True)
class Listed:
    """An environment of the catalogue.

    Attributes
    ----------
    kind, condition
        The arguments of `labmates_gym.parallel.LabmatesEnv`.
    split
        ``train``; ``framing``: a training game in words that no training environment uses; ``game``: a game of no
        training environment.
    """

    kind: str
    condition: Mapping[str, Any]
    split: Split

    @property
    def name(self) -> str:
        """Its name, unique in its split: kind, game and mechanism."""
        game, mechanism = self.condition[_GAME_OF[self.kind]], self.condition.get("mechanism")
        return "/".join(filter(None, (self.kind, game, mechanism)))


def environments(split: Split | None = None) -> list[Listed]:
    """The environments of a split, by default of all."""
    return [listed for listed in _environments() if split in (None, listed.split)]


def _environments() -> Iterator[Listed]:
    for kind, games in _games().items():
        parameter, train, test = _FRAMINGS.get(kind, ("", "", ""))
        for game in games:
            values = {_GAME_OF[kind]: game, **_SMALL[kind]}
            framings = [train] if game in HELD_OUT[kind] or not parameter else [train, test]
            for framing in framings:
                split: Split = "game" if game in HELD_OUT[kind] else "train" if framing == train else "framing"
                framed = {**values, parameter: framing} if parameter else values
                for mechanism in _mechanisms(game) if kind == "dilemma" else [None]:
                    yield Listed(kind, framed if mechanism is None else {**framed, "mechanism": mechanism}, split)


def _games() -> dict[str, list[str]]:
    return {
        "dilemma": list(filter(DILEMMAS.is_own, DILEMMAS.names())),
        "game": list(filter(GAMES.is_own, GAMES.names())),
        "science": ["ecology", "anomaly"],
        "tournament": ["ri", "gc", "sa"],
    }


def _mechanisms(dilemma: str) -> Iterator[str]:
    """The built-in mechanisms that fit a dilemma."""
    game = get_dilemma(dilemma).game()
    for name in filter(MECHANISMS.is_own, MECHANISMS.names()):
        try:
            make_mechanisms(name)[0].check(game)
        except UsageError:
            continue
        yield name
