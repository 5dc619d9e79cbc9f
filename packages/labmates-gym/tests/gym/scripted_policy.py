"""Scripted players as the policy of an environment."""

from __future__ import annotations

from labmates.models.scripted import make_baseline
from labmates.models.scripted.base import Heard, ScriptedModel, make_reply
from labmates_gym.parallel import Infos, LabmatesEnv


def episode(env: LabmatesEnv, *players: str, seed: int = 0) -> Infos:
    """Play an episode with a scripted player on each seat, in turns; returns the last infos."""
    models = [make_baseline(name) for name in players]
    _, infos = env.reset(seed=seed)
    turn = 0
    while env.agents:
        actions = {}
        for place, agent in enumerate(env.possible_agents):
            if (question := infos[agent]["question"]) is not None:
                model = models[place % len(models)]
                assert isinstance(model, ScriptedModel)
                heard = Heard(tuple(question.messages), tuple(question.tools), 1000 * seed + turn)
                actions[agent] = make_reply(model.compose(heard), heard, model.baseline)
                turn += 1
        *_, infos = env.step(actions)
    return infos
