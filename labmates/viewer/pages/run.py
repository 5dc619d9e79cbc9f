"""The pages of one run: overview, story of its events, single events, and forms for people."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Final, Literal

from markupsafe import Markup

from labmates.errors import UsageError, unknown_name
from labmates.pages.links import PER_PAGE, Links
from labmates.pages.rendering import render
from labmates.pages.section import Section
from labmates.records.event_text import heading
from labmates.records.reading import RunReader
from labmates.records.run import RunRecord
from labmates.reports.results import headline
from labmates.viewer.event_items import HIDDEN, Item, changes, items, message_texts
from labmates.viewer.files import AbsentError
from labmates.viewer.pages.default import default_sections
from labmates.viewer.timeline import burning, payer_of, timeline
from labmates.workflows.people.answerers import people_of
from labmates.workflows.people.approval import Question
from labmates.workflows.protocol.experiment import EXPERIMENTS, condition_of

_log = logging.getLogger(__name__)
LIVE_MOST: Final = 200
"""Maximum new events per update."""
_MOST_WARNINGS: Final = 20
_MOST_AGENTS: Final = 200
"""Maximum agents in the filter."""


def overview(reader: RunReader, links: Links, budget: Mapping[str, Any] = MappingProxyType({})) -> Markup:
    """A run's overview page; see `burning` for the `budget`."""
    return render("run.html", sections=sections(reader, links, budget), **head(reader, links, "overview"))


def sections(reader: RunReader, links: Links, budget: Mapping[str, Any] = MappingProxyType({})) -> list[Section]:
    """The sections of a run's overview: scores, the experiment's sections, time line, budget and record."""
    parts: list[Section] = []
    warnings = {
        number: event
        for number, event in reader.events("warning", "error").items()
        if event.type == "error" or event.text != reader.run.error
    }
    if warnings:
        shown = dict(list(warnings.items())[:_MOST_WARNINGS])
        body = render("warnings.html", warnings=shown, links=links, run=reader.run)
        left = len(warnings) - len(shown)
        parts.append(Section("warnings", "Warnings and errors", body, f"{left} more in the story" if left else ""))
    if reader.events("score"):
        parts.append(Section("scores", "Scores", scores(reader, links)))
    parts += experiment_sections(reader, links)
    if drawn := timeline(reader, links):
        phases = reader.events("phase")
        types = {name for name, _, _ in reader.counts}
        body = render("timeline.html", drawing=drawn, phases=phases, types=types, links=links, run=reader.run)
        parts.append(Section("timeline", "Time line", body))
    spent = burning(reader, budget)
    if spent.teams:
        parts.append(Section("budget", "Budget", render("budget.html", burning=spent)))
    attempts = reader.store.attempts(reader.run.id)
    return [*parts, Section("record", "Record", render("record.html", run=reader.run, attempts=attempts))]


def experiment_sections(reader: RunReader, links: Links) -> list[Section]:
    """The sections of a run's experiment.

    If the record is unreadable in this version, the reason is shown and the rest of the page remains usable.
    """
    kind = reader.run.kind
    sections: list[Section] = []
    try:
        page = (EXPERIMENTS.get(kind).page if kind in EXPERIMENTS else None) or default_sections
        sections.extend(page(reader, links))
    except Exception as error:
        _log.warning("the page of the run %s (%s) failed", reader.run.id, kind, exc_info=True)
        why = Markup("<p class=quiet>{}: {}</p>").format(type(error).__name__, str(error)[:500])
        sections.append(Section("unread", "Parts of the record that this version can't read", why))
    return sections


def scores(reader: RunReader, links: Links) -> Markup:
    """All scores with their reasons, and the cost of judging."""
    from labmates.studies.judging import judging_usage

    used = judging_usage(reader.all("judge_call"))
    return render("scores.html", scores=reader.events("score"), used=used, links=links, run=reader.run)


def head(reader: RunReader, links: Links, tab: str) -> dict[str, Any]:
    """The values for the head of a run's pages."""
    run = reader.run
    return {
        "run": run,
        "payer": payer_of(run),
        "usage": asdict(run.usage),
        "links": links,
        "tab": tab,
        "headline": headline(run.kind) or tuple(run.metrics)[:5],
        "events": sum(n for (name, *_), n in reader.counts.items() if name not in HIDDEN),
        "last": reader.last,
        "has_approvals": _may_ask(run),
        "has_people": bool(people_of(run.models)),
    }


def _may_ask(run: RunRecord) -> bool:
    """Whether a run may ask for approval, or for the answer to an interrupt."""
    with suppress(UsageError):  # a condition of another version
        condition = condition_of(run)
        return bool(condition.approvals) or condition.interrupts
    return False


def story(reader: RunReader, query: Mapping[str, str], links: Links) -> Markup:
    """A page of the story of a run's events. Raises `UsageError` if the page, the type or the team is unknown."""
    types, teams, agents = Counter[str](), Counter[str](), Counter[str]()
    for (name, team, agent), number in reader.counts.items():
        if name not in HIDDEN:
            types[name] += number
            teams[team] += number
            agents[agent] += number
    for names in (teams, agents):
        names.pop("", None)
    kind, team, who = query.get("type", ""), query.get("team", ""), query.get("agent", "")
    for what, name, known in (("type of event", kind, types), (payer_of(reader.run), team, teams)):
        if name and name not in known:
            raise unknown_name(what, name, known)
    numbers = reader.numbers(types=[kind] if kind else [], without=HIDDEN, team=team, agent=who)
    pages = pages_of(len(numbers), PER_PAGE)
    page = _page(query, pages, numbers)
    wanted = numbers[(page - 1) * PER_PAGE : page * PER_PAGE]
    chosen = {name: value for name, value in (("type", kind), ("team", team), ("agent", who)) if value}
    return render(
        "story.html",
        items=_items_of(reader, wanted, links),
        page=page,
        pages=pages,
        total=len(numbers),
        chosen=chosen,
        types=types,
        teams=teams,
        agents=list(agents)[:_MOST_AGENTS],
        is_end=page == pages and not chosen,
        **head(reader, links, "story"),
    )


def _items_of(reader: RunReader, wanted: list[int], links: Links) -> list[Item]:
    if not wanted:
        return []
    # One more, since the charge for the last call follows it.
    span = reader.span(wanted[0], wanted[-1] + 1)
    numbers = set(wanted)
    events = {number: event for number, event in span.items() if number in numbers or event.type in HIDDEN}
    return items(reader, events, links, start=reader.run.started)


def story_since(reader: RunReader, after: int, links: Links) -> tuple[Markup, int]:
    """The items of later events, and the number of the last one."""
    events = reader.span(after + 1, after + LIVE_MOST)
    story = items(reader, events, links, start=reader.run.started)
    return render("items.html", items=story, links=links, run=reader.run), max(events, default=after)


def event_page(reader: RunReader, number: int, links: Links) -> Markup:
    """The page of one event: full texts, the prompt of a call, the changes of an artifact.

    Raises `AbsentError` if the event is unknown.
    """
    events = reader.span(number, number + 1)
    if number not in events:
        text = f"the run '{reader.run.id}' has no event {number}; its events are 0 to {reader.last}"
        raise AbsentError("event", text)
    event = events[number]
    shown = {n: e for n, e in events.items() if n == number or e.type in HIDDEN}
    if event.type in HIDDEN:
        shown = {number: event}
    story = items(reader, shown, links, start=reader.run.started, whole=True)
    messages: list[Any] = []
    if event.type in ("llm_call", "judge_call"):
        messages = [(n, body, list(message_texts(body))) for n in event.messages for body in [reader.bodies.get(n)]]
    different: list[tuple[str, str]] = []
    versions: dict[int, Any] = {}
    if event.type == "artifact":
        versions = {n: e for n, e in reader.events("artifact").items() if e.name == event.name}
        earlier = [e.content for n, e in versions.items() if n < number]
        different = changes(reader.bodies.get(earlier[-1]) if earlier else None, reader.bodies.get(event.content))
    return render(
        "event.html",
        item=story[0] if story else None,
        event=event,
        number=number,
        messages=messages,
        different=different,
        versions=versions,
        data=event.model_dump(mode="json", exclude={"messages"}),
        page=_page_of(reader.numbers(without=HIDDEN), number),
        **head(reader, links, "story"),
    )


def person_page(
    reader: RunReader, links: Links, page: Literal["approval", "turn"], *, question: Any = None, **told: Any
) -> Markup:
    """The page of a run's questions to a person, or of a person's turns, with the form for what waits.

    `question`, or the ``turn`` of an agent of the waiting ``agents``, is what the run tells
    (`labmates.workflows.people.live`). ``note`` is the reason for a refused answer, whose fields are ``given``;
    ``form_token`` proves that a form comes from this viewer.
    """
    values = {"turn": None, "agents": [], **told, "question": Question(**question) if question else None}
    answers = reader.events("approval") if page == "approval" else {}
    values |= {"answers": answers, "heading": heading, **head(reader, links, page)}
    return render(f"{page}.html", **values)


def _page_of(numbers: list[int], number: int) -> int:
    return bisect_left(numbers, number) // PER_PAGE + 1


def _page(query: Mapping[str, str], pages: int, numbers: list[int]) -> int:
    if (at := query.get("at", "")).isdecimal():
        return min(pages, _page_of(numbers, int(at[:12])))
    return page_number(query, pages)


def pages_of(number: int, size: int) -> int:
    """The number of pages of this size, at least one, for so many entries."""
    return max(1, -(-number // size))


def page_number(query: Mapping[str, str], pages: int) -> int:
    """The number of the requested page. Raises `UsageError` if the page does not exist."""
    requested = query.get("page", "1")
    if not requested.isdecimal() or not 1 <= int(requested[:12]) <= pages:
        raise UsageError(f"there is no page '{requested[:40]}'; there are 1 to {pages}")
    return int(requested)
