"""Real HTTP servers with the batch APIs of OpenAI and Anthropic, whose batches meet with what is ordered for them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from tests.support.anthropic_server import AnthropicServer, as_anthropic, as_openai
from tests.support.openai_server import Answer, Behaviour, Json, OpenAIServer, Recorded, _send, completion, fault

Outcome = Literal["expired", "cancelled", "missing", "malformed"] | int


@dataclass(frozen=True)
class Fate:
    """What becomes of a batch.

    Attributes
    ----------
    looks
        So many times it is found unfinished.
    outcomes
        What becomes of single requests, by their place; a number is the status of an error.
    status
        How it ends.
    errors
        Why it was refused as a whole (OpenAI).
    reverse, twice, foreign
        The results come in reverse order, each twice (the second time with other text), and with one of another batch.
    unheard
        It is made, and the connection drops before the answer.
    gone
        It can't be looked at: the server answers so often with 500.
    """

    looks: int = 1
    outcomes: Mapping[int, Outcome] = field(default_factory=dict)
    status: str = "completed"
    errors: Sequence[Json] = ()
    reverse: bool = False
    twice: bool = False
    foreign: bool = False
    unheard: bool = False
    gone: int = 0


@dataclass
class Batch:
    """A batch that was submitted."""

    id: str
    fate: Fate
    rows: list[Json]
    metadata: Json = field(default_factory=dict)
    lines: list[bytes] = field(default_factory=list)
    looks: int = 0
    created: float = field(default_factory=time.time)


class BatchServer(OpenAIServer):
    """The server of OpenAI's batches; single calls work as well.

    Parameters
    ----------
    fates
        What becomes of the batches, in turn; of all others nothing special.
    has_api
        Whether there is a batch API at all.

    Attributes
    ----------
    batches
        All batches, in the order of their submission.
    """

    def __init__(self, behaviour: Behaviour | Answer, fates: Sequence[Fate] = (), *, has_api: bool = True) -> None:
        super().__init__(behaviour)
        self.batches: list[Batch] = []
        self._fates = fates
        self._has_api = has_api
        self._files: dict[str, list[Json]] = {}
        self._answers = 0

    @property
    def bodies(self) -> list[list[Json]]:
        """The requests of each batch, as single calls would send them."""
        return [[row["body"] for row in batch.rows] for batch in self.batches]

    async def _respond(self, recorded: Recorded, writer: asyncio.StreamWriter) -> bool:
        path = recorded.path.partition("?")[0].removeprefix("/v1")
        if not self._has_api or not path.startswith(("/files", "/batches")):
            return await super()._respond(recorded, writer)
        parts = path.strip("/").split("/")
        match recorded.method, parts:
            case "POST", ["files"]:
                return await _send(writer, Answer(body=self._upload(recorded.body["raw"])))
            case "POST", ["batches"]:
                rows = self._files[recorded.body["input_file_id"]]
                assert recorded.body["completion_window"] == "24h"
                assert len({row["body"]["model"] for row in rows}) == 1
                return await self._made(self._new(rows, recorded.body["metadata"]), writer)
            case "GET", ["batches"]:
                return await _send(writer, Answer(body={"data": [self._shown(batch) for batch in self.batches]}))
            case "GET", ["batches", id_]:
                return await self._looked_at(id_, writer)
            case "GET", ["files", id_, "content"]:
                return await self._content(id_, writer)
        return await _send(writer, fault(404))

    def _upload(self, raw: str) -> Json:
        rows = [json.loads(line) for line in raw.split("\r\n") for line in line.splitlines() if line.startswith("{")]
        assert all(row["method"] == "POST" and row["url"] == "/v1/chat/completions" for row in rows)
        id_ = f"file-{len(self._files)}"
        self._files[id_] = rows
        return {"id": id_, "object": "file", "purpose": "batch"}

    def _new(self, rows: list[Json], metadata: Json) -> Batch:
        number = len(self.batches)
        fate = self._fates[number] if number < len(self._fates) else Fate()
        assert len({row["custom_id"] for row in rows}) == len(rows)
        self.batches.append(batch := Batch(f"batch_{number}", fate, rows, metadata))
        return batch

    async def _made(self, batch: Batch, writer: asyncio.StreamWriter) -> bool:
        if batch.fate.unheard:
            writer.transport.abort()
            return False
        return await _send(writer, Answer(body=self._shown(batch)))

    async def _looked_at(self, id_: str, writer: asyncio.StreamWriter) -> bool:
        batch = next((one for one in self.batches if one.id == id_), None)
        if batch is None:
            return await _send(writer, fault(404))
        batch.looks += 1
        if batch.looks <= batch.fate.gone:
            return await _send(writer, fault(500))
        return await _send(writer, Answer(body=self._shown(batch)))

    async def _content(self, id_: str, writer: asyncio.StreamWriter) -> bool:
        kind, _, batch_id = id_.partition("-")
        batch = next(one for one in self.batches if one.id == batch_id)
        lines = await self._lines(batch)
        errors = [line for line in lines if b'"error": {' in line]
        wanted = errors if kind == "errors" else [line for line in lines if line not in errors]
        return await _send(writer, Answer(body=b"".join(wanted)))

    async def _lines(self, batch: Batch) -> list[bytes]:
        """Return the results, answered when they are first asked for."""
        if not batch.lines:
            places = list(enumerate(batch.rows))
            for place, row in reversed(places) if batch.fate.reverse else places:
                batch.lines += await self._result(row, batch.fate.outcomes.get(place), batch.fate.twice)
            batch.lines += await self._result({**batch.rows[0], "custom_id": "x"}, None, False) * batch.fate.foreign
        return batch.lines

    async def _result(self, row: Json, outcome: Outcome | None, twice: bool) -> list[bytes]:
        match outcome:
            case "missing":
                return []
            case "malformed":
                return [b'{"custom_id": "' + row["custom_id"].encode() + b'", "resp\n']
            case None:
                answer = await self._answer(self._asked(row), self._answers)
                self._answers += 1
                lines = [self._succeeded(row, answer)]
                return [*lines, self._succeeded(row, Answer(text="another"))] if twice else lines
            case _:
                return [_line(self._failed(row, outcome))]

    def _asked(self, row: Json) -> Json:
        body: Json = row["body"]
        return body

    def _succeeded(self, row: Json, answer: Answer) -> bytes:
        body = answer.body if answer.body is not None else completion(answer, row["body"])
        response = {"status_code": answer.status, "request_id": "r", "body": body}
        return _line({"id": "b", "custom_id": row["custom_id"], "response": response, "error": None})

    def _failed(self, row: Json, outcome: Outcome) -> Json:
        line = {"id": "b", "custom_id": row["custom_id"]}
        if isinstance(outcome, int):
            body = {"error": {"message": f"fault {outcome}", "type": "test"}}
            return {**line, "response": {"status_code": outcome, "request_id": "r", "body": body}, "error": None}
        return {**line, "response": None, "error": {"code": f"batch_{outcome}", "message": f"it is {outcome}"}}

    def _shown(self, batch: Batch) -> Json:
        ended = batch.looks > batch.fate.looks
        total = len(batch.rows)
        done = total if ended else min(total - 1, batch.looks)
        shown: Json = {
            "id": batch.id,
            "object": "batch",
            "status": batch.fate.status if ended else "in_progress",
            "request_counts": {"total": total, "completed": done, "failed": 0},
            "metadata": batch.metadata,
        }
        if batch.fate.errors:
            return {**shown, "errors": {"object": "list", "data": list(batch.fate.errors)}}
        return {**shown, "output_file_id": f"output-{batch.id}", "error_file_id": f"errors-{batch.id}"}


class AnthropicBatchServer(AnthropicServer, BatchServer):
    """The server of Anthropic's message batches; single calls work as well."""

    async def _respond(self, recorded: Recorded, writer: asyncio.StreamWriter) -> bool:
        path = recorded.path.partition("?")[0]
        if not self._has_api or not path.startswith("/v1/messages/batches"):
            return await AnthropicServer._respond(self, recorded, writer)
        assert recorded.headers["anthropic-version"]
        match recorded.method, path.removeprefix("/v1/messages/batches").strip("/").split("/"):
            case "POST", [""]:
                rows = [{"custom_id": one["custom_id"], "body": one["params"]} for one in recorded.body["requests"]]
                assert all(len(row["custom_id"]) <= 64 for row in rows)
                return await self._made(self._new(rows, {}), writer)
            case "GET", [""]:
                return await _send(writer, Answer(body={"data": [self._shown(batch) for batch in self.batches]}))
            case "GET", [id_]:
                return await self._looked_at(id_, writer)
            case "GET", [id_, "results"]:
                batch = next(one for one in self.batches if one.id == id_)
                return await _send(writer, Answer(body=b"".join(await self._lines(batch))))
        return await _send(writer, fault(404))

    def _asked(self, row: Json) -> Json:
        return as_openai(row["body"])

    def _succeeded(self, row: Json, answer: Answer) -> bytes:
        if answer.status != 200:
            return _line(self._failed(row, answer.status))
        message = as_anthropic(answer, self._asked(row))
        return _line({"custom_id": row["custom_id"], "result": {"type": "succeeded", "message": message}})

    def _failed(self, row: Json, outcome: Outcome) -> Json:
        if outcome in ("expired", "cancelled"):
            result: dict[str, Any] = {"type": "canceled" if outcome == "cancelled" else "expired"}
        else:
            kind = "invalid_request_error" if outcome == 400 else "overloaded_error"
            error = {"type": "error", "error": {"type": kind, "message": f"fault {outcome}"}}
            result = {"type": "errored", "error": error}
        return {"custom_id": row["custom_id"], "result": result}

    def _shown(self, batch: Batch) -> Json:
        ended = batch.looks > batch.fate.looks
        names = ("processing", "succeeded", "errored", "canceled", "expired")
        counts = dict.fromkeys(names, 0) | {"succeeded" if ended else "processing": len(batch.rows)}
        created = datetime.fromtimestamp(batch.created, UTC).isoformat().replace("+00:00", "Z")
        status = "ended" if ended else "in_progress"
        return {"id": batch.id, "processing_status": status, "request_counts": counts, "created_at": created}


def _line(data: Json) -> bytes:
    return json.dumps(data).encode() + b"\n"
