"""Orders: what an agent is asked, as a text for models and as facts for scripted baselines.

The facts travel beside the text, as a private attribute of the message: no provider gets them, no trace and no record
holds them as if they had been sent. A test for each experiment checks that the text renders all of them.
Where a transcript is shortened to fit a model's context, its orders keep their facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import PrivateAttr

from labmates.budgets.tokens import text_of

_SAME_CHARS = 500
"""Length of the beginning of a long message that stays when a transcript is shortened."""


@dataclass(frozen=True)
class Order:
    """A request to an agent: its facts and its text.

    Attributes
    ----------
    kind
        Whose order it is, for instance ``tournament``; players are found by it.
    facts
        What baselines read, as JSON has it. The text renders all of it.
    text
        What models read.
    """

    kind: str
    facts: Mapping[str, Any]
    text: str

    def system(self) -> BaseMessage:
        """The order as a system message."""
        return self._on(_SystemOrder(content=self.text))

    def human(self) -> BaseMessage:
        """The order as a message of the user."""
        return self._on(_HumanOrder(content=self.text))

    def _on(self, message: _SystemOrder | _HumanOrder) -> BaseMessage:
        message._order = self
        return message


class _SystemOrder(SystemMessage):
    _order: Order | None = PrivateAttr(None)


class _HumanOrder(HumanMessage):
    _order: Order | None = PrivateAttr(None)


def order_of(message: BaseMessage) -> Order | None:
    """The order that a message carries; None if it is an ordinary one."""
    return message._order if isinstance(message, _SystemOrder | _HumanOrder) else None


def with_orders(messages: Sequence[BaseMessage], given: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages, read from a record, with the orders of the transcript `given` that they were sent for.

    A record holds texts alone. A message may have been shortened or a line added to it before it was sent, which leaves
    its beginning as it was.
    """
    orders = [message for message in given if order_of(message) is not None]
    restored = []
    for message in messages:
        place = next((place for place, order in enumerate(orders) if _is_sent_for(message, order)), None)
        if place is not None:
            message = orders[place].model_copy(update={"content": message.content})
            orders = orders[place + 1 :]
        restored.append(message)
    return restored


def _is_sent_for(message: BaseMessage, order: BaseMessage) -> bool:
    beginning = text_of(order.content)[:_SAME_CHARS]
    return message.type == order.type and text_of(message.content).startswith(beginning)
