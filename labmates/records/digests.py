"""Digests of runs: hash chains over what a run has recorded, and the SHA-256 that stands for the run as it ended.

Two chains grow as a run is written, one link per event and one per body, and each link covers the one before. When the
run ends, its digest covers both chains and every field of its row that is fixed from then on. Judges that score the run
later lengthen the chains, and give it a new digest that covers the one before; those are kept (table ``seals``).

A digest shows that a record is the one that the digest was published of. It does not stop whoever can write the
database from changing a run and computing everything anew: only a digest that is kept elsewhere shows that.

These formats are fixed: a change would make published digests useless.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from labmates.records.bodies import Body, Unpacker, content_digest

SEALED: Final = (
    "id", "kind", "key", "replicate", "seed", "condition", "models", "status", "study", "error", "invalid", "settings",
    "metrics", "usage", "budget", "sandbox", "started", "seconds", "version", "attempt", "origin",
)  # fmt: skip
"""The columns of a run's row that its digest covers."""
NOT_SEALED: Final = {
    "chain": "the digest covers it as the heads of the chains",
    "digest": "this is the digest",
    "worker": "who executes the run while it goes on; empty when it has ended",
    "lease": "until when a worker holds the run",
    "place": "the run's place in its study's queue, which changes when the study grows",
    "spent": "the sum of what the run's events cost, with which `store check` compares it",
    "most": "the run's bound, which can be raised; that a run stopped at it stands in `invalid`",
}
"""The other columns of a run's row, and why the digest leaves them out."""
LATE: Final = "upgrade:"
"""The prefix of a digest that an upgrade of the store computed, long after the run ended."""
_START = bytes(32)
_FORMAT = 1
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # made once: that takes as long as encoding


@dataclass(frozen=True)
class Chain:
    """The heads of a run's two chains.

    Attributes
    ----------
    events, bodies
        How many links each has.
    event_head, body_head
        SHA-256 of the newest link, 32 bytes.
    """

    events: int = 0
    event_head: bytes = _START
    bodies: int = 0
    body_head: bytes = _START

    @classmethod
    def parse(cls, text: str) -> Chain:
        """The chain that `str` has written; an empty text is a chain without links.

        Raises
        ------
        ValueError
            If the text is malformed.
        """
        if not text:
            return cls()
        events, event_head, bodies, body_head = text.split(":")
        return cls(int(events), bytes.fromhex(event_head), int(bodies), bytes.fromhex(body_head))

    def __str__(self) -> str:
        return f"{self.events}:{self.event_head.hex()}:{self.bodies}:{self.body_head.hex()}" if self != _EMPTY else ""

    def longer(self, events: Iterable[Mapping[str, Any]], bodies: Iterable[tuple[int, bytes]]) -> Chain:
        """The chain with further links.

        Parameters
        ----------
        events
            Rows of the table of events, in order.
        bodies
            Number and digest of each body, in order.
        """
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


def stored_digests(bodies: Iterable[Body], unpacker: Unpacker | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield number and digest of each body of a run, in order, as they are stored from the first on.

    One that can't be unpacked has a digest too, though another one than when it was recorded.
    """
    unpacker = unpacker or Unpacker()
    for body in bodies:
        try:
            raw = unpacker.raw(body)
        except zlib.error:
            raw = b"unreadable" + body.data
        yield body.number, content_digest(body.media, raw)


def run_digest(row: Mapping[str, Any], *, late: bool = False) -> str:
    """The digest of a run as it ended.

    Parameters
    ----------
    row
        Its row in the table of runs, as it ended: the columns `SEALED` and ``chain``.
    late
        Whether it is computed long after the run ended.
    """
    sealed = {name: row[name] for name in SEALED} | {"started": float(row["started"]), "seconds": float(row["seconds"])}
    return _digest({**sealed, "chain": row["chain"], "late": late}, late=late)


def next_digest(before: str, metrics: Mapping[str, float], chain: str) -> str:
    """The digest of a run to which something was added after it had ended.

    Parameters
    ----------
    before
        The digest that it had.
    metrics, chain
        What it has now.
    """
    return _digest({"before": before, "metrics": metrics, "chain": chain}, late=before.startswith(LATE))


def digests(row: Mapping[str, Any], seals: Sequence[Mapping[str, Any]]) -> list[str]:
    """The digests that a run must have had one after the other, the present one last.

    Parameters
    ----------
    row
        Its row in the table of runs, with the column ``digest``.
    seals
        Its rows in the table of seals, in order: what stood in its row before each addition.
    """
    states = [*seals, row]
    late = str(states[0]["digest"]).startswith(LATE)
    computed = [run_digest({**row, **{name: states[0][name] for name in ("metrics", "chain")}}, late=late)]
    for state in states[1:]:
        computed.append(next_digest(computed[-1], state["metrics"], state["chain"]))
    return computed


def digest_of_all(digests: Iterable[str]) -> str:
    """One digest of many runs, whatever their order: the SHA-256 of their digests, sorted, one a line."""
    return hashlib.sha256("".join(f"{digest}\n" for digest in sorted(digests)).encode()).hexdigest()


def _digest(data: Mapping[str, Any], *, late: bool) -> str:
    digest = hashlib.sha256(_canonical({"format": _FORMAT, **data})).hexdigest()
    return f"{LATE}{digest}" if late else digest


def _canonical(data: Any) -> bytes:
    return _ENCODE(data).encode()
