"""The record of the gateway: one line of JSON for each exchange, from which a restarted gateway restores its pool."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labmates.errors import UsageError


@dataclass(frozen=True)
class Exchange:
    """One request and what came of it.

    Attributes
    ----------
    at, seconds
        Unix time of the request, and its length.
    seat, protocol, model
        Who asked what.
    status
        HTTP status of the answer; 499 where the program left before its end.
    cost, uncovered
        What the seat was charged, and what of the cost the pool could not pay, in micro-dollars.
    usage
        Tokens: ``input_tokens``, ``output_tokens``, ``cached_tokens``, ``cache_write_tokens``, ``reasoning_tokens``.
    note
        Why a charge is an estimate; empty otherwise.
    request
        What the program sent.
    reply
        What it got: JSON, or the text of a stream.
    """

    at: float
    seconds: float
    seat: str
    protocol: str
    model: str
    status: int
    cost: int
    uncovered: int
    usage: dict[str, int]
    note: str
    request: Any
    reply: Any


class Record:
    """A file of exchanges, to which each is appended as it ends; a context manager.

    Parameters
    ----------
    path
        The file. Lines that are there already count as spent.

    Raises
    ------
    UsageError
        If the file can't be read or written, or is not such a record.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spent = _spent(path)
        try:
            # Only its owner can read it, since it holds what programs sent.
            descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        except OSError as error:
            raise UsageError(f"--record: can't write '{path}': {error.strerror}") from error
        self._file = os.fdopen(descriptor, "a", encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, exchange: Exchange) -> None:
        """Append an exchange."""
        self._file.write(json.dumps(asdict(exchange), ensure_ascii=False, default=str) + "\n")
        self._file.flush()


def _spent(path: Path) -> Counter[str]:
    """What each seat has spent by a record, in micro-dollars; a last line that was cut off is removed."""
    spent: Counter[str] = Counter()
    if not path.exists():
        return spent
    whole = 0
    try:
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    exchange = json.loads(line)
                    spent[exchange["seat"]] += exchange["cost"]
                    whole += len(line)
    except OSError as error:
        raise UsageError(f"--record: can't read '{path}': {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--record: '{path}' is not a record of a gateway") from error
    if whole < path.stat().st_size:
        os.truncate(path, whole)
    return spent
