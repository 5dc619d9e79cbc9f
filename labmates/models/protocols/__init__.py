"""The HTTP protocols for calling models."""

from labmates.models.protocols.base import Protocol
from labmates.models.protocols.chat import CHAT
from labmates.models.protocols.messages import MESSAGES
from labmates.models.protocols.responses import RESPONSES

PROTOCOLS: tuple[Protocol, ...] = (CHAT, RESPONSES, MESSAGES)
