"""An author of strategies that reads nothing but texts, as a model behind a server does."""

from __future__ import annotations

import re
from typing import ClassVar

from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard, ScriptedModel

_NAME = re.compile(r"with the name (\w+)\.")


class TextAuthor(ScriptedModel):
    """Describes and writes a strategy that always cooperates."""

    baseline: ClassVar[str] = "text-author"
    description: ClassVar[str] = "Writes strategies that always cooperate."

    def compose(self, heard: Heard) -> Draft:
        """Return the description, or the code."""
        name = _NAME.search(text_of(heard.messages[0].content))
        if name is None:
            return Draft("In the first round and in all others: cooperate.")
        code = f"class {name[1]}(BaseStrategy):\n    def __call__(self, history, *stock):\n        return C\n"
        return Draft(f"```python\n{code}```")
