"""Scripted baseline that writes strategies: simple rules, first in words and then as code.

It implements only the phrases that it uses in its own descriptions, and ignores all other text.
"""

from __future__ import annotations

import random
import re
from typing import ClassVar

from labmates.models.scripted.base import Draft, Heard, ScriptedModel

_SHARE = re.compile(r"at least (\d+) % of the others")
_KIND = ("collective", "prosocial", "altruistic", "benevolent", "communal", "cooperative")

_DESCRIPTION = """In the first round: {first}. In the last round: {last}.
In all other rounds: cooperate if at least {share} % of the others {when}, else defect.
This is {attitude}, for it {why}."""

_COUNTED = {
    "cooperated in the last round": "history.opponent_cooperators[-1]",
    "have cooperated on average so far": "history.opponent_cooperators.mean()",
}
_FOLLOWED = {
    "cooperated in the last round": "history.opponent_actions[-1].sum()",
    "have each cooperated in most rounds so far": "(history.opponent_actions.mean(axis=0) > 0.5).sum()",
}
"""Conditions in words and as code: from the counts of cooperators, and from each opponent's moves."""

_CODE = """```python
class {name}(BaseStrategy):
    def __init__(self, game_description):
        self.game_description = game_description
        self.others = game_description.n_players - 1

    def __call__(self, {arguments}) -> Action:
        t = {now}.round_number
        if t == self.game_description.n_rounds - 1:
            return {last}
        if t == 0:
            return {first}
        return C if {seen} >= {share} * self.others else D
```"""


class Author(ScriptedModel):
    """Writes strategies that cooperate if enough others did; the threshold depends on attitude and chance."""

    baseline: ClassVar[str] = "author"
    description: ClassVar[str] = "Writes plain strategies: cooperates when enough others have."

    def compose(self, heard: Heard) -> Draft:
        """A description, or the code for one."""
        match heard.facts:
            case {"name": name, "description": description, "arguments": arguments}:
                return Draft(_implement(name, description, arguments))
            case facts:
                rules = _FOLLOWED if facts.get("follows_each") else _COUNTED
                return Draft(_describe(facts.get("attitude", "collective"), heard.seed, tuple(rules)))


def _describe(attitude: str, seed: int, rules: tuple[str, ...]) -> str:
    chance = random.Random(seed)
    cooperative = attitude in _KIND
    return _DESCRIPTION.format(
        first="cooperate" if cooperative or chance.random() < 0.2 else "defect",
        last="cooperate" if cooperative and chance.random() < 0.8 else "defect",
        share=chance.randrange(10, 60, 5) if cooperative else chance.randrange(60, 100, 5),
        when=chance.choice(rules),
        attitude=attitude,
        why="goes on with what works for all" if cooperative else "gives up no gain that it can have",
    )


def _implement(name: str, description: str, arguments: str) -> str:
    share = _SHARE.search(description)
    follows_each = arguments.startswith("state")
    rules = _FOLLOWED if follows_each else _COUNTED
    default, alternative = rules
    return _CODE.format(
        name=name,
        arguments=arguments,
        now="state" if follows_each else "history",
        first="C" if "first round: cooperate" in description else "D",
        last="C" if "last round: cooperate" in description else "D",
        seen=rules[alternative if alternative in description else default],
        share=int(share[1]) / 100 if share else 0.5,
    )
