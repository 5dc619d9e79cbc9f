"""The tools of an organisation's MCP servers in one run; resume, fork and replay use their recorded answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from labmates.agents.mcp_servers import McpServer
from labmates.agents.sections import excerpt
from labmates.agents.tools import MOST_CHARS, ToolError
from labmates.errors import unknown_name
from labmates.records.events import ToolCallEvent
from labmates.records.recorder import Recorder
from labmates.workflows.science.lab.tool_servers import ToolServers
from labmates_doors.mcp_sessions import McpSession

_MOST_NAME_CHARS = 64
"""Providers reject longer function names."""


@dataclass(frozen=True)
class McpTool:
    """A tool of a server; `fault` is the reason why the server's tools could not be listed."""

    server: str
    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    fault: str = ""

    @property
    def title(self) -> str:
        """Its name for models, without dots."""
        whole = f"{self.server}__{self.name}" if self.name else self.server
        return re.sub(r"[^A-Za-z0-9_-]", "_", whole)[:_MOST_NAME_CHARS]

    @property
    def schema(self) -> dict[str, Any]:
        """Its description in OpenAI's format."""
        parameters = self.parameters or {"type": "object", "properties": {}}
        function = {"name": self.title, "description": self.description, "parameters": dict(parameters)}
        return {"type": "function", "function": function}


class McpTools(ToolServers):
    """The tools of the servers of a run.

    Parameters
    ----------
    past
        The record of a rerun, which replaces the servers; None otherwise.
    seconds
        Time limit of a server's start and of each call.
    """

    def __init__(
        self, servers: Mapping[str, McpServer], recorder: Recorder, past: Recorder | None, seconds: float
    ) -> None:
        self._recorder, self._past = recorder, past
        self._servers = [*servers]
        live = servers if past is None else {}
        self._sessions = {name: McpSession(name, server, seconds) for name, server in live.items()}
        self._listed: dict[str, list[McpTool]] = {}
        self._tools: dict[str, McpTool] = {}

    async def open(self, wanted: Iterable[str]) -> None:
        """List the tools of all servers, and check the teams' tools, ``SERVER`` or ``SERVER.TOOL``.

        Raises
        ------
        UsageError
            If a server lacks one of them.
        """
        listings = await asyncio.gather(*map(self._listing, self._servers))
        for server, listing in zip(self._servers, listings, strict=True):
            if listing is not None:
                self._listed[server] = self._recorded(server, *listing)
        await self._recorder.flush()
        for name in (*self._servers, *wanted):
            for tool in self._named(name):
                self._tools.setdefault(tool.title, tool)

    async def close(self) -> None:
        """End all sessions."""
        await asyncio.gather(*(session.close() for session in self._sessions.values()))

    def names(self, wanted: Iterable[str]) -> list[str]:
        """The names for models of a team's tools; names of other tools are unchanged."""
        titles: list[str] = []
        for name in wanted:
            is_served = name.partition(".")[0] in self._servers
            titles += (tool.title for tool in self._named(name)) if is_served else [name]
        return [*dict.fromkeys(titles)]

    @property
    def titles(self) -> list[str]:
        """The names for models of all tools."""
        return [*self._tools]

    def get(self, title: str) -> McpTool | None:
        """The tool with a name for models; None if no server has it."""
        return self._tools.get(title)

    async def use(self, step: str, title: str, arguments: Mapping[str, Any]) -> str:
        """The result of a tool; a rerun takes it from the record.

        Raises
        ------
        ToolError
            If the call fails.
        NewStepError
            If the record of a rerun lacks the result.
        """
        if self._past is None:
            tool = self._tools[title]
            if tool.fault:
                raise ToolError(tool.fault)
            return excerpt(await self._sessions[tool.server].call(tool.name, arguments), MOST_CHARS)
        event = cast(ToolCallEvent, self._past.recorded("tool_call", step))
        text = self._past.bodies.text(event.result)
        if not event.ok:
            raise ToolError(text.removeprefix("Error: "))
        return text

    def _named(self, name: str) -> Iterator[McpTool]:
        server, _, wanted = name.partition(".")
        listed = self._listed.get(server)
        if listed is None:
            return
        known = {tool.name: tool for tool in listed}
        if fault := next((tool.fault for tool in listed), ""):
            yield McpTool(server, wanted, fault, fault=fault)
        elif wanted and wanted not in known:
            raise unknown_name(f"tool of the MCP server {server}", wanted, known)
        else:
            yield from [known[wanted]] if wanted else listed

    async def _listing(self, server: str) -> tuple[Any, bool] | None:
        """The tools of a server and True, or an error and False; None if a rerun's record lacks both."""
        for record in (self._recorder, self._past):
            event = cast(ToolCallEvent | None, record.done("tool_call", _step(server))) if record else None
            if record is not None and event is not None:
                return record.bodies[event.result], event.ok
        if self._past is not None:
            return None
        try:
            return await self._sessions[server].tools(), True
        except ToolError as error:
            return str(error), False

    def _recorded(self, server: str, answer: Any, ok: bool) -> list[McpTool]:
        keep = self._recorder.bodies.keep
        self._recorder.once(
            ToolCallEvent(step=_step(server), tool=server, arguments=keep({}), result=keep(answer), ok=ok)
        )
        if not ok:
            return [McpTool(server, "", fault=answer)]
        return [McpTool(server, tool["name"], tool["description"], tool["parameters"]) for tool in answer]


def _step(server: str) -> str:
    return f"mcp/{server}"
