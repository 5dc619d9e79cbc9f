"""Sessions with real MCP servers, on standard streams and by HTTP."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labmates.agents.mcp_servers import McpServer
from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import find_organisation, read_organisation
from labmates.agents.tools import ToolError
from labmates.errors import UsageError
from labmates_doors.mcp_sessions import McpSession

SERVER = Path(__file__).with_name("mcp_server.py")
MANY_SECONDS = 60.0


def program(log: Path, **values: Any) -> McpServer:
    return McpServer(command=(sys.executable, str(SERVER), str(log)), **values)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[McpSession]:
    session = McpSession("papers", program(tmp_path / "log"), MANY_SECONDS)
    yield session
    await session.close()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SERVER), str(tmp_path / "log"), str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


async def test_a_program_lists_its_tools_and_answers_calls(session: McpSession, tmp_path: Path) -> None:
    tools = {tool["name"]: tool for tool in await session.tools()}
    assert tools["search"]["description"] == "Search for papers."
    assert tools["search"]["parameters"]["required"] == ["query"]
    assert await session.call("search", {"query": "bees"}) == "2 papers about bees"
    texts = await asyncio.gather(*(session.call("search", {"query": str(number)}) for number in range(5)))
    assert texts == [f"2 papers about {number}" for number in range(5)]
    assert (tmp_path / "log").read_text().splitlines().count("started") == 1


async def test_a_server_at_an_address_lists_its_tools_and_answers_calls(address: str) -> None:
    session = McpSession("papers", McpServer(url=address), MANY_SECONDS)
    for _ in range(600):
        try:
            tools = await session.tools()
            break
        except ToolError:  # it still starts
            await asyncio.sleep(0.1)
    assert "search" in [tool["name"] for tool in tools]
    assert await session.call("search", {"query": "bees"}) == "2 papers about bees"
    with pytest.raises(ToolError, match="Unknown tool: nothing"):
        await session.call("nothing", {})
    await session.close()


async def test_errors_of_tools_are_told_and_a_server_that_died_is_started_again(
    session: McpSession, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match="broken"):
        await session.call("broken", {})
    with pytest.raises(ToolError, match="query"):
        await session.call("search", {"words": "bees"})
    with pytest.raises(ToolError, match="the MCP server papers failed: Connection closed"):
        await session.call("crash", {})
    assert await session.call("search", {"query": "bees"}) == "2 papers about bees"
    assert (tmp_path / "log").read_text().splitlines().count("started") == 2


async def test_a_call_without_an_answer_ends_at_its_limit(tmp_path: Path) -> None:
    session = McpSession("papers", program(tmp_path / "log"), 3)
    while True:
        try:
            await session.tools()  # a busy machine may take longer than the limit to start it
            break
        except ToolError:
            continue
    with pytest.raises(ToolError, match="no answer within 3 s"):
        await session.call("endless", {})
    await session.close()


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (McpServer(command=("/no/such/program",)), "FileNotFoundError"),
        (McpServer(command=(sys.executable, "-c", "raise SystemExit(3)")), "Connection closed"),
        (McpServer(command=(sys.executable, "-c", "import no_such_package")), "it wrote: .*No module named 'no_such"),
        (McpServer(command=(sys.executable, "-c", "import time; time.sleep(60)")), "no answer within 2 s"),
        (McpServer(url="http://127.0.0.1:9/mcp"), "ConnectError"),
    ],
)
async def test_a_server_that_can_not_be_reached_is_told(server: McpServer, reason: str) -> None:
    session = McpSession("papers", server, 2 if reason.startswith("no answer") else MANY_SECONDS)
    with pytest.raises(ToolError, match=f"the MCP server papers failed: .*{reason}"):
        await session.tools()
    await session.close()


async def test_a_program_has_the_named_variables_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PAPERS_KEY", "given")
    session = McpSession("papers", program(tmp_path / "log", env=("PAPERS_KEY",)), MANY_SECONDS)
    names = (await session.call("environment", {})).split()
    await session.close()
    assert "PAPERS_KEY" in names
    assert "OPENAI_API_KEY" not in names
    assert set(names) <= {"PAPERS_KEY", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}


async def test_the_end_of_what_a_program_writes_to_its_standard_error_is_told_without_its_secrets(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAPERS_KEY", "1234-key")
    code = "import os, sys; sys.stderr.write('x' * 10**6 + '\\n' + 'again\\n' * 10**4 + os.environ['PAPERS_KEY'])"
    session = McpSession("papers", McpServer(command=(sys.executable, "-c", code), env=("PAPERS_KEY",)), MANY_SECONDS)
    with pytest.raises(ToolError, match=r"Connection closed; it wrote: again / again / \[secret\]$"):
        await session.tools()
    await session.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "give either command"),
        ({"command": ["a"], "url": "http://a/mcp"}, "give either command"),
        ({"url": "a/mcp"}, "is not an address"),
        ({"url": "http://ana:word@a/mcp"}, "records would hold the password"),
        ({"url": "http://a/mcp", "env": ["A"]}, "env is for a command"),
        ({"command": ["a"], "headers": {"X-Key": "A"}}, "headers are for an address"),
        ({"url": "http://a/mcp", "headers": {"X-Key": "A"}}, "use https"),
        ({"url": "https://a/mcp", "headers": {"X-Key: b": "A"}}, "is not HEADER: VARIABLE"),
        ({"command": ["a"], "timeout": 3}, "Extra inputs"),
    ],
)
def test_an_invalid_server_is_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        McpServer(**values)


async def test_headers_come_from_the_environment_and_are_in_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERS_TOKEN", "Bearer 1234-secret")
    sent: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server = McpServer(url=f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "PAPERS_TOKEN"})
    session = McpSession("papers", server, MANY_SECONDS)
    with pytest.raises(ToolError) as error:
        await session.tools()
    await session.close()
    listening.close()
    assert b"authorization: bearer 1234-secret" in sent[0].lower()
    assert "secret" not in f"{error.value} {server.model_dump_json()}"


def test_a_header_whose_variable_is_not_set_is_told() -> None:
    server = McpServer(url="https://a/mcp", headers={"Authorization": "NO_SUCH_TOKEN"})
    with pytest.raises(UsageError, match="needs the environment variable NO_SUCH_TOKEN, which is not set"):
        server.check("papers")


def test_a_variable_that_is_not_set_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'papers' needs the environment variable NO_SUCH_KEY, which is not set"):
        program(tmp_path, env=("NO_SUCH_KEY",)).check("papers")


def organisation(mcp: dict[str, Any], own_tools: list[str]) -> Organisation:
    solo = find_organisation("solo").model_dump()
    teams = {"solo": {**solo["teams"]["solo"], "own_tools": own_tools}}
    return Organisation.model_validate({**solo, "name": "reading", "mcp": mcp, "teams": teams})


def test_tools_and_servers_of_an_organisation_have_to_fit() -> None:
    papers = {"papers": {"url": "http://127.0.0.1:9/mcp"}}
    assert organisation(papers, ["papers.search"]).mcp["papers"].url == papers["papers"]["url"]
    with pytest.raises(ValidationError, match="there is no MCP server 'paper'"):
        organisation(papers, ["papers", "paper.search"])
    with pytest.raises(ValidationError, match="no team has its tools"):
        organisation(papers, [])


def test_a_program_beside_the_file_is_found_from_everywhere(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    path = tmp_path / "reading.yaml"
    text = """
name: reading
mcp: {papers: {command: [python, server.py, other.py]}}
flow: [solo]
teams:
  solo: {artifact: final_paper, own_tools: [papers], seats: {ana: {title: analyst, part: Answer the questions.}}}
"""
    path.write_text(text)
    assert read_organisation(path).mcp["papers"].command == ("python", str(tmp_path / "server.py"), "other.py")
