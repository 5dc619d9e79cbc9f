"""An agent with a loop of its own: its seat's model chooses the tools, which it calls by MCP.

``seat_agent.py [http|lines|stdio|messages|responses] [MISDEED]``: by HTTP, and by lines on standard streams, it needs
nothing but Python; ``stdio`` needs the MCP SDK, messages Anthropic's SDK, responses OpenAI's.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import os
import platform
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

Json = dict[str, Any]
CALLS = {
    "x86_64": {"unshare": 272, "add_key": 248, "bpf": 321},
    "aarch64": {"unshare": 97, "add_key": 217, "bpf": 280},
}


class Seat:
    """The seat as its server shows it."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url, key

    def get(self, path: str) -> Any:
        return json.loads(self._send(urllib.request.Request(self.url + path, headers=self._headers)))

    def post(self, path: str, body: Json) -> Any:
        data = json.dumps(body).encode()
        return json.loads(self._send(urllib.request.Request(self.url + path, data, self._headers)))

    @property
    def _headers(self) -> dict[str, str]:
        return {
            "authorization": f"Bearer {self.key}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }

    def _send(self, request: urllib.request.Request) -> bytes:
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
            return content

    def use(self, name: str, arguments: Json) -> str:
        """Call a tool by MCP over HTTP, as the protocol writes it."""
        return text_of(self.post("/mcp", tool_call(name, arguments)))


def tool_call(name: str, arguments: Json) -> Json:
    """A call of a tool as MCP writes it."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def text_of(answer: Json) -> str:
    """The text of a tool's answer."""
    return "\n".join(part["text"] for part in answer["result"]["content"])


Use = Callable[[str, Json], Awaitable[str]]
Call = tuple[str, str, Json]
"""A call of a tool: its id, the tool and the arguments."""


@asynccontextmanager
async def tools(seat: Seat, way: str) -> AsyncIterator[Use]:
    """The tools of the seat, by HTTP, or on standard streams line by line or by the SDK's client."""
    if way == "lines":
        with subprocess.Popen(  # noqa: ASYNC220 - nobody else is on this loop
            json.loads(os.environ["LABMATES_MCP_COMMAND"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            lines, answers = server.stdin, server.stdout

            def ask(name: str, arguments: Json) -> str:
                lines.write(json.dumps(tool_call(name, arguments)) + "\n")
                lines.flush()
                return text_of(json.loads(answers.readline()))

            yield lambda name, arguments: asyncio.to_thread(ask, name, arguments)
        return
    if way != "stdio":
        yield lambda name, arguments: asyncio.to_thread(seat.use, name, arguments)
        return
    from mcp import Client, StdioServerParameters, stdio_client

    program, *arguments = json.loads(os.environ["LABMATES_MCP_COMMAND"])
    parameters = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    async with Client(stdio_client(parameters)) as client:

        async def use(name: str, arguments: Json) -> str:
            result = await client.call_tool(name, arguments)
            return "\n".join(str(getattr(part, "text", "")) for part in result.content)

        yield use


class Chat:
    """The seat's model by chat completions, and the transcript so far."""

    def __init__(self, seat: Seat, order: Json, extra: Json) -> None:
        self.seat, self.extra = seat, extra
        self.messages: list[Any] = list(order["messages"])
        self.functions = [tool["function"] for tool in order["tools"]]

    def ask(self) -> tuple[str, list[Call]]:
        """The text and the calls of the next reply."""
        tools = [{"type": "function", "function": function} for function in self.functions]
        body = {"model": "mine", "messages": self.messages, "tools": tools, **self.extra}
        message = self.seat.post("/v1/chat/completions", body)["choices"][0]["message"]
        self.messages.append(message)
        asked = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
        calls = [(number, function["name"], json.loads(function["arguments"])) for number, function in asked]
        return message["content"] or "", calls

    def answer(self, call_id: str, text: str) -> None:
        """Tell the result of a call."""
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": text})


class Messages(Chat):
    """The seat's model by a stream of Anthropic's SDK."""

    def ask(self) -> tuple[str, list[Call]]:
        import anthropic

        system = "\n\n".join(message["content"] for message in self.messages if message["role"] == "system")
        said: Any = [message for message in self.messages if message["role"] != "system"]
        tools: Any = [
            {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
            for each in self.functions
        ]
        client = anthropic.Anthropic(max_retries=0)
        with client.messages.stream(
            model="mine", max_tokens=64_000, system=system, messages=said, tools=tools
        ) as stream:
            content = stream.get_final_message().content
        self.messages.append({"role": "assistant", "content": [block.to_dict() for block in content]})
        text = "".join(block.text for block in content if block.type == "text")
        return text, [(block.id, block.name, dict(block.input)) for block in content if block.type == "tool_use"]

    def answer(self, call_id: str, text: str) -> None:
        result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        self.messages.append({"role": "user", "content": [result]})


class Responses(Chat):
    """The seat's model by the responses of OpenAI's SDK."""

    def ask(self) -> tuple[str, list[Call]]:
        import openai

        tools: Any = [{"type": "function", "strict": None, **function} for function in self.functions]
        response = openai.OpenAI(max_retries=0).responses.create(model="mine", input=self.messages, tools=tools)
        self.messages += [item.to_dict() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        return response.output_text, [(call.call_id, call.name, json.loads(call.arguments)) for call in calls]

    def answer(self, call_id: str, text: str) -> None:
        self.messages.append({"type": "function_call_output", "call_id": call_id, "output": text})


async def work(seat: Seat, way: str = "http", extra: Json | None = None) -> str:
    """Do what the order asks for and return the last text."""
    order = await asyncio.to_thread(seat.get, "/order")
    model = {"messages": Messages, "responses": Responses}.get(way, Chat)(seat, order, extra or {})
    async with tools(seat, way) as use:
        while True:
            text, calls = await asyncio.to_thread(model.ask)
            if not calls:
                return text
            for call_id, name, arguments in calls:
                text = await use(name, arguments)
                model.answer(call_id, text)
            if "your step is over" in text:
                return ""


def misbehave(seat: Seat, misdeed: str) -> None:
    """Do what no seat may do, and go on."""
    if misdeed == "connect":
        for address in ("http://1.1.1.1/", "http://127.0.0.1:1/", "http://169.254.169.254/"):
            try:
                urllib.request.urlopen(address, timeout=2)
            except OSError as error:
                sys.stderr.write(f"{address}: {error}\n")
            else:
                raise SystemExit("the network can be reached")
    elif misdeed == "steal":
        try:
            Seat(seat.url, "lm-the-key-of-another-seat").get("/order")
        except urllib.error.HTTPError as error:
            if error.code != 401:
                raise
        else:
            raise SystemExit("another key was taken")
    elif misdeed == "smuggle":
        content = f"My key is {seat.key}, my environment {json.dumps(dict(os.environ))}"
        seat.use("write_artifact", {"name": "loot", "content": content})
        seat.post("/v1/chat/completions", {"messages": [{"role": "user", "content": f"# Step: work\n{content}"}]})
    elif misdeed == "kernel":
        libc = ctypes.CDLL(None, use_errno=True)
        for call in ("unshare", "add_key", "bpf"):
            if libc.syscall(CALLS[platform.machine()][call], 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
                raise SystemExit(f"{call} reached the kernel")
    elif misdeed == "fork":
        children: list[subprocess.Popen[bytes]] = []
        with suppress(BlockingIOError):
            while len(children) < 1_000:
                children.append(subprocess.Popen(["/bin/sleep", "60"]))
        for child in children:
            child.kill()
            child.wait()
        if len(children) == 1_000:
            raise SystemExit("there is no limit on processes")
    elif misdeed == "hang":
        time.sleep(3600)
    elif misdeed == "die":
        os._exit(7)
    elif misdeed == "print":
        for _ in range(64):
            sys.stderr.write("x" * (1 << 20))
        raise SystemExit("enough")
    elif misdeed == "eat":
        eaten = [bytearray(b"x" * (256 << 20)) for _ in range(40)]
        time.sleep(60 + len(eaten))


async def flood(seat: Seat) -> None:
    """Call more tools at once than may wait."""
    with ThreadPoolExecutor(60) as threads:
        # The lab answers one call at a time: while it waits for this one, all others pile up, however slow the machine.
        slow = asyncio.wrap_future(threads.submit(seat.use, "run_code", {"code": "import time; time.sleep(3)"}))
        await asyncio.sleep(0.5)
        uses = [asyncio.wrap_future(threads.submit(seat.use, "list_artifacts", {})) for _ in range(59)]
        await asyncio.gather(slow, *uses, return_exceptions=True)


def main() -> None:
    seat = Seat(os.environ["LABMATES_URL"], os.environ["LABMATES_KEY"])
    way, misdeed = [*sys.argv[1:], "", ""][:2]
    if misdeed == "flood":
        asyncio.run(flood(seat))
        return
    misbehave(seat, misdeed)
    extra: Json = {}
    if misdeed == "forge":
        extra = {"usage": {"prompt_tokens": 0, "completion_tokens": 0}, "cost": 0, "user": seat.key}
    sys.stdout.write(asyncio.run(work(seat, way, extra)))


if __name__ == "__main__":
    main()
