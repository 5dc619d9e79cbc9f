"""Orders: requests to agents, as a text for models and as facts for scripted baselines.

The facts are a private attribute of the message: they are in no request to a provider, no trace and no record. A test
per experiment checks that the text renders all facts. Orders in a shortened transcript keep their facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import PrivateAttr

from labmates.budgets.tokens import text_of

_SAME_CHARS = 500
"""Characters at the beginning of a long message that survive shortening."""


@dataclass(frozen=True)
class Order:
    """A request to an agent: JSON `facts` for baselines, and a `text` for models that renders all facts.

    `kind`, for instance ``tournament``, selects the player.
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
    """The order of a message; None for other messages."""
    return message._order if isinstance(message, _SystemOrder | _HumanOrder) else None


def with_orders(messages: Sequence[BaseMessage], given: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Recorded messages, which are only texts, with the orders of the transcript `given`.

    A message may have been shortened or extended by a line before it was sent, but its beginning is unchanged.
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
