"""Digests of runs: hash chains over the record, and a SHA-256 of the ended run.

Two chains grow as a run is written, one link per event and one per body; each link covers its predecessor. At the end
of the run, its digest covers both chains and all final fields of its row. Later scores extend the chains and give the
run a new digest that covers the previous one, which is stored (table ``seals``).

A digest proves that a record is unchanged since the digest was published. With write access to the database, a run can
be changed and its digest recomputed; only a digest stored elsewhere reveals that.

These formats are fixed: a change would invalidate published digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from labmates.records.bodies import Body, Unpacker, UnreadableBodyError, content_digest

SEALED: Final = (
    "id", "kind", "key", "replicate", "seed", "condition", "models", "status", "study", "error", "invalid", "settings",
    "metrics", "usage", "budget", "sandbox", "started", "seconds", "version", "attempt", "origin",
    "made",
)  # fmt: skip
"""Columns of a run's row in its digest; ``made`` only if known, as digests of older runs lack it."""
NOT_SEALED: Final = {
    "chain": "the digest covers it as the heads of the chains",
    "digest": "this is the digest",
    "worker": "the worker that executes the run; empty when it has ended",
    "lease": "until when a worker holds the run",
    "place": "the run's place in its study's queue, which changes when the study grows",
    "spent": "the sum of the events' costs, which `store check` verifies",
    "most": "the run's bound, which can be raised; a stop at it is recorded in `invalid`",
}
"""Other columns of a run's row, and the reason for their omission."""
LATE: Final = "upgrade:"
"""The prefix of digests that an upgrade of the store computed, long after the run ended."""
_START = bytes(32)
_FORMAT = 1
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # built once: it takes as long as encoding


@dataclass(frozen=True)
class Chain:
    """The heads of a run's two chains."""

    events: int = 0  # number of links
    event_head: bytes = _START  # SHA-256 of the newest link, 32 bytes
    bodies: int = 0
    body_head: bytes = _START

    @classmethod
    def parse(cls, text: str) -> Chain:
        """The chain in the format of `str`; an empty text is the empty chain.

        Raises `ValueError` if the text is malformed.
        """
        if not text:
            return cls()
        events, event_head, bodies, body_head = text.split(":")
        return cls(int(events), bytes.fromhex(event_head), int(bodies), bytes.fromhex(body_head))

    def __str__(self) -> str:
        return f"{self.events}:{self.event_head.hex()}:{self.bodies}:{self.body_head.hex()}" if self != _EMPTY else ""

    def longer(self, events: Iterable[Mapping[str, Any]], bodies: Iterable[tuple[int, bytes]]) -> Chain:
        """The chain extended by rows of the table of events, and by numbers and digests of bodies, in order."""
        event_head, body_head, event_count, body_count = self.event_head, self.body_head, self.events, self.bodies
        for event in events:
            event_head = _event_link(event_head, event)
            event_count += 1
        for number, digest in bodies:
            body_head = hashlib.sha256(body_head + str(number).encode() + b":" + digest).digest()
            body_count += 1
        return Chain(event_count, event_head, body_count, body_head)


_EMPTY = Chain()


def _event_link(head: bytes, event: Mapping[str, Any]) -> bytes:
    values = [event["seq"], event["type"], float(event["at"]), event["step"], event["team"], event["agent"]]
    return hashlib.sha256(head + _canonical([*values, event["data"]])).digest()


def stored_digests(bodies: Iterable[Body]) -> Iterator[tuple[int, bytes]]:
    """Yield number and digest of the stored bodies of a run, all and in order; unreadable ones get a wrong digest."""
    unpacker = Unpacker()
    for body in bodies:
        try:
            raw = unpacker.raw(body)
        except UnreadableBodyError:
            raw = b"unreadable" + body.data
        yield body.number, content_digest(body.media, raw)


def run_digest(row: Mapping[str, Any], *, late: bool = False) -> str:
    """The digest of an ended run, from its columns `SEALED` and ``chain``; `late` if computed long after its end."""
    sealed = {name: row[name] for name in SEALED if name != "made" or row["made"] is not None}
    sealed |= {"started": float(row["started"]), "seconds": float(row["seconds"])}
    return _digest({**sealed, "chain": row["chain"], "late": late}, late=late)


def next_digest(before: str, metrics: Mapping[str, float], chain: str) -> str:
    """The digest of a run after additions to its ended record, from the digest `before` and the new values."""
    return _digest({"before": before, "metrics": metrics, "chain": chain}, late=before.startswith(LATE))


def digests(row: Mapping[str, Any], seals: Sequence[Mapping[str, Any]]) -> list[str]:
    """The expected digests of a run in order, the current one last, from its row and its ordered rows of seals."""
    states = [*seals, row]
    late = str(states[0]["digest"]).startswith(LATE)
    computed = [run_digest({**row, **{name: states[0][name] for name in ("metrics", "chain")}}, late=late)]
    for state in states[1:]:
        computed.append(next_digest(computed[-1], state["metrics"], state["chain"]))
    return computed


def digest_of_all(digests: Iterable[str]) -> str:
    """The digest of a set of runs: the SHA-256 of their sorted digests, one per line."""
    return hashlib.sha256("".join(f"{digest}\n" for digest in sorted(digests)).encode()).hexdigest()


def _digest(data: Mapping[str, Any], *, late: bool) -> str:
    digest = hashlib.sha256(_canonical({"format": _FORMAT, **data})).hexdigest()
    return f"{LATE}{digest}" if late else digest


def _canonical(data: Any) -> bytes:
    return _ENCODE(data).encode()
