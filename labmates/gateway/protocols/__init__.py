"""The HTTP protocols that the gateway speaks."""

from labmates.gateway.protocols.base import Protocol
from labmates.gateway.protocols.chat import CHAT
from labmates.gateway.protocols.messages import MESSAGES
from labmates.gateway.protocols.responses import RESPONSES

PROTOCOLS: tuple[Protocol, ...] = (CHAT, RESPONSES, MESSAGES)
