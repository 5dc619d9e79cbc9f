"""Environments of PettingZoo: the seats of one episode act at the same time, in texts."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any, Literal, get_args

from gymnasium.spaces import Space
from langchain_core.messages import AIMessage
from pettingzoo.utils.env import ParallelEnv

from labmates.budgets.tokens import text_of
from labmates.errors import UsageError, unknown_name
from labmates_gym.playing import Episode, Played, Question
from labmates_gym.seats import Payoffs, Table

RewardName = Literal["own", "welfare", "difference"]
Action = str | AIMessage
Infos = dict[str, dict[str, Any]]
_SAMPLED_CHARS = 40


class Texts(Space[str]):
    """All texts; a sample is a short text of printable ASCII characters."""

    def __init__(self) -> None:
        super().__init__(dtype=str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random text."""
        letters = self.np_random.integers(len(string.printable), size=_SAMPLED_CHARS)
        return "".join(string.printable[letter] for letter in letters)

    def contains(self, x: Any) -> bool:
        """Whether this is a text."""
        return isinstance(x, str)


class LabmatesEnv(ParallelEnv[str, str, Action]):
    """The seats of one experiment as agents.

    An observation is the prompt of a seat's open question, empty for a seat without one, which needs no action then. An
    action is a reply as a model would write it, as a text or, with tool calls, as a LangChain message. Rewards come at
    the end. ``infos[agent]`` has ``question``, the open `Question` or None; at the end ``rewards``, by name, and the
    ``metrics`` of the experiment.

    Parameters
    ----------
    kind
        Kind of experiment: game, dilemma, tournament or science.
    reward
        ``own``: the seat's payoff; ``welfare``: the payoff of all players; ``difference``: the payoff of all players,
        less that without the seat's replies, where the engine's fallbacks act for it and the others don't react
        (Wolpert and Tumer 2002). It is computed, in games by the rules, elsewhere by playing the episode again.
    condition
        Parameters of the condition, as for `labmates.run`; seats without another model are the environment's.

    Raises
    ------
    UsageError
        If an argument is invalid.

    Examples
    --------
    >>> env = LabmatesEnv("dilemma", game="prisoners", mechanism="contract")  # doctest: +SKIP
    >>> observations, infos = env.reset(seed=0)  # doctest: +SKIP
    """

    def __init__(self, kind: str, *, reward: RewardName = "own", **condition: Any) -> None:
        if reward not in get_args(RewardName):
            raise unknown_name("reward", reward, get_args(RewardName))
        self.table = Table.of(kind, condition)
        self.metadata = {"name": f"labmates {kind}", "render_modes": []}
        self.possible_agents = list(self.table.seats)
        self.agents: list[str] = []
        self._reward: RewardName = reward
        self._spaces = {agent: (Texts(), Texts()) for agent in self.possible_agents}
        self._episode: Episode | None = None
        self._seed = -1

    def observation_space(self, agent: str) -> Texts:
        """All texts."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> Texts:
        """All texts."""
        return self._spaces[agent][1]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, str], Infos]:
        """Begin an episode; by default with the seed after the last one, at first 0.

        The seed is that of a run: it decides all that is random but the actions.
        """
        self.close()
        self._seed = self._seed + 1 if seed is None else seed
        self._episode = Episode(self.table.condition, self._seed)
        self.agents = list(self.possible_agents)
        self._episode.advance({})
        return self._observed(), self._infos()

    def step(
        self, actions: Mapping[str, Action]
    ) -> tuple[dict[str, str], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Answer the open questions; actions of seats without one are ignored.

        Raises
        ------
        UsageError
            If no episode is open, or a seat with an open question has no action that is a text or a message.
        LabmatesError
            If the engine can't execute the condition.
        """
        if self._episode is None or not self.agents:
            raise UsageError("no episode is open; call reset first")
        asked = self._asked()
        if missing := [agent for agent in asked if not isinstance(actions.get(agent), Action)]:
            raise UsageError(f"actions: a text or an AIMessage is needed for the open question of {', '.join(missing)}")
        self._episode.advance({question.step: _message(actions[agent]) for agent, question in asked.items()})
        present = list(self.agents)
        has_ended = self._episode.played is not None
        rewards, observed, infos = dict.fromkeys(present, 0.0), self._observed(), self._infos()
        if self._episode.played is not None:
            by_name = self._rewards(self._episode, self._episode.played)
            rewards, metrics = by_name[self._reward], dict(self._episode.played.outcome.metrics)
            for agent, info in infos.items():
                info |= {"rewards": {name: each[agent] for name, each in by_name.items()}, "metrics": metrics}
            self.close()
        return observed, rewards, dict.fromkeys(present, has_ended), dict.fromkeys(present, False), infos

    def _rewards(self, episode: Episode, played: Played) -> dict[RewardName, Payoffs]:
        """The rewards of an ended episode by name; the difference only where it is the environment's."""
        table = self.table
        payoffs, welfare = table.payoffs(played), table.welfare(played)
        rewards: dict[RewardName, Payoffs] = {
            "own": {seat: payoffs[seat] for seat in table.seats},
            "welfare": dict.fromkeys(table.seats, welfare),
        }
        if self._reward == "difference":
            rewards["difference"] = {
                seat: welfare - table.welfare_without(seat, episode, played) for seat in table.seats
            }
        return rewards

    def close(self) -> None:
        """End the open episode."""
        if self._episode is not None:
            self._episode.close()
        self.agents = []

    def _asked(self) -> dict[str, Question]:
        assert self._episode is not None
        return self.table.asked(list(self._episode.open.values()))

    def _observed(self) -> dict[str, str]:
        asked = self._asked()
        return {agent: _text(asked[agent]) if agent in asked else "" for agent in self.agents}

    def _infos(self) -> Infos:
        asked = self._asked()
        return {agent: {"question": asked.get(agent)} for agent in self.agents}


def _message(action: Action) -> AIMessage:
    return AIMessage(action) if isinstance(action, str) else action


def _text(question: Question) -> str:
    return "\n\n".join(f"[{message.type}]\n{text_of(message.content)}" for message in question.messages)
