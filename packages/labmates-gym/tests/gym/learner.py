"""A softmax policy over scripted players, trained by REINFORCE.

At each stage of a game (propose, vote, sign, choose), a seat draws one of a few scripted players and answers as it does
to the end of the episode: its strategy at this stage. Each seat learns on its own, by the gradient of its reward above
a running mean (Williams 1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from langchain_core.messages import AIMessage
from numpy.typing import NDArray

from labmates.models.scripted import make_baseline
from labmates.models.scripted.base import Heard, ScriptedModel, make_reply
from labmates_gym.parallel import LabmatesEnv, RewardName
from labmates_gym.playing import Question

_MEMORY = 0.95
"""Weight of the past in the running mean and mean square of rewards."""


@dataclass
class Softmax:
    """The policy of one seat: logits over scripted players for each stage.

    Parameters
    ----------
    rate
        Step size of the gradient, for rewards in standard deviations.
    """

    players: Sequence[str]
    rng: np.random.Generator
    rate: float = 0.2
    logits: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    _drawn: dict[str, int] = field(default_factory=dict)
    _weight: float = 0.0
    _sum: float = 0.0
    _sum_of_squares: float = 0.0

    def __post_init__(self) -> None:
        self._models = [make_baseline(name) for name in self.players]

    def shares(self, stage: str) -> NDArray[np.float64]:
        """The probability of each player at a stage."""
        exponentials = np.exp(self.logits[stage] - self.logits[stage].max())
        return np.asarray(exponentials / exponentials.sum())

    def act(self, question: Question) -> AIMessage:
        """The reply of the player drawn for the question's stage in this episode."""
        heard = Heard(tuple(question.messages), tuple(question.tools), int(self.rng.integers(1 << 31)))
        stage = heard.facts["stage"]
        if stage not in self._drawn:
            self.logits.setdefault(stage, np.zeros(len(self.players)))
            self._drawn[stage] = int(self.rng.choice(len(self.players), p=self.shares(stage)))
        model = self._models[self._drawn[stage]]
        assert isinstance(model, ScriptedModel)
        return make_reply(model.compose(heard), heard, model.baseline)

    def learn(self, reward: float) -> None:
        """Follow the gradient of an ended episode's reward."""
        advantage = reward - self._sum / self._weight if self._weight else 0.0
        self._weight = _MEMORY * self._weight + 1
        self._sum = _MEMORY * self._sum + reward
        self._sum_of_squares = _MEMORY * self._sum_of_squares + advantage**2
        if advantage:
            step = self.rate * advantage / (self._sum_of_squares / self._weight) ** 0.5
            for stage, drawn in self._drawn.items():
                gradient = -self.shares(stage)
                gradient[drawn] += 1
                self.logits[stage] += step * gradient
        self._drawn = {}


def learn(
    kind: str,
    condition: dict[str, Any],
    players: Sequence[str],
    metric: str,
    *,
    reward: RewardName,
    episodes: int,
    seed: int,
) -> NDArray[np.float64]:
    """The metric of cooperation in each episode of training; shape ``(episodes,)``."""
    env = LabmatesEnv(kind, reward=reward, **condition)
    generators = np.random.default_rng(seed).spawn(len(env.possible_agents))
    seats = {agent: Softmax(players, rng) for agent, rng in zip(env.possible_agents, generators, strict=True)}
    curve = np.empty(episodes)
    for episode in range(episodes):
        _, infos = env.reset(seed=episode)
        rewards: dict[str, float] = {}
        while env.agents:
            asked = {agent: info["question"] for agent, info in infos.items() if info["question"]}
            _, rewards, _, _, infos = env.step({agent: seats[agent].act(each) for agent, each in asked.items()})
        for agent, policy in seats.items():
            policy.learn(rewards[agent])
        curve[episode] = infos[env.possible_agents[0]]["metrics"][metric]
    return curve
