"""The science lab: the report, the truth beside its findings, artifacts, requests and figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from labmates.agents.roles import REPORT
from labmates.records.telling import artifact_text
from labmates.tasks.fences import split_blocks
from labmates.viewer.kinds import Section
from labmates.viewer.links import Links
from labmates.viewer.markdown import markdown
from labmates.viewer.reader import RunReader
from labmates.viewer.rendering import plain, render
from labmates.viewer.telling import as_text

_MOST_FIGURES = 24


@dataclass(frozen=True)
class Finding:
    """One question of the task: what is true, what the report states, and what that is worth.

    Attributes
    ----------
    true
        Each true statement, where it first appeared, and where it was lost.
    stated
        As it stands in the report; empty if it does not.
    """

    name: str
    true: tuple[tuple[str, str, str], ...]
    stated: str
    credit: float | None
    weight: float
    reason: str


def sections(reader: RunReader, links: Links) -> Iterator[Section]:
    """Tell a run of the science lab."""
    artifacts = reader.events("artifact")
    newest = {event.name: number for number, event in artifacts.items()}
    report = ""
    if REPORT in newest:
        number = artifacts[newest[REPORT]].content
        report = artifact_text(reader.values([number]).get(number, ""))
    if found := findings(reader, report):
        yield Section("findings", "Findings and truth", render("kinds/findings.html", findings=found))
    if artifacts:
        versions: dict[str, list[tuple[int, Any]]] = {}
        for number, event in artifacts.items():
            versions.setdefault(event.name, []).append((number, event))
        body = render("kinds/artifacts.html", versions=versions, links=links, run=reader.run)
        yield Section("artifacts", "Artifacts", body)
    if requests := reader.events("request"):
        body = render("kinds/requests.html", requests=requests, links=links, run=reader.run)
        yield Section("requests", "Requests between teams", body)
    figures = [(number, event, image) for number, event in reader.events("tool_call").items() for image in event.images]
    if figures:
        body = render("kinds/figures.html", figures=figures[:_MOST_FIGURES], links=links, run=reader.run)
        note = f"{len(figures) - _MOST_FIGURES} more stand in the story" if len(figures) > _MOST_FIGURES else ""
        yield Section("figures", "Figures", body, note)
    if report:
        yield Section("report", "Report", Markup('<div class="prose">{}</div>').format(markdown(plain(report))))


def findings(reader: RunReader, report: str) -> list[Finding]:
    """Return the truth beside what the report states, as far as a judge has compared them."""
    verified = [score for score in reader.all("score") if score.judge == "verified" and "credits" in score.details]
    if not verified:
        return []
    details = verified[-1].details
    stated = _stated(report)
    true: dict[str, list[tuple[str, str, str]]] = {}
    for one in details.get("handoff", {}).get("findings", ()):
        true.setdefault(one["finding"], []).append((one["item"], one["first"] or "", one["lost"] or ""))
    return [
        Finding(
            name=one["finding"],
            true=tuple(true.get(one["finding"], ())),
            stated=_shown(stated.get(one["finding"])),
            credit=one["credit"],
            weight=one["weight"],
            reason=one["reason"],
        )
        for one in details["credits"]
    ]


def _stated(report: str) -> Mapping[str, Any]:
    """Return what the newest readable block of findings says."""
    for block in reversed(split_blocks(report).blocks):
        if block.is_findings:
            try:
                found = json.loads(block.body)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                return found
    return {}


def _shown(value: object) -> str:
    """Return what is stated of one finding, an entry a line."""
    if isinstance(value, list):
        return "\n".join(_entry(one) for one in value) or "none"
    return _entry(value)


def _entry(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(as_text(one) for one in value.values())
    return as_text(value)
