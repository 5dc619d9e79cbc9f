"""The HTTP transport and servers that speak HTTP/1.1 well, badly and not at all."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvloop

from labmates.models.clients import DirectTransport, new_client
from labmates.models.options import ModelOptions

Run = Callable[[Coroutine[Any, Any, None]], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSES = b""  # in the place of an answer, or at the end of one


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@dataclass
class Server:
    """Answers the requests in turn with the parts of `answers`, a moment apart; the last answer is repeated."""

    answers: list[list[bytes]]
    scheme: str = "http"
    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # a program closed a connection
    closed: asyncio.Event = field(default_factory=asyncio.Event)  # the server closed a connection

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1?a=b"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while await self.answer(reader, writer):
            pass
        writer.close()
        await writer.wait_closed()
        self.closed.set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
            raise
        headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        body = await reader.readexactly(int(headers.get(b"content-length", b"0")))
        while b"transfer-encoding" in headers and not body.endswith(b"0\r\n\r\n"):
            body += await reader.readline()
        self.requests.append(head + body)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        for part in answer:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        return CLOSES not in answer


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def listening(talk: Talk, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that talks like this on each connection; its port."""
    talks = dict[asyncio.Task[None], asyncio.StreamWriter]()

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await talk(reader, writer)
        finally:
            writer.transport.abort() if sys.exc_info()[0] else writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks[asyncio.ensure_future(handled(reader, writer))] = writer
        if not server.is_serving():  # a connection that the end was quicker than
            writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        for writer in talks.values():
            if not writer.is_closing():  # its task was cancelled before it began
                writer.transport.abort()
        await asyncio.sleep(0.01)  # the transports' ends


@asynccontextmanager
async def serving(*answers: list[bytes], context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    found = Server(list(answers), "https" if context else "http")
    async with listening(found.serve, context) as found.port:
        yield found


def client(timeout: float | httpx2.Timeout | None = None, verify: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    over = DirectTransport(lambda: verify or ssl.create_default_context())
    return httpx2.AsyncClient(transport=over, timeout=timeout)


def test_requests_in_turn_share_a_connection_and_arrive_as_they_are(run: Run) -> None:
    async def case() -> None:
        async with serving([OK]) as server, client() as asking:
            for content in (b"x" * 100_000, b""):
                reply = await asking.post(server.url, content=content, headers={"X-Key": "abc"})
                assert (reply.status_code, reply.reason_phrase, reply.text) == (200, "OK", "ok")
            [first, second] = server.requests
            assert server.connections == 1
        assert first.startswith(b"POST /v1?a=b HTTP/1.1\r\n")
        assert b"X-Key: abc\r\n" in first
        assert first.endswith(b"\r\n\r\n" + b"x" * 100_000)
        assert second.endswith(b"\r\n\r\n")

    run(case())


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BODIES: dict[str, tuple[list[bytes], bytes, bool]] = {
    "chunks": ([CHUNKED + b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n"], b"abcde", True),
    "split chunks": (
        [b"HTTP/1.1 200 OK\r\nTransfer-Enc", b"oding: chunked\r\n\r\n1", b"0\r\n", b"a" * 16, b"\r\n0\r\n\r\n"],
        b"a" * 16,
        True,
    ),
    "a length": ([b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", b"cd"], b"abcd", True),
    "no body": ([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", True),
    "an empty body": ([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], b"", True),
    "up to the end": ([b"HTTP/1.1 200 OK\r\n\r\nab", b"cd", CLOSES], b"abcd", False),
    "of HTTP/1.0": ([b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", CLOSES], b"ab", False),
    "the last of a connection": (
        [HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nab"],
        b"ab",
        False,
    ),
    "after news": ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", OK], b"ok", True),
}


@pytest.mark.parametrize("kind", BODIES)
def test_bodies_of_all_kinds_are_read_and_their_connections_kept_or_not(run: Run, kind: str) -> None:
    answer, body, is_kept = BODIES[kind]

    async def case() -> None:
        async with serving(answer) as server, client() as asking:
            replies = [await asking.post(server.url, content=b"{}") for _ in range(3)]
            assert [reply.content for reply in replies] == [body] * 3
            assert all("X" not in reply.headers for reply in replies)
            assert server.connections == (1 if is_kept else 3)

    run(case())


def test_a_head_has_no_body(run: Run) -> None:
    async def case() -> None:
        async with serving([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"], [OK]) as server, client() as asking:
            assert (await asking.head(server.url)).headers["content-length"] == "2"
            assert (await asking.get(server.url)).text == "ok"

    run(case())


def test_a_request_of_unknown_length_is_sent_once_it_is_known(run: Run) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for part in (b"one", b"", b"two"):
            yield part

    async def case() -> None:
        async with serving([OK]) as server, client() as asking:
            await asking.post(server.url, content=parts())
            assert b"\r\nContent-Length: 6\r\n" in server.requests[0]
            assert server.requests[0].endswith(b"\r\n\r\nonetwo")

    run(case())


CUT = "peer closed connection without sending complete message body"
FAULTS: dict[str, tuple[list[bytes], str]] = {
    "silence": ([CLOSES], "Server disconnected without sending a response."),
    "half a head": ([b"HTTP/1.1 200 OK\r\nContent-", CLOSES], "Server disconnected without sending a response."),
    "half a chunk": ([CHUNKED + b"5\r\nab", CLOSES], CUT),
    "half a body": ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", CLOSES], CUT),
    "no HTTP": ([b"+OK Dovecot ready.\r\n"], "Expected HTTP/"),
    "a broken chunk": ([CHUNKED + b"xyz\r\n"], "chunk size"),
    "two lengths": ([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"], "Content-Length"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_breaks_the_protocol_is_an_error_of_that_request_alone(run: Run, fault: str) -> None:
    answer, reason = FAULTS[fault]

    async def case() -> None:
        async with serving(answer, [OK]) as server, client() as asking:
            with pytest.raises(httpx2.RemoteProtocolError) as caught:
                await asking.post(server.url, content=b"{}")
            assert reason in str(caught.value)
            assert (await asking.post(server.url, content=b"{}")).text == "ok"
            assert server.connections == 2

    run(case())


def test_what_came_before_a_cut_is_read(run: Run) -> None:
    async def case() -> None:
        cut = [CHUNKED + b"2\r\nab\r\n", b"2\r\ncd\r\n", CLOSES]
        async with serving(cut) as server, client() as asking, asking.stream("GET", server.url) as reply:
            pieces = reply.aiter_raw()
            assert await anext(pieces) + await anext(pieces) == b"abcd"
            with pytest.raises(httpx2.RemoteProtocolError):
                await anext(pieces)

    run(case())


def test_a_connection_that_the_server_has_closed_serves_no_further_request(run: Run) -> None:
    async def case() -> None:
        async with serving([OK, CLOSES], [OK]) as server, client() as asking:
            assert (await asking.get(server.url)).text == "ok"
            await server.closed.wait()
            for _ in range(10):
                await asyncio.sleep(0)  # the end is at the client's socket, which the loop looks at in each turn
            for _ in range(2):
                assert (await asking.get(server.url)).text == "ok"
            assert server.connections == 2

    run(case())


def test_idle_connections_are_not_kept_for_long(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates.models.clients.IDLE_SECONDS", 0.05)

    async def case() -> None:
        async with serving([OK]) as server, client() as asking:
            for _ in range(2):
                assert (await asking.get(server.url)).text == "ok"
                await asyncio.sleep(0.2)
            assert server.connections == 2

    run(case())


@pytest.mark.parametrize(
    ("answer", "late"),
    [([], httpx2.ReadTimeout), ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"], httpx2.ReadTimeout)],
)
def test_a_server_that_says_nothing_for_too_long_is_late(
    run: Run, answer: list[bytes], late: type[httpx2.TimeoutException]
) -> None:
    async def case() -> None:
        async with serving([OK], answer) as server, client() as asking:
            await asking.get(server.url)  # connects, which the limit below includes
            with pytest.raises(late):
                await asking.get(server.url, timeout=httpx2.Timeout(None, read=0.1))
            await server.gone.wait()

    run(case())


def test_a_server_that_reads_nothing_is_late(run: Run) -> None:
    async def read_nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.Event().wait()  # until it is cancelled

    async def case() -> None:
        async with listening(read_nothing) as port, client(httpx2.Timeout(None, read=0.2, write=0.2)) as asking:
            with pytest.raises(httpx2.TimeoutException):
                await asking.post(f"http://127.0.0.1:{port}", content=b"x" * 50_000_000)

    run(case())


def test_a_program_that_reads_slowly_holds_the_server_back(run: Run) -> None:
    sent, held = 0, asyncio.Event()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 64000000\r\n\r\n")
        for _ in range(1000):
            writer.write(b"x" * 64_000)
            if writer.transport.get_write_buffer_size() > writer.transport.get_write_buffer_limits()[1]:
                held.set()
            await writer.drain()
            sent += 64_000

    async def case() -> None:
        async with (
            listening(pour) as port,
            client() as asking,
            asking.stream("GET", f"http://127.0.0.1:{port}") as reply,
        ):
            await held.wait()
            for _ in range(1000):
                await asyncio.sleep(0)  # a program that reads ahead would do so now
            assert sent < 32_000_000
            assert sum([len(piece) async for piece in reply.aiter_raw()]) == 64_000_000

    run(case())


def test_a_cancelled_request_closes_its_connection(run: Run) -> None:
    async def case() -> None:
        async with serving([]) as server, client() as asking:
            asked = asyncio.ensure_future(asking.get(server.url))
            while not server.requests:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await server.gone.wait()

    run(case())


def test_a_stream_that_is_left_closes_its_connection(run: Run) -> None:
    async def case() -> None:
        async with serving([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"]) as server, client() as asking:
            async with asking.stream("GET", server.url) as reply:
                assert await anext(reply.aiter_raw()) == b"ab"
            await server.gone.wait()

    run(case())


def test_unreachable_servers_and_unknown_hosts_and_schemes_are_told_apart(run: Run) -> None:
    async def case() -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
            async with client() as asking:
                for url, reason in (
                    (f"http://127.0.0.1:{port}", "connection failed"),
                    (f"http://localhost:{port}", "connection failed"),
                    ("http://no-such-host.invalid", "not known|name resolution|No address"),
                ):
                    with pytest.raises(httpx2.ConnectError, match=reason):
                        await asking.get(url)
                with pytest.raises(httpx2.UnsupportedProtocol):
                    await asking.get("ftp://127.0.0.1")

    run(case())


def test_each_address_of_a_host_is_tried(run: Run) -> None:
    async def case() -> None:
        async with serving([OK]) as server, client() as asking:  # not on ::1, the first address of localhost
            assert (await asking.get(server.url.replace("127.0.0.1", "localhost"))).text == "ok"

    run(case())


def test_no_header_holds_a_second_one(run: Run) -> None:
    async def case() -> None:
        async with serving([OK]) as server, client() as asking:
            for value in ("sk-abc\r\nX-Other: 1", "sk-abc\n", "sk\0abc"):
                with pytest.raises(httpx2.LocalProtocolError, match="a header") as caught:
                    await asking.get(server.url, headers={"authorization": value})
                assert "sk-abc" not in str(caught.value)
        assert server.requests == []

    run(case())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 with its key, in one file."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(file.with_suffix(".crt"))]
    subprocess.run(made, check=True, capture_output=True)
    file.write_text(file.read_text() + file.with_suffix(".crt").read_text())
    return file


def test_a_secure_server_is_used_if_its_certificate_is_trusted(run: Run, certificate: Path) -> None:
    async def case() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        async with serving([OK], context=context) as server:
            async with client(verify=ssl.create_default_context(cafile=certificate.with_suffix(".crt"))) as asking:
                replies = [await asking.post(server.url, content=b"x" * 100_000) for _ in range(3)]
                assert [reply.text for reply in replies] == ["ok"] * 3
                assert server.connections == 1
            async with client() as asking:
                with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
                    await asking.get(server.url)

    run(case())


def test_connecting_takes_no_longer_than_its_time_limit(run: Run) -> None:
    async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()  # until it is cancelled

    async def case() -> None:
        async with listening(hang) as port, client(httpx2.Timeout(None, connect=0.1)) as asking:
            with pytest.raises(httpx2.ConnectTimeout):  # the server never shakes hands
                await asking.get(f"https://127.0.0.1:{port}")

    run(case())


def test_a_proxy_of_the_environment_is_used(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def case() -> None:
        async with serving([OK]) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
            async with new_client(ModelOptions()) as asking:
                assert (await asking.get("http://model.invalid/v1")).text == "ok"
            assert proxy.requests[0].startswith(b"GET http://model.invalid/v1 ")

    run(case())
