"""Events as items of a page, with texts cut to fit a page of many events."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from markupsafe import Markup

from labmates.pages.links import Links
from labmates.pages.markdown import markdown
from labmates.pages.rendering import as_text, cut, plain
from labmates.records.bodies import Bodies, StoredBodies, Value
from labmates.records.event_text import artifact_text, findings_text, heading
from labmates.records.events import ArtifactEvent, ChargeEvent, Event, ToolCallEvent
from labmates.records.reading import RunReader

SHORT_CHARS: Final = 1_500
"""Maximum characters of a text in a list of events; the event's page has the whole text."""
LONGEST_CHARS: Final = 1_000_000
"""Maximum characters of a text on any page; longer texts are available as files."""
HIDDEN: Final = ("charge",)
"""Types that are shown as a part of another event."""

Look = Literal["prose", "code", "output", "plain"]


@dataclass(frozen=True)
class Text:
    """A text of an event.

    ``prose`` is Markdown, other looks are shown unchanged; `left` is the number of omitted characters.
    """

    label: str
    look: Look
    body: str
    left: int = 0

    @property
    def html(self) -> Markup:
        """Markdown as safe HTML."""
        return markdown(self.body)


@dataclass(frozen=True)
class FileLink:
    """A downloadable file, by the name that its author chose."""

    name: str
    url: str


@dataclass(frozen=True)
class Item:
    """An event as an item of a page."""

    number: int
    event: Event
    title: str
    tone: str  # ``bad`` for failures, ``warn`` for warnings, else empty
    seconds: float  # since the start of the run
    cost: int | None = None  # its charge, in micro-dollars
    texts: tuple[Text, ...] = ()
    figures: tuple[str, ...] = ()
    files: tuple[FileLink, ...] = ()
    url: str = ""


def items(
    reader: RunReader, events: Mapping[int, Event], links: Links, *, start: float, whole: bool = False
) -> list[Item]:
    """Events as items of a page, with charges at their calls; `start` is the Unix time of the run's start.

    `whole` shows texts in full, and the arguments of tool calls in replies, which are otherwise shown as events.
    """
    bodies = reader.bodies
    costs = {event.step: event.amount for event in events.values() if isinstance(event, ChargeEvent)}
    most, run_id = LONGEST_CHARS if whole else SHORT_CHARS, reader.run.id

    def item(number: int, event: Event) -> Item:
        files: list[FileLink] = []
        figures: tuple[str, ...] = ()
        if isinstance(event, ToolCallEvent):
            figures = tuple(links.figure(run_id, body) for body in event.images)
            files = [
                FileLink(plain(name), links.file(run_id, number, at)) for at, name in enumerate(event.files, start=1)
            ]
        elif isinstance(event, ArtifactEvent):
            files = [FileLink("as a file", links.file(run_id, number, 0))]
        cost = costs.get(event.step) if event.type == "llm_call" else None
        return Item(
            number=number,
            event=event,
            title=plain(cut(title_of(event, bodies), most)),
            tone=_tone(event),
            seconds=max(0.0, event.at - start),
            cost=event.cost if event.type == "judge_call" else cost,
            texts=tuple(cut_text(text, most) for text in texts_of(event, bodies, whole=whole) if text.body.strip()),
            figures=figures,
            files=tuple(files),
            url=links.event(run_id, number),
        )

    return [item(number, event) for number, event in events.items() if event.type not in HIDDEN]


def texts_of(event: Event, bodies: StoredBodies | Bodies, *, whole: bool = True) -> Iterator[Text]:
    """Texts of an event, each in full; without `whole`, texts shown with other events are left out."""
    match event.type:
        case "llm_call" | "judge_call":
            if event.reasoning is not None:
                yield Text("reasoning", "prose", as_text(bodies.get(event.reasoning)))
            without_events = event.by == "judge" or event.settings is not None  # of judges, and through the gateway
            yield from message_texts(bodies.get(event.reply), with_calls=whole or without_events)
            if event.raw is not None:
                yield Text("the text as sent", "plain", as_text(bodies.get(event.raw)))
        case "tool_call":
            yield from _arguments(bodies.get(event.arguments))
            yield Text("result", "output", as_text(bodies.get(event.result)))
        case "message":
            yield Text("", "prose", as_text(bodies.get(event.text)))
        case "request":
            yield Text("", "prose", event.request)
            yield Text("because", "prose", event.justification)
        case "approval":
            yield Text("", "plain", event.question)
        case "artifact":
            body = bodies.get(event.content)
            if isinstance(body, dict):
                for name, value in body.items():
                    yield Text(str(name), "code" if name == "code" else "plain", as_text(value))
            else:
                yield Text(event.description, "prose", as_text(body))
        case "findings":
            yield Text("", "plain", plain(findings_text(bodies.get(event.findings, {}))))
            yield Text("mended", "plain", "\n".join(f"{mend['where']}: {mend['what']}" for mend in event.repaired))
        case "score" | "label":
            yield Text("", "plain", event.reason)
        case _:
            return


def message_texts(message: object, *, with_calls: bool = True) -> Iterator[Text]:
    """Texts of a message of a transcript: its content, and the arguments of its tool calls."""
    if not isinstance(message, dict):
        yield Text("", "plain", as_text(message))
        return
    yield Text("", "prose" if message.get("role") == "assistant" else "plain", as_text(message.get("content", "")))
    for call in _calls(message) if with_calls else ():
        yield from _arguments(call.get("args"), f"{call.get('name')}: ")


def _arguments(arguments: object, before: str = "") -> Iterator[Text]:
    for name, value in arguments.items() if isinstance(arguments, dict) else [("arguments", arguments)]:
        look: Look = "code" if name == "code" else "prose" if name == "content" else "plain"
        yield Text(f"{before}{name}", look, as_text(value))


def _calls(message: object) -> list[dict[str, Any]]:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return [call for call in calls or () if isinstance(call, dict)]


def changes(before: Value | None, after: Value) -> list[tuple[str, str]]:
    """The diff of two versions of a text: lines with ``add``, ``del``, ``at`` or nothing."""
    if before is None:
        return []
    old, new = (artifact_text(version).splitlines() for version in (before, after))
    lines = list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]
    return [({"+": "add", "-": "del", "@": "at"}.get(line[:1], ""), plain(line)) for line in lines]


def title_of(event: Event, bodies: StoredBodies | Bodies) -> str:
    """The heading of an event, without the parts that a page shows separately."""
    if event.type == "llm_call":
        calls = [str(call.get("name")) for call in _calls(bodies.get(event.reply))]
        return ", ".join([f"{event.model} replied", *(f"calls {name}" for name in calls), *event.faults])
    return heading(event)


def _tone(event: Event) -> str:
    match event.type:
        case "error" | "failed_reply":
            return "bad"
        case "warning":
            return "warn"
        case "tool_call":
            return "" if event.ok and event.status in ("", "ok") else "bad"
        case "decision":
            return "bad" if event.failed else ""
        case "score":
            return "warn" if event.value is None else ""
        case "llm_call" | "judge_call":
            return "warn" if event.faults else ""
        case _:
            return ""


def cut_text(text: Text, most: int) -> Text:
    """A text cut to `most` characters."""
    left = len(text.body) - most
    return text if left <= 0 else Text(text.label, text.look, text.body[:most], left)
