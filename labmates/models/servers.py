"""Providers that serve their models themselves, on this machine; packages add them (``labmates.model_servers``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from labmates.registry import Registry

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Send = Callable[[Any, dict[str, Any]], Awaitable["BaseMessage"]]
"""As `labmates.models.sending.Send`."""


@dataclass(frozen=True)
class Weights:
    """A model file and how it is served: context of a call in tokens, calls at once, threads."""

    file: Path
    context: int
    slots: int
    threads: int


class Server(Protocol):
    """A server of OpenAI's protocol for one file."""

    def sender(self, send: Send, point_to: Callable[[str], None]) -> Send:
        """The sender `send`, which also starts the server before a call and tells its base URL to `point_to`."""

    def release(self) -> None:
        """Tell that a user needs the server no longer."""


@dataclass(frozen=True)
class ModelServer:
    """A provider whose models are files, served on this machine.

    Attributes
    ----------
    about
        The files that it serves, for ``labmates models``.
    named
        The fields of an entry for a model and its file (None without one): its name in conditions, and the file's path.
    weights
        The file of a model by its name in conditions, file, context, slots and threads; None for what is not given.
    acquire
        The server of a file, shared by its users; its first call starts it.
    packages
        Packages that carry weights, by the short name of the model.
    """

    about: str
    named: Callable[[str, str | None], dict[str, Any]]
    weights: Callable[[str, str | None, int | None, int | None, int | None], Weights]
    acquire: Callable[[Weights], Server]
    packages: Mapping[str, str] = field(default_factory=dict)


SERVERS: Registry[ModelServer] = Registry("model provider", "labmates.model_servers")
