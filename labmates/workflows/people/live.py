"""The link between a run and the pages that show it: replies under way, and questions to a person.

A run listens on a Unix socket that its user alone can reach, named by the run's id. A client sends one line of JSON,
``{"do": "follow"}``, ``{"do": "question"}``, ``{"do": "turn", "agent": …}`` for people who take part,
``{"do": "reply", "step": …, …}`` with the form of an answer to either, or ``{"do": "budget"}`` for the state of the
pool where the run knows it, and gets lines of JSON. Followers get what waits and the replies under way, then what is
new. Nothing of this enters the record, and a run that nobody follows streams nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final, TypeVar, cast

from labmates.errors import UsageError
from labmates.models.reply import Piece, listening
from labmates.workflows.people.approval import Answer, Question, read_form

_log = logging.getLogger(__name__)

T = TypeVar("T")
Json = dict[str, Any]

LONGEST_LINE: Final = 1 << 20
_LAST_SECONDS: Final = 2.0
"""For clients to read what was sent to them before the run ended."""
_PAUSE: Final = 0.1
"""Seconds between two parts of a reply on their way to followers."""
_MOST_WAITING: Final = 4 << 20
"""A follower that leaves more bytes than this unread is dropped."""


def socket_of(run_id: str) -> Path:
    """The path of a run's socket; its folder need not exist."""
    home = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(home) / "labmates" if home else Path(tempfile.gettempdir()) / f"labmates-{os.geteuid()}"
    return folder / f"{run_id}.sock"


@asynccontextmanager
async def live_run(run_id: str, budget: Callable[[], Json] = dict) -> AsyncIterator[Live]:
    """The link of a run that is executed here, with the state of its budget, if it is known.

    Where no socket can be opened, nobody can follow the run.
    """
    live, path = Live(budget), socket_of(run_id)
    server = None
    try:
        await asyncio.to_thread(_prepare, path)
        # It replaces the socket of an earlier attempt.
        server = await asyncio.start_unix_server(live.connect, path, limit=LONGEST_LINE)
    except OSError as error:
        _log.info("the run %s can't be followed: %s", run_id, error)
    try:
        yield live
    finally:
        if server is not None:
            # A server that closes at once leaves the connection open that it has just accepted.
            asyncio.get_running_loop().remove_reader(server.sockets[0])
            await asyncio.sleep(0)
            server.close()
        await live.close()
        if server is not None:
            await asyncio.to_thread(path.unlink, missing_ok=True)


def _prepare(path: Path) -> None:
    """Make the folder of a socket, which this user alone can enter.

    Raises `PermissionError` if the folder belongs to another user, or others can enter it.
    """
    folder = path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"'{folder}' is not a private folder of this user")


class Live:
    """The run's end of the link."""

    def __init__(self, budget: Callable[[], Json] = dict) -> None:
        self._budget = budget
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._closed = False
        self._followers: set[asyncio.StreamWriter] = set()
        self._replies: dict[str, _Reply] = {}
        self._turns: dict[str, _Turn] = {}

    @property
    def is_followed(self) -> bool:
        """Whether anybody listens."""
        return bool(self._followers)

    @contextmanager
    def reply(self, step: str, agent: str) -> Iterator[None]:
        """A call to a model, whose text is passed to followers where there are any when it begins."""
        if not self.is_followed:
            yield
            return
        reply = self._replies[step] = _Reply(self, step, agent)
        try:
            with listening(reply.add):
                yield
        finally:
            reply.flush()
            del self._replies[step]
            self.tell({"type": "end", "step": step})

    async def ask(self, question: Question) -> Answer:
        """Show a question on the run's page and wait for the answer."""
        return await self.turn({"step": question.step, "question": asdict(question)}, partial(read_form, question))

    async def turn(self, shown: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]) -> T:
        """Show a person what to answer, and wait for a reply that `read` takes.

        Parameters
        ----------
        read
            Makes the reply of a sent form; raises `UsageError` with what is wrong, for the person.
        """
        step = shown["step"]
        self._turns[step] = turn = _Turn(shown, read, asyncio.get_running_loop().create_future())
        self.tell(self._waiting())
        try:
            return cast(T, await turn.reply)
        finally:
            del self._turns[step]
            self.tell(self._waiting())

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message to all followers."""
        line = _line(message)
        for writer in [*self._followers]:
            if writer.transport.get_write_buffer_size() > _MOST_WAITING:
                self._followers.discard(writer)
                writer.transport.abort()
            else:
                writer.write(line)

    async def close(self) -> None:
        """Let all clients go."""
        self._closed = True
        for writer in self._clients.values():
            writer.close()
        if self._clients:
            _, late = await asyncio.wait(self._clients, timeout=_LAST_SECONDS)
            for task in late:
                self._clients[task].transport.abort()

    def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin to answer a client."""
        if self._closed:  # it was accepted just before
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._clients[task] = writer
        task.add_done_callback(self._clients.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, ValueError):  # a client that went away, or sent a line that is too long
                request = _request(await reader.readline())
                if request.get("do") == "follow":
                    await self._follow(reader, writer)
                    return
                answers = {
                    "turn": lambda: self._turn_of(request.get("agent")),
                    "reply": lambda: {"fault": self._replied(request)},
                    "budget": self._budget,
                }
                writer.write(_line(answers.get(request.get("do", ""), self._waiting)()))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_line(self._waiting()))
        for reply in self._replies.values():
            writer.write(_line(reply.whole()))
        self._followers.add(writer)
        try:
            await reader.read()  # until it leaves
        finally:
            self._followers.discard(writer)

    def _waiting(self) -> Json:
        """The question that waits, and the people whose turns wait, oldest first."""
        shown = [turn.shown for turn in self._turns.values()]
        question = next((each["question"] for each in shown if "question" in each), None)
        heading = Question(**question).heading if question else ""
        agents = [each["agent"] for each in shown if "agent" in each]
        return {"type": "waiting", "question": question, "heading": heading, "agents": agents}

    def _turn_of(self, agent: object) -> Json:
        """The oldest turn of an agent, by default of anybody, and whose turns wait."""
        people = [turn.shown for turn in self._turns.values() if "agent" in turn.shown]
        mine = next((shown for shown in people if agent in (None, "", shown["agent"])), None)
        return {"turn": mine, "agents": [shown["agent"] for shown in people]}

    def _replied(self, request: Mapping[str, Any]) -> str:
        """Pass a person's reply on; return what is wrong with it, or empty."""
        turn = self._turns.get(str(request.get("step")))
        if turn is None or turn.reply.done():
            return "This question no longer waits for an answer."
        try:
            turn.reply.set_result(turn.read(request))
        except UsageError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class _Turn:
    """A turn of a person who takes part, or who is asked a question."""

    shown: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], Any]
    reply: asyncio.Future[Any]


class _Reply:
    """The text of one reply under way; followers get it in parts, not word by word."""

    def __init__(self, live: Live, step: str, agent: str) -> None:
        self._live = live
        self._head = {"type": "reply", "step": step, "agent": agent}
        self._told: list[str] = []
        self._new: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, piece: Piece | None) -> None:
        if piece is None:
            self._told, self._new = [], []
            self._live.tell(self.whole())
        elif text := str(piece):
            self._new.append(text)
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_PAUSE, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._new:
            text, self._new = "".join(self._new), []
            self._told.append(text)
            self._live.tell({**self._head, "text": text, "begins": False})

    def whole(self) -> dict[str, Any]:
        return {**self._head, "text": "".join(self._told), "begins": True}


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _request(line: bytes) -> dict[str, Any]:
    request = json.loads(line or b"{}")
    return request if isinstance(request, dict) else {}


async def waiting_runs(patience: float) -> set[str]:
    """The runs of this user on this machine that wait for a person, of those that answer within `patience` seconds."""
    runs = [path.stem for path in socket_of("*").parent.glob("*.sock")]
    asked = (asyncio.wait_for(ask_run(run, {"do": "question"}), patience) for run in runs)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    told = {run: answer for run, answer in zip(runs, answers, strict=True) if isinstance(answer, dict)}
    return {run for run, answer in told.items() if answer["question"] or answer["agents"]}


async def ask_run(run_id: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The first answer of a run to a request; None if the run is not executed on this machine by this user."""
    async for message in follow_run(run_id, request):
        return message
    return None


async def follow_run(run_id: str, request: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the messages of a run; none if it is not executed on this machine by this user."""
    try:
        reader, writer = await asyncio.open_unix_connection(socket_of(run_id), limit=LONGEST_LINE)
    except OSError:
        return
    try:
        writer.write(_line(request))
        with suppress(OSError, ValueError):
            while line := await reader.readline():
                yield json.loads(line)
    finally:
        writer.close()
