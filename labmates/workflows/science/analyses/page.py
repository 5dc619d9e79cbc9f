"""The page of a science run: report, findings and truth, artifacts, requests and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from labmates.agents.organisation_parts import REPORT
from labmates.judges.lookup import STATUSES
from labmates.pages.links import Links
from labmates.pages.markdown import markdown
from labmates.pages.rendering import as_text, plain, templates_of
from labmates.pages.section import Section
from labmates.records.event_text import artifact_text
from labmates.records.reading import RunReader
from labmates.util.grouping import grouped
from labmates.workflows.science.analyses.team_page import team_sections

render = templates_of(__package__)


_MOST_FIGURES = 24


@dataclass(frozen=True)
class Finding:
    """One question of the task: the truth, the report's statement, and its credit."""

    name: str
    # The truth and the report's statement, an entry a line; empty without one.
    true: str
    stated: str
    credit: float | None
    weight: float
    reason: str
    teams: tuple[tuple[str, float | None], ...] = ()  # each team's findings stated with the tool, with their credit


def sections(reader: RunReader, links: Links) -> Iterator[Section]:
    """The sections of a run's page."""
    artifacts = reader.events("artifact")
    newest = {event.name: number for number, event in artifacts.items()}
    report = ""
    if REPORT in newest:
        number = artifacts[newest[REPORT]].content
        report = artifact_text(reader.values([number]).get(number, ""))
    if details := verified(reader):
        teams = [(team, statement["accuracy"]) for team, statement in details.get("teams", {}).items()]
        body = render("findings.html", findings=findings(details), teams=teams)
        yield Section("findings", "Findings and truth", body)
    if claims := provenance(reader):
        body = render("claims.html", **claims)
        yield Section("claims", "Where the findings come from", body)
    if artifacts:
        versions = grouped((event.name, (number, event)) for number, event in artifacts.items())
        body = render("artifacts.html", versions=versions, links=links, run=reader.run)
        yield Section("artifacts", "Artifacts", body)
    if requests := reader.events("request"):
        body = render("requests.html", requests=requests, links=links, run=reader.run)
        yield Section("requests", "Requests between teams", body)
    drawn = reader.rows("tool_call", holding="images")
    figures = [(row.seq, row.agent, image) for row in drawn for image in row.data["images"]]
    if figures:
        body = render("figures.html", figures=figures[:_MOST_FIGURES], links=links, run=reader.run)
        note = f"{len(figures) - _MOST_FIGURES} more in the story" if len(figures) > _MOST_FIGURES else ""
        yield Section("figures", "Figures", body, note)
    if report:
        yield Section("report", "Report", Markup('<div class="prose">{}</div>').format(markdown(plain(report))))
    yield from team_sections(reader)


def verified(reader: RunReader) -> Mapping[str, Any]:
    """The details of the newest score of the findings; empty without one."""
    scores = [score for score in reader.all("score") if score.judge == "verified" and "credits" in score.details]
    return scores[-1].details if scores else {}


def findings(details: Mapping[str, Any]) -> list[Finding]:
    """The truth and the findings of the report and the teams, from the details of a verified score."""
    stated, teams, true = details["findings"], details.get("teams", {}), details.get("truth", {})
    return [
        Finding(
            name=entry["finding"],
            true=_shown(true.get(entry["finding"])),
            stated=_shown(stated.get(entry["finding"])),
            credit=entry["credit"],
            weight=entry["weight"],
            reason=entry["reason"],
            teams=tuple(_of_teams(entry["finding"], teams)),
        )
        for entry in details["credits"]
    ]


def _of_teams(finding: str, teams: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    """Each team's statement of a finding and its credit; a repetition names the first team."""
    stated: dict[str, str] = {}
    for team, statement in teams.items():
        text = _shown(statement["findings"].get(finding))
        first = stated.setdefault("\n".join(sorted(text.splitlines())), team)  # in any order
        yield (f"as {first}" if text and first != team else text), statement["credits"].get(finding)


def provenance(reader: RunReader) -> dict[str, Any] | None:
    """The newest audit of the paper's claims, by status; None without an audit or claims."""
    audits = [
        score
        for score in reader.all("score")
        if (score.judge, score.metric) == ("verified", "provenance") and "claims" in score.details
    ]
    if not audits or not any(audits[-1].details["claims"].values()):
        return None
    details = audits[-1].details
    groups = [
        (status, details.get(status.replace(" ", "_"), ()), details["claims"].get(status, 0))
        for status in reversed(STATUSES)
    ]
    return {"reason": audits[-1].reason, "groups": groups}


def _shown(value: object) -> str:
    """The statement of one finding, one entry per line."""
    if isinstance(value, list):
        return "\n".join(map(_entry, value)) or "none"
    return _entry(value)


def _entry(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return as_text(value) if parts is None else ", ".join(map(_entry, parts))
