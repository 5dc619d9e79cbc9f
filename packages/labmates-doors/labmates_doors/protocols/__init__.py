"""The HTTP protocols for calling models."""

from labmates_doors.protocols.base import Protocol
from labmates_doors.protocols.chat import CHAT
from labmates_doors.protocols.messages import MESSAGES
from labmates_doors.protocols.responses import RESPONSES

PROTOCOLS: tuple[Protocol, ...] = (CHAT, RESPONSES, MESSAGES)
