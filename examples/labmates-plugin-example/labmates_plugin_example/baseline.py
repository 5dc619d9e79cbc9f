"""The baseline ``scripted:kineticist``: knows one kind of data, and does in each step what a good chemist would."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from labmates.models.scripted.base import Draft, Heard, ScriptedModel, call, cut_to_tokens
from labmates.workflows.science.baselines.prompt import Step, read_step
from labmates.workflows.science.baselines.stated import find_block, show_block

MARK = "RESULT "
CODE = (files(__package__) / "kinetics.py").read_text(encoding="utf-8") + (
    f'\nimport json\nprint("{MARK}" + json.dumps(analyse(df)))\n'
)
"""What runs in the sandbox: the analysis, and a line that tells what it found."""

CONSTANTS = {"vmax_um_per_min": ("maximal rate", "µM per minute"), "km_um": ("Michaelis constant", "µM")}
TEXTS = {
    "Abstract": "An enzyme was tested with compounds that may slow it down. We fitted its kinetics with and without.",
    "Introduction": "Inhibitors tell how an enzyme works. This paper asks which compounds inhibit the one at hand, in "
    "which of three ways, and how strongly. Every number comes from one analysis of all wells.",
    "Dataset description": "One row is one well of a plate, as the data team found out. Repeated rows and empty wells "
    "were dropped. Plates that were read in nanomolar per minute were brought back to micromolar.",
    "Methods": "The model team fitted the law of Michaelis and Menten to wells without a compound, by a regression of "
    "logarithms that bubbles don't disturb. Then three mechanisms were fitted to each compound, and the best of them "
    "was compared with no effect at all.",
    "Results": "These are the constants of the enzyme and of every compound, as the model team fitted them.",
    "Evaluation": "The eval team fitted odd and even plates apart. Half the difference between the two fits is stated "
    "as the error of a constant, since it shows what other plates would have given.",
    "Conclusion": "Few constants explain the kinetics of the enzyme, and the two halves of the plates agree on them. "
    "Compounds with weak effects may have been missed, "
    "and mixed mechanisms were not tried at all.",
}
"""What the sections of the paper say besides the numbers."""


class Kineticist(ScriptedModel):
    """Fits enzyme kinetics and hands the result on.

    It hears what any model hears: messages, tools, a seed and a token limit. Everything that it knows of the run it
    reads from the prompts, by `labmates.workflows.science.baselines.prompt.read_step`.
    """

    baseline = "kineticist"
    description = (
        "Fits Michaelis-Menten kinetics with inhibitors; made for the task 'inhibitors' of the example plug-in."
    )

    def compose(self, heard: Heard) -> Draft:
        """Return the next move in the step that the messages ask for."""
        step = read_step(heard.messages)
        match step.kind:
            case "plan":
                return Draft(_plan(step))
            case "work":
                return _work(step, heard)
            case "deliberate":
                return Draft(
                    "The fits of two halves of the plates agree within their error. Nothing speaks against them."
                )
            case "write":
                text = _text(step)
                return Draft(
                    calls=(call("write_artifact", name=step.artifact, content=text, description="All of it."),)
                )
            case _:
                return Draft(cut_to_tokens("I know nothing but enzymes.", heard.max_tokens or 100))


def _plan(step: Step) -> str:
    points = ("Repair units and drop bubbles.", "Fit the enzyme alone.", "Fit each compound and compare mechanisms.")
    lines = [f"{name}: do your part of the fit and report every constant." for name in step.members()]
    return "\n".join([*(f"- {point}" for point in points), *lines])


def _work(step: Step, heard: Heard) -> Draft:
    # One fit in each team is enough: it is the same for all.
    if step.leads and "run_code" in heard.tool_names() and not step.uses:
        return Draft(calls=(call("run_code", code=CODE, description="fit the kinetics"),))
    printed = _result(step.uses[-1].result) if step.uses else None
    told = " ".join(_sentences(printed["findings"], printed["errors"])) if printed else "I leave the fit to the lead."
    return Draft(calls=(call("mark_complete", summary=told),))


def _text(step: Step) -> str:
    """Return the artifact: every section that is asked for, and the findings as a block.

    A team that ran code has its output among the material; the writing team has the artifacts of the others.
    """
    result = _result(step.order)
    findings = result["findings"] if result else find_block(step.order)
    told = _sentences(findings, result["errors"] if result else _errors(step.order))
    parts = [f"## {title}\n{_section(title, about, told, result)}" for title, about in step.sections()]
    return "\n\n".join([*parts, show_block(findings)])


def _errors(text: str) -> dict[str, float]:
    """Return the errors of the constants as an artifact states them, in the words of `_sentences`."""
    return {
        field: float(found[1])
        for field, (name, _) in CONSTANTS.items()
        if (found := re.search(rf"The {name} is \S+ ± (\d[\d.]*)", text))
    }


def _result(text: str) -> dict[str, Any] | None:
    """Return what the analysis printed into a text, None if it is not there."""
    lines = [line.removeprefix(MARK) for line in text.splitlines() if line.startswith(MARK)]
    return json.loads(lines[-1]) if lines else None


def _sentences(findings: dict[str, Any], errors: dict[str, float]) -> list[str]:
    """Return the findings in sentences, with their errors where they are known."""
    told = []
    for field, (name, unit) in CONSTANTS.items():
        if field in findings:
            error = f" ± {errors[field]:g}" if field in errors else ""
            told.append(f"The {name} is {findings[field]:g}{error} {unit}.")
    told.append(f"There are {len(findings.get('inhibitors', []))} inhibitors.")
    told += [
        f"{one['compound']} is {one['mechanism']} with a ki of {one['ki_um']:g} µM."
        for one in findings.get("inhibitors", [])
    ]
    if findings.get("inactive"):
        told.append(f"These compounds are inactive: {', '.join(findings['inactive'])}.")
    return told


def _section(title: str, about: str, told: list[str], result: dict[str, Any] | None) -> str:
    if title not in TEXTS:
        rows = f"Of {result['rows']} rows {result['used']} were used." if result else ""
        return " ".join([f"This part tells {about or title}.", rows, *told])
    return " ".join([TEXTS[title], *told[: None if title == "Results" else 2]])
