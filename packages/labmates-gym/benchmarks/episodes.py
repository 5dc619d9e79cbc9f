"""Episodes of each environment a second of the processor, with random replies that fit the forms.

make -C packages/labmates-gym bench NAME=episodes
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from labmates.models.scripted import make_baseline
from labmates.models.scripted.base import Heard, ScriptedModel, make_reply
from labmates_gym.parallel import LabmatesEnv, RewardName

SMALL = {"groups": 2, "group_size": 3, "rounds": 1}
CASES: list[tuple[str, RewardName, dict[str, Any]]] = [
    ("game", "own", {"game": "public-goods"}),
    ("game", "difference", {"game": "public-goods"}),
    ("game", "own", {"game": "public-goods", **SMALL}),
    ("game", "difference", {"game": "public-goods", **SMALL}),
    ("dilemma", "own", {"game": "prisoners", "mechanism": "none"}),
    ("dilemma", "own", {"game": "prisoners", "mechanism": "contract"}),
    ("dilemma", "own", {"game": "prisoners", "mechanism": "repetition"}),
]


def rate(env: LabmatesEnv, episodes: int) -> tuple[float, float]:
    """Episodes and decisions per second of the processor, the scripted player's time included."""
    player, decisions = make_baseline("random"), 0
    assert isinstance(player, ScriptedModel)
    start = time.process_time()
    for episode in range(episodes):
        _, infos = env.reset(seed=episode)
        while env.agents:
            actions = {}
            for agent, info in infos.items():
                if (question := info["question"]) is not None:
                    heard = Heard(tuple(question.messages), (), decisions)
                    actions[agent], decisions = make_reply(player.compose(heard), heard, "random"), decisions + 1
            *_, infos = env.step(actions)
    seconds = time.process_time() - start
    return episodes / seconds, decisions / seconds


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=60)
    episodes = parser.parse_args().episodes
    for kind, reward, condition in CASES:
        env = LabmatesEnv(kind, reward=reward, **condition)
        rate(env, 1)  # imports and caches
        each, decided = rate(env, episodes)
        told = " ".join(f"{name}={value}" for name, value in condition.items())
        print(f"{kind:8} {reward:11} {told:56} {each:6.1f} episodes/s {decided:7.0f} decisions/s")


if __name__ == "__main__":
    main()
