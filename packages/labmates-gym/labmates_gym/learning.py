"""A softmax policy, trained by REINFORCE in an environment, and the equilibrium that it should reach.

At each stage of a game (propose, vote, sign, choose), a seat draws one of a few scripted players and answers as it does
to the end of the episode: its strategy at this stage. Each seat learns on its own, by the gradient of its reward above
a running mean (Williams 1992).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from langchain_core.messages import AIMessage
from numpy.typing import NDArray

from labmates.games.dilemmas import get_dilemma
from labmates.mechanisms.registry import MECHANISMS, make_mechanisms
from labmates.models.scripted import make_baseline
from labmates.models.scripted.base import Heard, ScriptedModel, make_reply
from labmates.stats.figures import COLOURS, GREY, new_figure
from labmates_gym.parallel import LabmatesEnv, RewardName
from labmates_gym.playing import Question

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONCE: Final = ("cooperate", "defect", "equilibrium")
"""The players of a dilemma that is played once."""
REPEATED: Final = ("standing", "defect")
"""Those of a repeated one: the norm of good standing, and defection."""
TERMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "repetition": {"continuation": 0.9, "memory": 15},
    "reputation": {"continuation": 0.9, "memory": 15, "order": 3},
}
"""Terms of repeated games. The norm presumes the whole history, of co-players' co-players too."""
GAME_PLAYERS: Final = ("cooperate", "defect", "fair-share")
_COLUMNS = 4
_WINDOW = 20
"""Episodes of a moving mean."""
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


@dataclass(frozen=True)
class Lesson:
    """An environment to learn in, with the cooperation of its equilibrium.

    Attributes
    ----------
    metric
        The metric of the experiment that measures cooperation, from 0 to 1.
    equilibrium
        Its value in the equilibrium.
    """

    name: str
    kind: str
    condition: Mapping[str, Any]
    players: Sequence[str]
    metric: str
    equilibrium: float
    reward: RewardName = "own"

    def learn(self, episodes: int, seed: int = 0) -> NDArray[np.float64]:
        """The cooperation in each episode of training; shape ``(episodes,)``."""
        env = LabmatesEnv(self.kind, reward=self.reward, **self.condition)
        generators = np.random.default_rng(seed).spawn(len(env.possible_agents))
        seats = {agent: Softmax(self.players, rng) for agent, rng in zip(env.possible_agents, generators, strict=True)}
        curve = np.empty(episodes)
        for episode in range(episodes):
            _, infos = env.reset(seed=episode)
            rewards: dict[str, float] = {}
            while env.agents:
                asked = {agent: info["question"] for agent, info in infos.items() if info["question"]}
                _, rewards, _, _, infos = env.step({agent: seats[agent].act(each) for agent, each in asked.items()})
            for agent, policy in seats.items():
                policy.learn(rewards[agent])
            curve[episode] = infos[env.possible_agents[0]]["metrics"][self.metric]
        return curve


def lessons() -> list[Lesson]:
    """The prisoner's dilemma under each mechanism, then the public goods game for each reward.

    Under a mechanism of CoopEval's theorem 1, and where cooperation is an equilibrium otherwise, the equilibrium is
    cooperation, else defection. In the public goods game, it is defection (0) for own payoffs, and the social optimum
    (1) for the others, which point all seats to the welfare.
    """
    game = get_dilemma("prisoners").game()
    built_in = [make_mechanisms(name)[0] for name in filter(MECHANISMS.is_own, MECHANISMS.names())]
    return [
        *(
            Lesson(
                f"prisoners, {mechanism.name}",
                "dilemma",
                {"game": "prisoners", "mechanism": mechanism.name, "terms": TERMS.get(mechanism.name, {})},
                REPEATED if mechanism.name in TERMS else ONCE,
                "cooperation_rate",
                float(mechanism.is_theorem or bool(mechanism.sustains(game))),
            )
            for mechanism in built_in
        ),
        *(
            Lesson(
                f"public goods, reward {reward}",
                "game",
                {"game": "public-goods", "groups": 2, "group_size": 3, "rounds": 1},
                GAME_PLAYERS,
                "cooperation",
                float(reward != "own"),
                reward,
            )
            for reward in ("own", "welfare", "difference")
        ),
    ]


def draw(curves: Sequence[tuple[Lesson, NDArray[np.float64]]]) -> Figure:
    """The moving means of cooperation over episodes, a panel for each lesson, with the equilibria as dashed lines."""
    rows = -(-len(curves) // _COLUMNS)
    figure, panels = new_figure(2.2 * _COLUMNS, 1.7 * rows, rows=rows, columns=_COLUMNS)
    kernel = np.ones(_WINDOW) / _WINDOW
    for place, ((lesson, curve), axes) in enumerate(zip(curves, panels, strict=True), start=1):
        axes.axhline(lesson.equilibrium, color=GREY, linestyle="--")
        axes.plot(np.arange(_WINDOW, len(curve) + 1), np.convolve(curve, kernel, mode="valid"), color=COLOURS[0])
        axes.set_ylim(-0.05, 1.05)
        axes.set_title(lesson.name, loc="left", fontsize=8)
        if place > len(curves) - _COLUMNS:
            axes.set_xlabel("episode")
        if place % _COLUMNS == 1:
            axes.set_ylabel("cooperation")
    return figure
