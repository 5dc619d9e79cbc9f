"""Material of a lead's artifact, gathered from the prompt of a writing step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from labmates.workflows.science.baselines.facts import lines_with_numbers, printed_lines
from labmates.workflows.science.baselines.prompt import Step, Use, results_of
from labmates.workflows.science.baselines.stated import Block, Field, Results, find_block, merge, read_fields, restate

TRUST = ("evaluation_report", "model_architecture", "experiment_results", "dataset_description")
"""Precedence of artifacts that disagree: checks before estimates, estimates before descriptions."""

PANEL_METHODS = (
    "Names were brought to one spelling by edit distance, repeated rows dropped, and decimal slips set aside against "
    "a rolling median.",
    "The main model is a linear regression of each log abundance on all log abundances one step before (a vector "
    "autoregression), with an intercept for each place.",
    "Regime shifts were found by a likelihood-ratio test at every possible time, one after the other.",
    "Effects were tested with t-tests whose p-values were corrected for the number of pairs (Bonferroni, 20 % in all).",
    "Forecasts take the mean of the latest stretch without a change and were cross-checked on a held-out year.",
)
SENSOR_METHODS = (
    "Error codes, stuck readings and repeated rows were taken out, and changed units brought back to the first one.",
    "The normal course of each sensor is its median at each time of the day plus a linear regression on time.",
    "What is left was turned into robust z-scores with the median absolute deviation.",
    "Spikes were tested against a rolling median, longer events against a rolling mean with a three-sigma rule; events "
    "on several sensors at once were joined.",
    "Every claimed event was tested against all other stretches of the same length, with an empirical p-value.",
)
TRIAL_METHODS = (
    "Patients entered twice were dropped, units of assay batches brought together by powers of ten, and values below "
    "a detection limit set to the limit over the root of two.",
    "Shifted batches were centred, log levels turned into standard deviations, and gaps filled by linear regression "
    "on the other markers (single imputation).",
    "The main model is a linear regression of the outcome on arm, covariates, markers and arm-by-marker interactions; "
    "t-tests were corrected for the number of markers by the false discovery rate (Benjamini-Hochberg, 10 %).",
    "Hidden subtypes are the components of a Gaussian mixture with one covariance, their number chosen by BIC.",
    "Claimed effects were estimated anew in two random halves of the patients, given each other.",
)
SURVEY_METHODS = (
    "Exchanged coordinates were put right, batches in percent converted, second samples of a site dropped, half the "
    "detection limit taken for what lies below it, decimal slips set aside, and gaps in covariates interpolated.",
    "The main model is a linear regression of the log grade on covariates and rock, fitted by generalised least "
    "squares with the covariance of the fitted variogram; t-tests were corrected for their number (Bonferroni, 5 %).",
    "Hot spots are where residuals stand out from a ring around them by three robust standard deviations; their place "
    "and half-distance were fitted by least squares.",
    "The variogram of what is left is exponential with nugget and geometric anisotropy, fitted by weighted least "
    "squares in six directions.",
    "Regression kriging was set against regression alone in random 10-fold cross-validation and on left-out blocks.",
)
TABLE_METHODS = (
    "Repeated rows were dropped and missing values left out pair by pair.",
    "Relations were measured by Spearman rank correlation with p-values, group differences in standard deviations.",
    "The checks repeat the tests on the same table: they can show mistakes, but are no new evidence.",
)


RAW = re.compile(r"% missing|^time:|for instance")
"""Lines about single columns, not repeated in a paper."""
TEST = re.compile(r"\b[tp] = |AIC|sd \d")
"""Lines with a test or an uncertainty."""

UNNAMED = {"dataset_description": "data", "model_architecture": "model", "evaluation_report": "eval"}
"""Owners if the order names none: those of the pipeline, for which the texts were written."""


@dataclass(frozen=True)
class Material:
    """Material of a lead's artifact.

    Attributes
    ----------
    brief
        The project's first sentences.
    results
        Results of the members, or for the paper, of the artifacts.
    printed
        Lines with numbers in the output of the members' code.
    reported
        Members' reports, by name.
    artifacts
        Artifacts of other teams, by name.
    owners
        Team of each artifact.
    team
        The team of the artifact that is being written.
    """

    brief: tuple[str, ...]
    results: Results
    printed: tuple[str, ...]
    reported: Mapping[str, str]
    artifacts: Mapping[str, str]
    owners: Mapping[str, str]
    team: str

    @property
    def others(self) -> tuple[str, ...]:
        """The other teams that hand artifacts over, in order; none if the order names one owner."""
        teams = dict.fromkeys(self._owners.values())
        return tuple(team for team in teams if team != self.team) if len(teams) > 1 else ()

    def giver(self, name: str) -> str:
        """The other team that hands an artifact over; empty if it is the writer's own, or unknown."""
        team = self._owners.get(name, "")
        return team if team in self.others else ""

    @property
    def _owners(self) -> Mapping[str, str]:
        return self.owners or UNNAMED

    @property
    def methods(self) -> tuple[str, ...]:
        """Descriptions of the methods."""
        if "entities" in self.results or "links" in self.results or "breaks" in self.results:
            return PANEL_METHODS
        if "ate" in self.results or "prognostic" in self.results or "subtypes" in self.results:
            return TRIAL_METHODS
        if "drivers" in self.results or "hotspots" in self.results or "sites" in self.results:
            return SURVEY_METHODS
        return SENSOR_METHODS if "channels" in self.results or "events" in self.results else TABLE_METHODS

    def quote(self, name: str, most: int, *, tests: bool = False) -> str:
        """Numeric statements of an artifact with its source, optionally its tests first."""
        team = self.owners.get(name, "other")
        lines = [ln for ln in lines_with_numbers(self.artifacts.get(name, ""), 60) if not RAW.search(ln)]
        lines = sorted(lines, key=lambda line: TEST.search(line) is None)[:most] if tests else lines[:most]
        if not lines:
            return f"The {team} team handed over nothing with numbers in `{name}`."
        return f"The {team} team reports in `{name}`: " + " ".join(lines)


def gather(step: Step) -> Material:
    """Material from the prompt of a writing step, or from the agent's conversation."""
    own_work = (*step.before, *step.uses)
    # An order cuts the middle of long outputs; the conversation has the agent's outputs whole.
    reports: Mapping[str, Mapping[str, str]] = {**_printed(own_work), **step.facts.get("reports", {})}
    artifacts: Mapping[str, str] = step.facts.get("material") or _written(own_work)
    fields = read_fields(step.findings)
    outputs = [report.get("printed", "") for report in reports.values()]
    computed = [merged for text in outputs if (merged := merge(results_of(text)))]
    handed = [restate(block, fields) for block in _handed(step, artifacts)]
    reported = {name: report["reported"].strip() for name, report in reports.items()}
    printed = [line for text in outputs for line in printed_lines(text, 14)]
    return Material(
        brief=step.brief,
        results=merge([*computed, *handed, nouns(fields)]),
        printed=tuple(dict.fromkeys(printed)),
        reported={name: text for name, text in reported.items() if text and text != "nothing"},
        artifacts=artifacts,
        owners=step.owners,
        team=step.owners.get(step.artifact, ""),
    )


def _printed(uses: Sequence[Use]) -> dict[str, dict[str, str]]:
    """Output of the agent's own code, the newest first, as reports."""
    ran = [use.result for use in reversed(uses) if use.name == "run_code"]
    return {str(number): {"reported": "", "printed": text} for number, text in enumerate(ran)}


def _written(uses: Sequence[Use]) -> dict[str, str]:
    return {str(u.arguments.get("name")): str(u.arguments.get("content")) for u in uses if u.name == "write_artifact"}


def nouns(fields: Iterable[Field]) -> Results:
    """The task's nouns for the units of the data and their time, if its fields name them."""
    words: Results = {}
    for field in fields:
        if unit := re.search(r"number of (?:distinct |different )?(\w+)", field.words):
            words.setdefault("noun", unit[1])
        if clock := re.search(r"(\w+) numbers? at which", field.words):
            words.setdefault("clock", clock[1])
    return words


def _handed(step: Step, artifacts: Mapping[str, str]) -> Iterator[Block]:
    """The teams' findings, the most trusted first: stated with the tool, or in a findings block."""
    stated, owners = step.stated_so_far(), step.owners
    names = dict.fromkeys([*owners, *artifacts])
    for name in sorted(names, key=lambda name: TRUST.index(name) if name in TRUST else len(TRUST)):
        yield stated.get(owners.get(name, ""), {}) or find_block(artifacts.get(name, ""))
