"""Calls through batch APIs: collected, submitted together, polled, and answered one by one.

The queue is part of the hub's HTTP client. To its callers a batched call is a slow call with the same request and
reply. A `BatchBook` records which batch holds which request before the submission, so a resumed run finds its batches
again and pays for them once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self

import httpx2

from labmates.models.batch_protocols import (
    ANTHROPIC_CALLS,
    NO_API,
    OPENAI_CALLS,
    AnthropicBatches,
    BatchProtocol,
    BatchRequestError,
    Channel,
    OpenAIBatches,
    Result,
    State,
    failed,
)
from labmates.models.completions import Json
from labmates.models.options import ModelOptions
from labmates.models.sending import UNDER_WAY
from labmates.util.grouping import grouped

PROTOCOLS: Final[Mapping[str, BatchProtocol]] = {
    OPENAI_CALLS: OpenAIBatches(),
    ANTHROPIC_CALLS: AnthropicBatches(),
}
"""Batch APIs by the path suffix of their single calls."""
_KEPT_HEADERS: Final = ("authorization", "x-api-key", "anthropic-version", "anthropic-beta", "openai-organization")
_MOST_WINDOWS: Final = 20
"""Maximum number of windows before a batch is submitted, even if calls keep arriving."""
_LAST_SECONDS: Final = 30.0
"""Time limit of a submission in flight when the hub closes, in seconds."""


class Noted(NamedTuple):
    """A submission of requests."""

    token: str
    batch: str | None  # the batch's id; None if the server's answer is unknown
    requests: int  # number of requests
    at: float  # Unix time


class BatchBook(Protocol):
    """A register of batches by request; this base class stores nothing."""

    async def find(self, keys: Sequence[str]) -> Mapping[str, tuple[str, str | None, int, float]]:
        """The submissions of requests, as the fields of `Noted`."""
        del keys
        return {}

    async def plan(self, token: str, keys: Sequence[str]) -> None:
        """Record that requests will be submitted together."""
        del token, keys

    async def name(self, token: str, batch: str) -> None:
        """Record the id of a submission's batch."""
        del token, batch

    async def forget(self, keys: Sequence[str]) -> None:
        """Remove requests."""
        del keys


class NoBook(BatchBook):
    """Stores nothing: batches are lost with the process."""


@dataclass(frozen=True)
class Group:
    """Calls that fit in one batch: of one model, at one address, with the same headers."""

    protocol: str
    base: str
    model: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(eq=False)
class Waiting:
    """A call that waits for its reply."""

    key: str
    body: Json
    size: int
    most_bytes: int
    reply: asyncio.Future[Result]

    def settle(self, result: Result) -> None:
        """Answer the call, unless it was cancelled."""
        if not self.reply.done():
            self.reply.set_result(result)


@dataclass
class _Gathering:
    """The calls of a group since the last submission, and when they are submitted."""

    calls: list[Waiting] = field(default_factory=list)
    began: float = 0.0
    timer: asyncio.TimerHandle | None = None


class BatchQueue:
    """Collects calls and makes them through batch APIs; an async context manager, for one event loop.

    A batch is submitted `batch_window` seconds after its last call, and polled every `batch_poll` seconds, with at most
    `max_retries` failed polls in a row. `notify` receives the progress.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        book: BatchBook,
        options: ModelOptions,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._book = book
        self._options = options
        self._notify = notify or (lambda _text: None)
        self._gathering: dict[Group, _Gathering] = {}
        self._followed: dict[str, list[Waiting]] = {}
        self._claimed: set[str] = set()
        self._answered: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._submissions: set[asyncio.Task[str]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for gathering in self._gathering.values():
            if gathering.timer is not None:
                gathering.timer.cancel()
        if self._submissions:  # A cancelled submission may have reached the server, with its id lost.
            await asyncio.wait(self._submissions, timeout=_LAST_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if kind is None and self._answered:  # The callers have recorded the replies.
            await self._book.forget(self._answered)

    async def reply(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a single call, from a batch."""
        group, base_key, body = _read(request)
        attempt = UNDER_WAY.get()
        origin, most_bytes = (attempt.origin, attempt.most_bytes(streamed=False)) if attempt else ("", 1 << 24)
        key = self._claim(hashlib.blake2b(f"{origin}\n{base_key}".encode(), digest_size=20).hexdigest())
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        waiting = Waiting(key, body, len(request.content), most_bytes, future)
        self._gather(group, waiting)
        answered = False
        try:
            result = await future
            answered = result.status == 200
        finally:
            if not answered:
                self._claimed.discard(waiting.key)
                if (gathering := self._gathering.get(group)) is not None and waiting in gathering.calls:
                    gathering.calls.remove(waiting)
        if answered:
            self._answered.append(key)
        elif result.uncertain and attempt is not None:
            attempt.is_sent = True
        headers = {"retry-after": result.retry_after} if result.retry_after else {}
        return httpx2.Response(result.status, json=result.body, headers=headers, request=request)

    def _claim(self, base_key: str) -> str:
        """The id of a request: a hash of its content, and a number for equal requests."""
        number = 0
        while (key := f"{base_key}-{number}") in self._claimed:
            number += 1
        self._claimed.add(key)
        return key

    def _gather(self, group: Group, waiting: Waiting) -> None:
        loop = asyncio.get_running_loop()
        gathering = self._gathering.setdefault(group, _Gathering(began=loop.time()))
        gathering.calls.append(waiting)
        if gathering.timer is not None:
            gathering.timer.cancel()
        wait = min(
            self._options.batch_window, gathering.began + _MOST_WINDOWS * self._options.batch_window - loop.time()
        )
        # In a separate context: work for all calls must not count as one call's attempt.
        gathering.timer = loop.call_later(max(wait, 0.0), self._close_window, group, context=Context())

    def _close_window(self, group: Group) -> None:
        gathering = self._gathering.pop(group)
        if gathering.calls:
            self._start(gathering.calls, self._submit_or_resume, group, gathering.calls)

    def _start(self, calls: Sequence[Waiting], work: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Start work for calls, which get its error if it fails."""

        async def guarded() -> None:
            try:
                try:
                    await work(*arguments)
                except BatchRequestError as error:
                    await self._settle(calls, dict.fromkeys((call.key for call in calls), error.result))
            except Exception as error:  # A bug or a broken store must not leave calls waiting.
                for call in calls:
                    if not call.reply.done():
                        call.reply.set_exception(error)

        task = asyncio.get_running_loop().create_task(guarded(), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _submit_or_resume(self, group: Group, calls: Sequence[Waiting]) -> None:
        """Find the batches of calls that were submitted earlier, and submit the others."""
        submitted = await self._book.find([call.key for call in calls])
        noted = {key: Noted(*parts) for key, parts in submitted.items()}
        fresh = [call for call in calls if call.key not in noted]
        submissions = grouped((noted[call.key], call) for call in calls if call.key in noted)
        for submission, members in submissions.items():
            self._start(members, self._resume, group, submission, members)
        for part in split_into_batches(fresh, PROTOCOLS[group.protocol]):
            self._start(part, self._submit, group, part)

    async def _resume(self, group: Group, submission: Noted, calls: Sequence[Waiting]) -> None:
        """Follow an earlier batch; one that never reached the server is submitted again."""
        batch = submission.batch
        if batch is None:
            batch = await self._find(group, submission)
            if batch is None:
                await self._book.forget([call.key for call in calls])
                await self._submit(group, calls)
                return
        self._notify(f"found batch {batch} of {group.model} again, submitted by an earlier process")
        self._follow(group, batch, calls, is_certain=submission.batch is not None)

    async def _find(self, group: Group, submission: Noted) -> str | None:
        """The id of an unacknowledged submission's batch; None if there is no such batch."""
        protocol = PROTOCOLS[group.protocol]
        try:
            return await protocol.find(self._channel(group), submission.token, submission.requests, submission.at)
        except BatchRequestError as error:
            if error.result.status in NO_API:
                return None
            raise BatchRequestError(replace(error.result, keeps=True)) from None

    async def _submit(self, group: Group, calls: Sequence[Waiting]) -> None:
        calls = [call for call in calls if not call.reply.done()]
        if not calls:
            return
        token = uuid.uuid4().hex
        await self._book.plan(token, [call.key for call in calls])
        requests = {call.key: call.body for call in calls}

        async def send() -> str:
            batch = await PROTOCOLS[group.protocol].submit(self._channel(group), requests, token)
            await self._book.name(token, batch)
            return batch

        submission = asyncio.get_running_loop().create_task(send())
        self._submissions.add(submission)
        submission.add_done_callback(self._submissions.discard)
        try:
            batch = await asyncio.shield(submission)
        except BatchRequestError as error:
            raise BatchRequestError(_submission_failure(error.result, group)) from None
        self._follow(group, batch, calls, lines=list(requests))

    def _follow(
        self, group: Group, batch: str, calls: Iterable[Waiting], *, lines: Sequence[str] = (), is_certain: bool = True
    ) -> None:
        """Poll a batch until its end, unless it is polled already.

        `lines` are the ids of its requests in order of submission, if known. `is_certain` tells that it holds these
        calls.
        """
        if batch in self._followed:
            self._followed[batch] += calls
            return
        members = self._followed[batch] = list(calls)
        self._start(members, self._poll_to_end, group, batch, members, lines, is_certain)

    async def _poll_to_end(
        self, group: Group, batch: str, calls: list[Waiting], lines: Sequence[str], is_certain: bool
    ) -> None:
        protocol, channel = PROTOCOLS[group.protocol], self._channel(group)
        try:
            state = await self._ended(group, batch)
            results = {lines[place]: result for place, result in state.at_line.items() if 0 <= place < len(lines)}
            if state.files:
                most = max(call.most_bytes for call in calls) * max(state.total, len(calls))
                results |= await _results(protocol, channel, state.files, most)
        finally:
            self._followed.pop(batch, None)
        if not is_certain and not any(call.key in results for call in calls):
            results = {call.key: failed(503, "the batch was never submitted") for call in calls}
        results = {call.key: results.get(call.key, state.missing) for call in calls}
        good = sum(results[call.key].status == 200 for call in calls)
        self._notify(f"batch {batch} of {group.model} has ended: {good} of {len(calls)} replies")
        await self._settle(calls, results)

    async def _ended(self, group: Group, batch: str) -> State:
        """Poll a batch and return its state at its end."""
        protocol, channel = PROTOCOLS[group.protocol], self._channel(group)
        failures, last_done = 0, -1
        while True:
            try:
                state = await protocol.state(channel, batch)
                failures = 0
            except BatchRequestError as error:
                failures += 1
                if not error.result.is_passing or failures > self._options.max_retries:
                    raise BatchRequestError(_poll_failure(error.result, batch)) from None
            else:
                if state.ended:
                    return state
                if state.done != last_done:
                    last_done = state.done
                    self._notify(f"waiting for batch {batch} of {group.model}: {state.done} of {state.total}")
            await asyncio.sleep(self._options.batch_poll)

    async def _settle(self, calls: Sequence[Waiting], results: Mapping[str, Result]) -> None:
        """Answer the calls; failed requests are forgotten first, so that a retry submits them again."""
        lost = [call.key for call in calls if results[call.key].status != 200 and not results[call.key].keeps]
        if lost:
            await self._book.forget(lost)
        for call in calls:
            call.settle(results[call.key])

    def _channel(self, group: Group) -> Channel:
        return Channel(self._client, group.base, dict(group.headers), self._options.call_timeout)


class BatchClient(httpx2.AsyncClient):
    """A client whose model calls wait for their batches."""

    batches: BatchQueue | None = None

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """Send a request, a model call through the queue."""
        if self.batches is not None and is_call(request):
            return await self.batches.reply(request)
        return await super().send(request, **settings)


def is_call(request: httpx2.Request) -> bool:
    """Whether a request is a model call that a batch can hold."""
    return request.method == "POST" and request.url.path.endswith(tuple(PROTOCOLS))


def _read(request: httpx2.Request) -> tuple[Group, str, Json]:
    """A call's group, the key of its content, and its body."""
    protocol = next(end for end in PROTOCOLS if request.url.path.endswith(end))
    body: Json = json.loads(request.content)
    body.pop("stream", None)
    base = str(request.url.copy_with(query=None)).removesuffix(protocol)
    headers = tuple((name, request.headers[name]) for name in _KEPT_HEADERS if name in request.headers)
    key = json.dumps([base, protocol, body], sort_keys=True, separators=(",", ":"))
    return Group(protocol, base, str(body.get("model")), headers), key, body


def split_into_batches(calls: Sequence[Waiting], protocol: BatchProtocol) -> list[list[Waiting]]:
    """Calls in parts that fit a batch."""
    parts: list[list[Waiting]] = []
    size = 0
    for call in calls:
        if not parts or len(parts[-1]) >= protocol.most_calls or size + call.size > protocol.most_bytes:
            parts.append([])
            size = 0
        parts[-1].append(call)
        size += call.size + 200  # the envelope in the batch
    return parts


async def _results(
    protocol: BatchProtocol, channel: Channel, files: Sequence[str], most_bytes: int
) -> dict[str, Result]:
    """The results in the files of a batch, by request; the first line of a request counts."""
    results: dict[str, Result] = {}
    read = 0
    for path in files:
        async for line in channel.lines(path):
            read += len(line)
            if read > most_bytes:
                raise BatchRequestError(failed(504, "the results of the batch are too long", uncertain=True))
            try:
                parsed = json.loads(line)
            except (ValueError, RecursionError):
                continue  # Its request is unknown, and so gets the result of missing requests.
            if isinstance(parsed, dict) and (result := protocol.read(parsed)) is not None:
                results.setdefault(*result)
    return results


def _submission_failure(result: Result, group: Group) -> Result:
    if result.status in NO_API:
        reason = f"{group.base} has no batch API (HTTP {result.status}): leave --batch out (resume with --no-batch)"
        return failed(400, reason)
    # After a server failure the batch may exist; the next attempt looks for it.
    return replace(result, keeps=result.keeps or result.status >= 500)


def _poll_failure(result: Result, batch: str) -> Result:
    """The result of calls whose batch was unreachable; only a vanished batch is submitted again."""
    if result.status in NO_API:
        return failed(504, f"the server no longer knows the batch {batch}", uncertain=True)
    return replace(result, keeps=True)
