"""The batch APIs of OpenAI and Anthropic: submitting requests, polling a batch, reading its results.

Sources: the types of the packages ``openai`` (``types/batch*.py``) and ``anthropic``
(``types/messages/message_batch*.py``).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol
from urllib.parse import quote

import httpx2

from labmates.models.completions import Json, split_lines
from labmates.models.error_bodies import one_line

OPENAI_CALLS: Final = "/chat/completions"
ANTHROPIC_CALLS: Final = "/v1/messages"
_STATUS_OF_TYPE: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Anthropic's HTTP status by type of error; 500 for all others."""
NO_API: Final = (404, 405, 501)
"""Statuses of a server without a batch API, or without a batch."""
MOST_ID_CHARS: Final = 200
"""Maximum length of a batch id; longer ids are a server's error."""
_CLOCK_SLACK: Final = 600.0
"""Maximum clock difference between a server and this machine, in seconds."""


@dataclass(frozen=True)
class Result:
    """The response to one call of a batch, as to a single call: HTTP `status` and JSON `body`.

    `uncertain` tells that the provider may bill the call without a reply, `keeps` that the batch may still bring a
    reply, so the call must not be submitted again.
    """

    status: int
    body: Any
    retry_after: str = ""
    uncertain: bool = False
    keeps: bool = False

    @property
    def is_passing(self) -> bool:
        """Whether a retry may succeed."""
        return self.status == 429 or self.status >= 500


def failed(
    status: int, reason: str, *, code: str = "", uncertain: bool = False, keeps: bool = False, retry_after: str = ""
) -> Result:
    """The result of a failed call, with an error body for all protocols."""
    body = {"type": "error", "error": {"message": reason, "type": code or "batch", "code": code or None}}
    return Result(status, body, retry_after, uncertain, keeps)


@dataclass(frozen=True)
class State:
    """The progress of a batch: `done` of `total` requests are answered; when `ended`, results can be read from `files`.

    `missing` is the result of requests without a line in the results; `at_line` holds results of requests that were
    refused at submission, by index in the batch.
    """

    ended: bool
    done: int
    total: int
    missing: Result
    at_line: Mapping[int, Result]
    files: tuple[str, ...] = ()


class Channel:
    """Requests about batches at a base URL."""

    def __init__(self, client: httpx2.AsyncClient, base: str, headers: dict[str, str], timeout: float) -> None:
        self.base = base
        self._client = client
        self._headers = headers
        self._timeout = timeout

    async def ask(self, method: str, path: str, **content: Any) -> Json:
        """The server's answer, a JSON object; raises `BatchRequestError` on a refusal."""
        response = await self._send(method, path, **content)
        try:
            data = json.loads(await response.aread())
        except (ValueError, RecursionError, httpx2.HTTPError):
            data = None
        finally:
            await response.aclose()
        if response.is_error:
            body = data if isinstance(data, dict) else failed(response.status_code, "no reason given").body
            raise BatchRequestError(Result(response.status_code, body, response.headers.get("retry-after", "")))
        if not isinstance(data, dict):
            raise BatchRequestError(failed(502, f"the answer to {method} {path} is not a JSON object"))
        return data

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Yield the lines of a results file."""
        response = await self._send("GET", path)
        try:
            if response.status_code in NO_API:
                raise BatchRequestError(failed(504, "the server no longer has the results", uncertain=True))
            if response.is_error:
                raise BatchRequestError(failed(503, f"HTTP {response.status_code} for the results", keeps=True))
            async for lines in split_lines(response.aiter_bytes()):
                for line in lines:
                    yield line
        except httpx2.HTTPError as error:
            raise BatchRequestError(failed(503, f"the results broke off: {one_line(str(error))}", keeps=True)) from None
        finally:
            await response.aclose()

    async def _send(self, method: str, path: str, **content: Any) -> httpx2.Response:
        request = self._client.build_request(
            method, f"{self.base}{path}", headers=self._headers, timeout=self._timeout, **content
        )
        try:
            return await self._client.send(request, stream=True)
        except httpx2.HTTPError as error:
            reason = one_line(str(error)) or type(error).__name__
            raise BatchRequestError(failed(503, f"{method} {path}: {reason}", keeps=True)) from None


class BatchProtocol(Protocol):
    """The batch API of a provider."""

    most_calls: int
    most_bytes: int

    async def submit(self, channel: Channel, requests: Mapping[str, Json], token: str) -> str:
        """Submit requests by id and return the id of the batch."""

    async def find(self, channel: Channel, token: str, requests: int, since: float) -> str | None:
        """The id of an unacknowledged batch, submitted as `token` at `since` (Unix time); None if it doesn't exist.

        `requests` is its number of requests.
        """

    async def state(self, channel: Channel, batch: str) -> State:
        """The progress of a batch."""

    def read(self, line: Json) -> tuple[str, Result] | None:
        """The request's id and the result in a line; None if unreadable."""


_UNANSWERED = "the batch ended without a readable reply to this request"


class OpenAIBatches:
    """Batches of OpenAI: a file of requests, a batch, and files of results and errors."""

    most_calls = 50_000
    most_bytes = 190_000_000

    async def submit(self, channel: Channel, requests: Mapping[str, Json], token: str) -> str:
        """Upload the requests as a file and start the batch, with the token in its metadata."""
        url = f"/v1{OPENAI_CALLS}"
        rows = ({"custom_id": key, "method": "POST", "url": url, "body": body} for key, body in requests.items())
        data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        file = {"file": ("batch.jsonl", data, "application/jsonl")}
        uploaded = await channel.ask("POST", "/files", data={"purpose": "batch"}, files=file)
        wanted = {"input_file_id": uploaded.get("id"), "endpoint": url, "completion_window": "24h"}
        return _id(await channel.ask("POST", "/batches", json={**wanted, "metadata": {"labmates": token}}))

    async def find(self, channel: Channel, token: str, requests: int, since: float) -> str | None:
        """Find the token in the metadata of the newest batches."""
        del requests, since
        listed = await channel.ask("GET", "/batches?limit=100")
        named = (batch for batch in _objects(listed) if _object(batch.get("metadata")).get("labmates") == token)
        return next(map(_id, named), None)

    async def state(self, channel: Channel, batch: str) -> State:
        """Read the batch's status, counts, files and errors."""
        answer = await channel.ask("GET", f"/batches/{quote(batch, safe='')}")
        status, counts = answer.get("status"), _object(answer.get("request_counts"))
        errors = _objects(_object(answer.get("errors")))
        at_line = {error["line"] - 1: _refused(error) for error in errors if isinstance(error.get("line"), int)}
        missing = failed(504, _UNANSWERED, uncertain=True)
        if status == "expired":
            missing = failed(503, "the batch expired before this request was answered")
        elif status == "cancelled":
            missing = failed(400, "the batch was cancelled at the server; resume to submit this request again")
        elif status == "failed" and at_line:
            missing = failed(503, "the server refused the batch because of another request in it")
        elif status == "failed":
            missing = _refused(errors[0] if errors else {})
        files = tuple(str(answer[name]) for name in ("output_file_id", "error_file_id") if answer.get(name))
        done = _count(counts, "completed") + _count(counts, "failed")
        ended = status in ("completed", "failed", "expired", "cancelled")
        paths = tuple(f"/files/{quote(file, safe='')}/content" for file in files)
        return State(ended, done, _count(counts, "total"), missing, at_line, paths)

    def read(self, line: Json) -> tuple[str, Result] | None:
        """Read a line of the results or of the errors."""
        key, response, error = line.get("custom_id"), line.get("response"), line.get("error")
        if not isinstance(key, str):
            return None
        status = response.get("status_code") if isinstance(response, dict) else None
        if isinstance(response, dict) and isinstance(status, int) and 200 <= status < 600:
            return key, Result(status, response.get("body"))
        if isinstance(error, dict):
            reason = str(error.get("message") or error.get("code") or "no reason given")
            return key, failed(503, reason, code=str(error.get("code") or ""))
        return None


class AnthropicBatches:
    """Batches of Anthropic's messages: one request with all calls, and one stream of results."""

    most_calls = 100_000
    most_bytes = 240_000_000

    async def submit(self, channel: Channel, requests: Mapping[str, Json], token: str) -> str:
        """Start the batch."""
        del token  # Anthropic has no field for it.
        wanted = [{"custom_id": key, "params": body} for key, body in requests.items()]
        return _id(await channel.ask("POST", f"{ANTHROPIC_CALLS}/batches", json={"requests": wanted}))

    async def find(self, channel: Channel, token: str, requests: int, since: float) -> str | None:
        """Find a batch of the same time and size; its results decide whether it matches."""
        del token
        listed = await channel.ask("GET", f"{ANTHROPIC_CALLS}/batches?limit=100")
        for batch in _objects(listed):
            size = sum(count for count in _object(batch.get("request_counts")).values() if isinstance(count, int))
            if size == requests and _moment(batch.get("created_at")) >= since - _CLOCK_SLACK:
                return _id(batch)
        return None

    async def state(self, channel: Channel, batch: str) -> State:
        """Read the batch's status and counts."""
        path = f"{ANTHROPIC_CALLS}/batches/{quote(batch, safe='')}"
        answer = await channel.ask("GET", path)
        counts = _object(answer.get("request_counts"))
        total = sum(_count(counts, name) for name in counts)
        missing = failed(504, _UNANSWERED, uncertain=True)
        ended = answer.get("processing_status") == "ended"
        return State(ended, total - _count(counts, "processing"), total, missing, {}, (f"{path}/results",))

    def read(self, line: Json) -> tuple[str, Result] | None:
        """Read a line of the results."""
        key, result = line.get("custom_id"), _object(line.get("result"))
        if not isinstance(key, str):
            return None
        match result.get("type"):
            case "succeeded" if isinstance(result.get("message"), dict):
                return key, Result(200, result["message"])
            case "errored":
                error = _object(result.get("error"))
                kind = str(_object(error.get("error")).get("type"))
                return key, Result(_STATUS_OF_TYPE.get(kind, 500), error)
            case "expired":
                return key, failed(503, "the batch expired before this request was answered")
            case "canceled":
                reason = "the batch was cancelled at the server; resume to submit this request again"
                return key, failed(400, reason)
            case _:
                return None


class BatchRequestError(Exception):
    """A server refused a request about a batch, or was unreachable; `result` is the result of its calls."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result.body))
        self.result = result


def _refused(error: Json) -> Result:
    """The result for an error of a whole batch."""
    code = str(error.get("code") or "")
    reason = str(error.get("message") or code or "no reason given")
    # The limit on tokens in all batches together: other batches must end first.
    full = code == "token_limit_exceeded"
    return failed(429 if full else 400, f"the server refused the batch: {reason}", code=code)


def _id(answer: Json) -> str:
    batch = answer.get("id")
    if not isinstance(batch, str) or not 0 < len(batch) <= MOST_ID_CHARS:
        raise BatchRequestError(failed(502, "the server's answer about a batch has no usable id"))
    return batch


def _count(counts: Json, name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) else 0


def _moment(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(listed: Json) -> Sequence[Json]:
    data = listed.get("data")
    return [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
