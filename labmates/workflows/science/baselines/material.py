"""Material of a lead's artifact, gathered from the prompt of a writing step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from labmates.tasks.analysis import printed_findings
from labmates.workflows.science.baselines.prompt import Step, Use
from labmates.workflows.science.baselines.stated import (
    Block,
    find_block,
    lines_with_numbers,
    merge,
    printed_lines,
    sentences,
)

TRUST = ("evaluation_report", "model_architecture", "experiment_results", "dataset_description")
"""Precedence of artifacts that disagree: checks before estimates, estimates before descriptions."""

NO_ANALYSIS = (
    "The scripted baseline has no analysis for this task, since the task ships no cells: nothing was computed, and no "
    "finding is reported."
)


RAW = re.compile(r"% missing|^time:|for instance")
"""Lines about single columns, not repeated in a paper."""
TEST = re.compile(r"\b[tp] = |AIC|sd \d")
"""Lines with a test or an uncertainty."""


@dataclass(frozen=True)
class Material:
    """Material of a lead's artifact.

    Attributes
    ----------
    step
        The step in which it is written.
    found
        Findings of the members, or for the paper, of the artifacts.
    printed
        Lines with numbers in the output of the members' code.
    reported
        Members' reports, by name.
    artifacts
        Artifacts of other teams, by name.
    """

    step: Step
    found: Block
    printed: tuple[str, ...]
    reported: Mapping[str, str]
    artifacts: Mapping[str, str]

    def facts(self) -> list[str]:
        """A sentence about each finding."""
        return sentences(self.found, self.step.fields)

    def quote(self, name: str, most: int) -> str:
        """Numeric statements of an artifact with its source, its tests first."""
        team = self.step.owners.get(name, "other")
        lines = [ln for ln in lines_with_numbers(self.artifacts.get(name, ""), 60) if not RAW.search(ln)]
        lines = sorted(lines, key=lambda line: TEST.search(line) is None)[:most]
        if not lines:
            return f"The {team} team handed over nothing with numbers in `{name}`."
        return f"The {team} team reports in `{name}`: " + " ".join(lines)


def gather(step: Step) -> Material:
    """Material from the prompt of a writing step, or from the agent's conversation."""
    own_work = (*step.before, *step.uses)
    # An order cuts the middle of long outputs; the conversation has the agent's outputs whole.
    reports: Mapping[str, Mapping[str, str]] = {**_printed(own_work), **step.facts.get("reports", {})}
    artifacts: Mapping[str, str] = step.facts.get("material") or _written(own_work)
    outputs = [report.get("printed", "") for report in reports.values()]
    computed = [merge(reversed(list(printed_findings(text)))) for text in outputs]
    found = merge([*filter(None, computed), *_handed(step, artifacts)])
    reported = {name: report["reported"].strip() for name, report in reports.items()}
    printed = [line for text in outputs for line in printed_lines(text, 14)]
    return Material(
        step,
        found={name: value for name, value in found.items() if name in step.fields},
        printed=tuple(dict.fromkeys(printed)),
        reported={name: text for name, text in reported.items() if text and text != "nothing"},
        artifacts=artifacts,
    )


def _printed(uses: Sequence[Use]) -> dict[str, dict[str, str]]:
    """Output of the agent's own code, the newest first, as reports."""
    ran = [use.result for use in reversed(uses) if use.name == "run_code"]
    return {str(number): {"reported": "", "printed": text} for number, text in enumerate(ran)}


def _written(uses: Sequence[Use]) -> dict[str, str]:
    return {str(u.arguments.get("name")): str(u.arguments.get("content")) for u in uses if u.name == "write_artifact"}


def _handed(step: Step, artifacts: Mapping[str, str]) -> Iterator[Block]:
    """The teams' findings, the most trusted first: stated with the tool, or in a findings block."""
    stated, owners = step.stated_so_far(), step.owners
    names = dict.fromkeys([*owners, *artifacts])
    for name in sorted(names, key=lambda name: TRUST.index(name) if name in TRUST else len(TRUST)):
        yield stated.get(owners.get(name, ""), {}) or find_block(artifacts.get(name, ""))
