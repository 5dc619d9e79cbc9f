"""A provider of models in one file: a chat model class of LangChain whose models run anywhere you like.

This one answers without any server: `dice:6` rolls a die of six sides and plays the weakest link with it. A
package declares it by an entry point; a call of `register` does the same in one process.
"""

import json
import random
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import labmates
from labmates.models.names import PLUGINS


class Dice(BaseChatModel):
    """Takes as much effort as a die shows. The model's name is the number of its sides.

    labmates passes the settings for which the class has a field: `model` always, here also `seed` and `max_tokens`.
    """

    model: str
    seed: int | None = None
    max_tokens: int | None = None

    @property
    def _llm_type(self) -> str:
        return "dice"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        rolled = random.Random(f"{self.seed}/{len(messages[-1].text)}").randint(1, int(self.model))
        # Usage is what credits and bills are computed from; without it tokens are estimated.
        usage = {"input_tokens": sum(len(m.text) // 4 for m in messages), "output_tokens": 8}
        total = {**usage, "total_tokens": sum(usage.values())}
        reply = AIMessage(json.dumps({"effort": rolled}), usage_metadata=total)
        return ChatResult(generations=[ChatGeneration(message=reply)])


if __name__ == "__main__":
    PLUGINS.register("dice", Dice)
    [run] = labmates.run("game", game="weakest-link", model="dice:6?seed=1", rounds=2, store="sqlite:///dice.db")
    print(f"{run.models[0]}: {run.status}, {run.usage.llm_calls} calls, {run.usage.input_tokens:,} tokens read")
    print(f"failed decisions: {run.metrics['failed_decision_rate']:.0%}")
