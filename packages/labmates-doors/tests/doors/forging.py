"""Single edits of bundles, drawn by a seed, by somebody who makes all digests, counts and tables anew afterwards."""

from __future__ import annotations

import base64
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from labmates.records.bodies import content_digest
from labmates.records.digests import Chain, digest_of_all, next_digest, run_digest
from labmates.records.events import RESULTS, body_numbers, make_event
from labmates.records.run import ENDED
from labmates.records.store import Store
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates_doors.bundles.checking import Checked
from labmates_doors.bundles.container import MANIFEST, MEMBERS, RUNS, TABLES, encode, opened, pack, sha256, write_lines
from labmates_doors.bundles.rows import enter_lines
from labmates_doors.bundles.tables import tables_of
from tests.support.tampering import other, other_json

Line = dict[str, Any]
PARTS = {"events": 14, "texts": 10, "columns": 8, "tables": 6, "manifest": 2, "seals": 1}
"""Parts of a bundle and how often one is drawn."""
_DIGESTS = ("chain", "digest", "key")
_OF_MANIFEST = ("holds", "code", "environment", "study", "labmates")


@dataclass(frozen=True)
class Edit:
    """One edit: the part of the bundle, the field within it, and what it was and is."""

    part: str
    field: str
    what: str


def flipped(path: Path, target: Path, draw: random.Random) -> Edit:
    """Write a bundle of which one byte of the file differs."""
    raw = bytearray(path.read_bytes())
    place = draw.randrange(len(raw))
    raw[place] ^= 1 << draw.randrange(8)
    target.write_bytes(raw)
    return Edit("bytes", "byte", f"byte {place}")


def forged(path: Path, target: Path, draw: random.Random) -> Edit:
    """Write a bundle of which one value differs; all digests, keys, counts and tables are made anew to fit it."""
    with opened(path) as bundle:
        manifest, tables = json.loads(json.dumps(bundle.manifest)), json.loads(json.dumps(bundle.tables))
        lines: list[Line] = [json.loads(line) for line in bundle.lines()]
        edit = None
        while edit is None:
            part = draw.choices([*PARTS], [*PARTS.values()])[0]
            edit = _EDITS[part](manifest, tables, lines, draw)
        forge(manifest, tables, lines, target, computes=edit.part not in ("manifest", "tables"))
        return edit


def forge(manifest: Any, tables: Any, lines: list[Line], target: Path, *, computes: bool = True) -> None:
    """Write a bundle of edited members, with digests, and if asked keys, counts and tables, made anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if computes:
            seal(manifest, lines)
            _compute(manifest, tables, lines, folder / "runs.db")
        write_lines(folder / RUNS, map(encode, lines))
        (folder / TABLES).write_text(encode(tables))
        manifest["files"] = {member: sha256(folder / member) for member in (TABLES, RUNS)}
        (folder / MANIFEST).write_text(encode(manifest, readable=True))
        assert all((folder / member).exists() for member in MEMBERS)
        pack(folder, target)


def _event(_manifest: Any, _tables: Any, lines: list[Line], draw: random.Random) -> Edit | None:
    events = draw.choice(lines)["events"]
    event = draw.choice(events)
    kind, column = event["type"], draw.choice([*event])
    before = event[column]
    if column != "data":
        event[column] = other(before, draw)
        return Edit("events", f"{kind}.{column}", f"{before} → {event[column]}")
    if not before:
        return None
    field = draw.choice([*before])
    event["data"] = {**before, field: _other(before[field], draw)}
    return Edit("events", f"{kind}.{field}", f"{before[field]} → {event['data'][field]}"[:200])


def _text(_manifest: Any, _tables: Any, lines: list[Line], draw: random.Random) -> Edit | None:
    line = draw.choice(lines)
    if not line["bodies"]:
        return None
    place = draw.randrange(len(line["bodies"]))
    body = line["bodies"][place]
    at = [n for n, letter in enumerate(body["text"]) if letter.isalnum()]
    if not at:
        return None
    n = draw.choice(at)
    body["text"] = before_after(body["text"], n, draw)
    uses = sorted(_uses(line, place + 1))
    return Edit("texts", "+".join(uses), f"{body['text'][max(0, n - 20) : n + 20]!r} of {line['run']['id']}")


def before_after(text: str, place: int, draw: random.Random) -> str:
    """A text with another digit in place of a digit, or another letter in place of a letter."""
    letter = text[place]
    others = "0123456789" if letter.isdigit() else "abcdefghijklmnopqrstuvwxyz"
    return text[:place] + draw.choice([one for one in others if one != letter]) + text[place + 1 :]


def _uses(line: Line, number: int) -> Iterator[str]:
    """The fields of events that refer to a text."""
    for event in line["events"]:
        made = make_event(event["type"], event["at"], event["step"], event["team"], event["agent"], event["data"])
        if number in body_numbers(made):
            for name, value in event["data"].items():
                if value == number or (isinstance(value, list) and number in value and name in ("messages", "images")):
                    yield f"{event['type']}.{name}"


def _column(_manifest: Any, _tables: Any, lines: list[Line], draw: random.Random) -> Edit | None:
    run = draw.choice(lines)["run"]
    column = draw.choice([name for name in run if name not in _DIGESTS])
    before = run[column]
    run[column] = _other(before, draw)
    field = f"condition {'+'.join(_differing(before, run[column]))}" if column == "condition" else column
    return Edit("columns", field, f"{before} → {run[column]}"[:300])


def _differing(before: Any, after: Any, name: str = "") -> Iterator[str]:
    """The parameters that differ; nested names are joined by dots."""
    if isinstance(before, dict) and isinstance(after, dict):
        for inner in dict.fromkeys([*before, *after]):
            yield from _differing(before.get(inner), after.get(inner), f"{name}.{inner}".lstrip("."))
    elif before != after:
        yield name


def _table(_manifest: Any, tables: Any, _lines: list[Line], draw: random.Random) -> Edit | None:
    table = draw.choice([table for table in tables if table["rows"]])
    row = draw.choice(table["rows"])
    name = draw.choice([*row])
    before = row[name]
    row[name] = _other(before, draw)
    return Edit("tables", table["name"], f"{name}: {before} → {row[name]}"[:200])


def _earlier(_manifest: Any, _tables: Any, lines: list[Line], draw: random.Random) -> Edit | None:
    seals = [seal for line in lines for seal in line["seals"]]
    if not seals:
        return None
    seal = draw.choice(seals)
    before = seal["metrics"]
    seal["metrics"] = other_json(before, draw)
    return Edit("seals", "metrics", f"{before} → {seal['metrics']}"[:200])


def _manifest(manifest: Any, _tables: Any, _lines: list[Line], draw: random.Random) -> Edit | None:
    name = draw.choice(_OF_MANIFEST)
    before = manifest[name]
    manifest[name] = _other(before, draw)
    return Edit("manifest", name, f"{before} → {manifest[name]}"[:200])


def _other(value: Any, draw: random.Random) -> Any:
    if isinstance(value, dict | list):
        return other_json(value, draw)
    if value is None:
        return draw.choice((0.5, "edited"))
    return other(value, draw)


_EDITS: Mapping[str, Callable[[Any, Any, list[Line], random.Random], Edit | None]] = {
    "events": _event,
    "texts": _text,
    "columns": _column,
    "tables": _table,
    "manifest": _manifest,
    "seals": _earlier,
}


def _compute(manifest: Any, tables: Any, lines: list[Line], file: Path) -> None:
    """Compute the counts and tables anew, where the edit leaves them computable."""
    with Store(f"sqlite:///{file}") as store, suppress(Exception):
        manifest["holds"] |= enter_lines(store, manifest["study"], map(encode, lines)).as_json()
        computed = tables_of(store, manifest["study"]["name"])
        encode(computed)
        tables[:] = computed


def seal(manifest: Any, lines: list[Line]) -> None:
    """Make all keys, chains and digests anew."""
    for line in lines:
        run = line["run"]
        run["key"] = _key(run)
        states = [*line["seals"], run]
        for state in states:
            state["chain"] = _chain(state["chain"], line)
        if run["status"] not in ENDED:
            run["digest"] = None
            continue
        first = {name: states[0][name] for name in ("metrics", "chain")}
        states[0]["digest"] = run_digest({**run, **first})
        for earlier, state in pairwise(states):
            state["digest"] = next_digest(earlier["digest"], state["metrics"], state["chain"])
    ended = [line["run"]["digest"] for line in lines if line["run"]["digest"]]
    manifest["holds"] |= {"ended": len(ended), "digest": digest_of_all(ended)}


def _key(run: Mapping[str, Any]) -> str:
    try:
        return str(EXPERIMENTS.get(run["kind"]).condition.model_validate(run["condition"]).key)
    except Exception:  # an edit may make it invalid
        return str(run["key"])


def _chain(text: str, line: Line) -> str:
    covered = Chain.parse(text)
    events = [{**event, "seq": seq} for seq, event in enumerate(line["events"])][: covered.events]
    bodies = [
        (number, content_digest(body["media"], _raw(body))) for number, body in enumerate(line["bodies"], start=1)
    ]
    return str(Chain().longer(events, bodies[: covered.bodies]))


def _raw(body: Mapping[str, str]) -> bytes:
    return body["text"].encode() if body["media"] in ("json", "text") else base64.b64decode(body["text"])


_SERVER = "reply|finish|faults|notes|attempts|seconds|estimated|cached|raw|reasoning|[a-z_]+_tokens"
RESTING = re.compile(
    rf"events (\w+\.(at|seconds)|llm_call\.({_SERVER})|judge_call\.\w+|label\.\w+|error\.\w+|environment\.\w+)"
    r"|texts (|.*(llm_call|judge_call)\.(reply|raw|reasoning).*)"
    r"|columns (id|started|seconds|attempt|most|settings|version|made|sandbox|error)"
    r"|columns condition (repair_turns|structured|temperature|thoughts"
    r"|prices\.(credits|tool_call|default\.(cached|cache_write|reasoning)))"
    r"|manifest (code|environment|study|labmates)"
    r"|seals metrics"
)
"""Fields that rest on a published digest, as `labmates_doors.bundles.checking.RESTS` says in words."""


_OF_CODE = re.compile(rf"events tool_call\.({'|'.join(RESULTS)})|texts tool_call\..*")


def rests(edit: Edit, checked: Checked) -> bool:
    """Whether the check says that only a published digest can tell of an edit."""
    field = f"{edit.part} {edit.field}"
    counted = any("prints something else now" in note for note in checked.notes)
    return bool(RESTING.fullmatch(field) or (counted and _OF_CODE.fullmatch(field)))
