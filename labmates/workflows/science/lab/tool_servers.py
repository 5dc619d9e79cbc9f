"""The tools of servers that an organisation names, as the lab uses them; another package reaches the servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from labmates.agents.mcp_servers import TOOL_SERVERS, McpServer
from labmates.agents.tools import ToolError
from labmates.records.recorder import Recorder


class ServedTool(Protocol):
    """A tool of a server."""

    @property
    def description(self) -> str:
        """What models are told of it."""

    @property
    def schema(self) -> dict[str, Any]:
        """Its whole description in OpenAI's format."""


class ToolServers:
    """The tools of the servers of one run; this class is for a run without servers.

    Names for models have no dots; teams name tools ``SERVER`` or ``SERVER.TOOL``.
    """

    @property
    def titles(self) -> Sequence[str]:
        """The names for models of all tools."""
        return ()

    async def open(self, wanted: Iterable[str]) -> None:
        """List the tools of all servers, and check the teams' tools.

        Raises `UsageError` if a server lacks one of them.
        """

    async def close(self) -> None:
        """End all sessions."""

    def names(self, wanted: Iterable[str]) -> list[str]:
        """The names for models of a team's tools; names of other tools are unchanged."""
        return [*dict.fromkeys(wanted)]

    def get(self, title: str) -> ServedTool | None:
        """The tool with a name for models; None if no server has it."""
        del title
        return None

    async def use(self, step: str, title: str, arguments: Mapping[str, Any]) -> str:
        """The result of a tool; a rerun takes it from the record.

        Raises `ToolError` if the call fails; `NewStepError` if the record of a rerun lacks the result.
        """
        raise ToolError(f"no server has a tool '{title}'")


def tool_servers(
    servers: Mapping[str, McpServer], recorder: Recorder, past: Recorder | None, seconds: float
) -> ToolServers:
    """The tools of the servers of a run.

    Parameters
    ----------
    past
        The record of a rerun, which replaces the servers; None otherwise.
    seconds
        Time limit of a server's start and of each call.
    """
    if not servers:
        return ToolServers()
    made: ToolServers = TOOL_SERVERS.get("mcp")(servers, recorder, past, seconds)
    return made
