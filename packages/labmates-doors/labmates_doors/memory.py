"""Attachments of models' replies to programs, which send only texts and calls back."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from labmates.models.attached import attached_to, with_attachment

Json = dict[str, Any]

MOST_KEPT: Final = 2_000
"""Replies whose attachments are kept for programs."""


class Memory:
    """Attachments of replies to programs that keep transcripts of their own, by the first call of a reply.

    A program that speaks another protocol than the model's provider gets text and calls alone, and sends these back.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Json] = OrderedDict()

    def keep(self, message: AIMessage) -> None:
        """Keep the attachment of a reply with calls."""
        if message.tool_calls and (attached := attached_to(message)):
            self._kept[_call_key(message)] = attached
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def joined(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """A program's transcript with the attachments of its replies."""
        return [
            with_attachment(message, attached)
            if isinstance(message, AIMessage)
            and message.tool_calls
            and not attached_to(message)
            and (attached := self._kept.get(_call_key(message)))
            else message
            for message in messages
        ]


def _call_key(message: AIMessage) -> str:
    call = message.tool_calls[0]
    return json.dumps([call["id"], call["args"]], sort_keys=True)
