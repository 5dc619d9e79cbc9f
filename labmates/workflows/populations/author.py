"""A scripted baseline that writes strategies: plain rules, described in words and then written as code.

It reads the prompts of `labmates.workflows.populations.strategies` as a model does, and knows nothing else.
"""

from __future__ import annotations

import random
import re
from typing import ClassVar

from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.models.tokens import text_of

_ATTITUDE = re.compile(r"^Attitude: (\w+)$", re.MULTILINE)
_NAME = re.compile(r"with the name (\w+)\.")
_SHARE = re.compile(r"at least (\d+) % of the others")
_ARGUMENTS = re.compile(r"def __call__\(self, (.+)\) -> Action:")
_KIND = ("collective", "prosocial", "altruistic", "benevolent", "communal", "cooperative")

_DESCRIPTION = """In the first round: {first}. In the last round: {last}.
In all other rounds: cooperate if at least {share} % of the others {when}, else defect.
This is {attitude}, for it {why}."""

_CODE = """```python
class {name}(BaseStrategy):
    def __init__(self, game_description):
        self.game_description = game_description
        self.others = game_description.n_players - 1

    def __call__(self, {arguments}) -> Action:
        t = history.round_number
        if t == self.game_description.n_rounds - 1:
            return {last}
        if t == 0:
            return {first}
        return C if {seen} >= {share} * self.others else D
```"""


class Author(ScriptedModel):
    """Writes strategies that cooperate when enough others have; how many, is a matter of attitude and chance."""

    baseline: ClassVar[str] = "author"
    description: ClassVar[str] = "Writes plain strategies: cooperates when enough others have."

    def compose(self, heard: Heard) -> Draft:
        """Return a description, or the code for one."""
        prompt = text_of(heard.messages[-1].content)
        name = _NAME.search(prompt)
        return Draft(_describe(prompt, heard.seed) if name is None else _implement(prompt, name[1]))


def _describe(prompt: str, seed: int) -> str:
    found = _ATTITUDE.search(prompt)
    attitude = found[1] if found else "collective"
    chance = random.Random(seed)
    kind = attitude in _KIND
    return _DESCRIPTION.format(
        first="cooperate" if kind or chance.random() < 0.2 else "defect",
        last="cooperate" if kind and chance.random() < 0.8 else "defect",
        share=chance.randrange(10, 60, 5) if kind else chance.randrange(60, 100, 5),
        when=chance.choice(("cooperated in the last round", "have cooperated on average so far")),
        attitude=attitude,
        why="goes on with what works for all" if kind else "gives up no gain that it can have",
    )


def _implement(prompt: str, name: str) -> str:
    arguments, share = _ARGUMENTS.search(prompt), _SHARE.search(prompt)
    average = "on average so far" in prompt
    return _CODE.format(
        name=name,
        arguments=arguments[1] if arguments else "history",
        first="C" if "first round: cooperate" in prompt else "D",
        last="C" if "last round: cooperate" in prompt else "D",
        seen="history.opponent_cooperators.mean()" if average else "history.opponent_cooperators[-1]",
        share=int(share[1]) / 100 if share else 0.5,
    )
