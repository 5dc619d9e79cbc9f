"""MCP servers with tools for an organisation's agents: programs on this machine, or addresses.

A server runs outside the sandbox. It gets neither the data set, nor the truth, nor the environment of the run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from labmates.errors import UsageError
from labmates.registry import Registry
from labmates.util.loopback import LOOPBACK

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,100}")


def check_address(url: str) -> None:
    """Raise a `ValueError` for an address that is not HTTP, or that holds a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"'{url}' is not an address such as http://127.0.0.1:9000/mcp")
    if parts.username or parts.password:
        raise ValueError("records would hold the password in the address; leave it out")


def paths_beside(folder: Path, command: Sequence[str]) -> tuple[str, ...]:
    """A command with absolute paths for arguments that name a file in `folder`."""
    paths = ((part, (folder / part).absolute()) for part in command)
    return tuple(str(path) if path.is_file() else part for part, path in paths)


class McpServer(BaseModel):
    """An MCP server: a program with its arguments, or the address of one that speaks streamable HTTP."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: tuple[str, ...] = Field((), description="Program and arguments, run on this machine outside the sandbox.")
    url: str = Field("", description="Address of a server that speaks streamable HTTP.")
    env: tuple[str, ...] = Field((), description="Environment variables for the program, by name.")
    headers: dict[str, str] = Field(
        {},
        description="HTTP headers for the server at the address, as HEADER: VARIABLE with the environment "
        "variable that holds its value.",
    )

    @model_validator(mode="after")
    def _is_reachable(self) -> McpServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either command: [PROGRAM, ARGUMENTS] or url: http://HOST/PATH")
        if self.url and self.env:
            raise ValueError("env is for a command; a server at an address takes headers: {HEADER: VARIABLE}")
        if self.command and self.headers:
            raise ValueError("headers are for an address; a command takes env: [VARIABLES]")
        if self.url:
            check_address(self.url)
            parts = urlsplit(self.url)
            if self.headers and parts.scheme == "http" and parts.hostname not in LOOPBACK:
                raise ValueError("headers would cross the network unencrypted; use https")
            for header, variable in self.headers.items():
                if not _TOKEN.fullmatch(header) or not _TOKEN.fullmatch(variable):
                    raise ValueError(f"headers: '{header}: {variable}' is not HEADER: VARIABLE")
        return self

    def beside(self, folder: Path) -> McpServer:
        """The same server with absolute paths for arguments that name a file in `folder`."""
        return self.model_copy(update={"command": paths_beside(folder, self.command)})

    def check(self, name: str) -> None:
        """Check that the server can be reached from here, and its variables are set.

        Raises `UsageError` if the package that reaches servers is not installed, or a variable is not set.
        """
        TOOL_SERVERS.get("mcp")
        named = (*self.env, *self.headers.values())
        if missing := [variable for variable in named if variable not in os.environ]:
            raise UsageError(f"the MCP server '{name}' needs the environment variable {missing[0]}, which is not set")


TOOL_SERVERS: Registry[Callable[..., Any]] = Registry("protocol of tool servers", "labmates.tool_servers")
"""Makers of the tools of a run's servers by protocol; a run with servers asks for them by name."""
