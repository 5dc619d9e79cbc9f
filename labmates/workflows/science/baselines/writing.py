"""Artifacts and papers: their material, gathered from the prompt of a writing step, and their sections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from labmates.tasks.analysis import printed_findings
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.baselines.stated import Block, find_block, merge, sentences, telling_lines

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
    """Material of a lead's artifact."""

    step: Step  # the step in which it is written
    found: Block  # findings of the members, or for the paper, of the artifacts
    printed: tuple[str, ...]  # lines with numbers in the output of the members' code
    artifacts: Mapping[str, str]  # artifacts of other teams, by name

    def quote(self, name: str, most: int) -> str:
        """Numeric statements of an artifact with its source, its tests first."""
        team = self.step.owners.get(name, "other")
        lines = [ln for ln in telling_lines(self.artifacts.get(name, ""), 60) if not RAW.search(ln)]
        lines = sorted(lines, key=lambda line: TEST.search(line) is None)[:most]
        if not lines:
            return f"The {team} team handed over nothing with numbers in `{name}`."
        return f"The {team} team reports in `{name}`: " + " ".join(f"{line.rstrip('.')}." for line in lines)


def gather(step: Step) -> Material:
    """Material from the prompt of a writing step, or from the agent's conversation."""
    own_work = (*step.before, *step.uses)
    # An order cuts the middle of long outputs; the conversation has the agent's outputs whole.
    outputs = [use.result for use in reversed(own_work) if use.name == "run_code"]
    outputs += [report.get("printed", "") for report in step.facts.get("reports", {}).values()]
    written = (use.arguments for use in own_work if use.name == "write_artifact")
    artifacts: Mapping[str, str] = step.facts.get("material") or {
        str(given.get("name")): str(given.get("content")) for given in written
    }
    computed = [merge(reversed(list(printed_findings(text)))) for text in outputs]
    found = merge([*filter(None, computed), *_handed(step, artifacts)])
    return Material(
        step,
        found={name: value for name, value in found.items() if name in step.fields},
        printed=tuple(dict.fromkeys(line for text in outputs for line in telling_lines(text, 14))),
        artifacts=artifacts,
    )


def _handed(step: Step, artifacts: Mapping[str, str]) -> Iterator[Block]:
    """The teams' findings, the most trusted first: stated with the tool, or in a findings block."""
    stated, owners = step.stated_so_far(), step.owners
    names = dict.fromkeys([*owners, *artifacts])
    for name in sorted(names, key=lambda name: TRUST.index(name) if name in TRUST else len(TRUST)):
        yield stated.get(owners.get(name, ""), {}) or find_block(artifacts.get(name, ""))


@dataclass(frozen=True)
class Part:
    """What a section says, in this order; how much, by the number of sentences that the text may have."""

    opening: tuple[str, ...] = ()  # its own sentences, of which a short text has fewer
    facts: int | None = None  # sentences on findings beyond the usual number; None for none at all
    lines: str = ""  # a pattern of the printed lines that it lists
    quotes: str = ""  # the artifact that it quotes
    methods: slice | None = None  # which of the analysis's methods it tells; None for none
    brief: int = 0  # how many sentences of the project's description it begins with, if the text is long enough


PARTS: Final[Mapping[str, Part]] = {
    "overview": Part(("One table was handed to the team.",), 0, r"time:|samples"),
    "variables": Part(("The columns, as they are in the raw table:",), lines=r"% missing"),
    "quality": Part(
        ("Repeated rows were dropped first.", "Repairs were made on a copy; the raw table is as it was."),
        0,
        r"spelling|repair|stuck|convert|codes",
    ),
    "patterns": Part(("What the cleaned data show, before any model:",), 0, r"correlation|drift|share of variance"),
    "advice": Part(
        (
            "Work on the repaired data and make the same repairs.",
            "Model on a scale on which the noise is even, and allow for gaps.",
            "Keep a whole part of the data out of the fit, to test on.",
        )
    ),
    "aim": Part(("The model answers what the project asks.",), brief=4),
    "features": Part(("No feature uses the values that it is to explain.",), 0, methods=slice(1)),
    "methods": Part(quotes="model_architecture", methods=slice(None)),
    "method": Part(methods=slice(1, None)),
    "fit": Part(
        ("The fitted model says the following.",),
        3,
        r"t = |p = |->|shift|events|forecast|correlation|variogram|hot spot",
    ),
    "limits": Part(
        (
            "Effects below the noise are missed, and thresholds decide what counts as found.",
            "Please test whether each stated finding holds in parts of the data and on data that were not fitted.",
        )
    ),
    "protocol": Part(("Claims were tested anew on the cleaned data.",), methods=slice(-2, None)),
    "performance": Part(("Figures of the checks:",), 0, r"error|\d \| |p = "),
    "checks": Part(("Each claim was tested once more.",), 0, r"claimed|confirmed|same sign|rarer|p = "),
    "errors": Part(("Where the models fail:",), lines=r"relative error|not confirmed|\d \| "),
    "verdict": Part(("The paper may state the following.",), 2),
    "abstract": Part(
        ("The findings are stated with their numbers below.", "What they rest on is in the artifacts that are cited."),
        brief=1,
    ),
    "introduction": Part(
        ("This paper brings together what was handed over.", "Every finding is given with its number and its source."),
        brief=6,
    ),
    "dataset": Part(("The repairs were made before any analysis.",), quotes="dataset_description"),
    "results": Part(("The findings, as they were estimated and checked:",), 3),
    "evaluation": Part(("The stated findings are what is left after these checks.",), quotes="evaluation_report"),
    "conclusion": Part(
        (
            "The questions of the project are answered as far as the data allow.",
            "Weak effects may have been missed, and p-values rest on a model that holds only roughly.",
        ),
        0,
    ),
}
"""What sections say, by the beginning of their title, tried in this order; other sections list facts."""


def write_sections(sections: Iterable[tuple[str, str]], material: Material, most: int) -> str:
    """Sections with at most about `most` sentences each; one short sentence if 0."""
    return "\n\n".join(f"## {title}\n{_section(title, about, material, most)}" for title, about in sections)


def _section(title: str, about: str, material: Material, most: int) -> str:
    if material.step.analysis is None:
        return NO_ANALYSIS
    usual = Part((f"This part covers {about or title.lower()}.",), 0)
    part = next((part for begin, part in PARTS.items() if title.lower().startswith(begin)), usual)
    listed = [line for line in material.printed if part.lines and re.search(part.lines, line.lower())]
    return " ".join(_sentences(part, material, most)) + "".join(f"\n- {line}" for line in listed[:most])


def _sentences(part: Part, material: Material, most: int) -> Iterator[str]:
    yield from material.step.brief[: min(part.brief, max(1, most // 2))]
    if part.methods is not None and material.step.analysis is not None:
        yield from material.step.analysis.methods[part.methods][: max(1, most)]
    if part.quotes:
        yield material.quote(part.quotes, 1 + most)
    yield from part.opening[: max(1, most // 2)]
    if part.facts is not None:
        yield from sentences(material.found, material.step.fields)[: most + part.facts]
