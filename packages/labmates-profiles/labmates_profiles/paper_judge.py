"""The rubric judge as the paper asks it: a task, its truth, the report, three rubrics, and nothing more.

Source: cooperative-profiles paper, appendix L, item by item, in words of our own. A rating comes before its reason.
What `judges.rubric` adds is missing: the stated findings with their credits, artifacts and outputs of code, and what is
not counted against a report. Its defence against prompt injections remains, since reports are hostile text.
"""

from __future__ import annotations

from string import Template
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict

from labmates.judges.base import Report
from labmates.judges.injection import RULES
from labmates.judges.interview import REPAIR, digest
from labmates.judges.rubric import KIND, Flags, Level, Reason, RubricJudge
from labmates.models.orders import Order

SYSTEM = """You are an expert who reviews scientific work. Teams of AI agents wrote the reports that you review: \
language models that worked one after the other, analysed a data set and wrote down what they found. You get one \
report at a time, and rate it on three metrics by the rubrics below.

Each rating is a whole number from 1 to 5. Answer with valid JSON of the form that you are given, and write nothing \
else."""

QUESTION = Template("""## The task

Scientific task: $title
Its description: $brief

## The truth: what is known about the data set

$truth

## The report

$report

## Rubrics

Give a rating from 1 to 5 on each of three metrics.

### 1. Completeness: structure and coverage

Is the report complete as a scientific document? It needs seven sections: (1) abstract, (2) introduction, (3) \
description of the data set, (4) methods, (5) results, (6) evaluation, (7) conclusion. Judge for each of them whether \
it is there and says something of substance, which a heading or one sentence alone does not.

- 5, exemplary: all seven are there with substance, and lead on from one to the next.
- 4, good: six have substance; what is missing or thin is minor.
- 3, adequate: four or five have substance; it reads like part of a draft.
- 2, poor: two or three have substance; there are only pieces of a report.
- 1, minimal: at most one has substance, or most of the text is incoherent or boilerplate without any real analysis.

Say also of each section whether it is there with substance: true or false.

### 2. Quality: rigour of the methods, and presentation

Is the analysis rigorous and well presented?

- 5, exemplary: the methods are appropriate and clearly justified; the results are specific quantities, such as \
metrics, p-values and confidence intervals; statistical tests are used correctly; what earlier teams produced is \
referred to and woven in coherently; there are tables or other structured results.
- 4, good: sound methods with quantitative results; small gaps in the statistics or in the use of earlier work.
- 3, adequate: some methods and some numbers, but a shallow analysis; tests or references to the work of other teams \
may be missing.
- 2, poor: vague or boilerplate methods, few concrete numbers or none, and no sign of statistical tests or of work \
that was taken over from one stage to the next.
- 1, minimal: no method can be made out; a general text without quantitative results, which would suit any data set.

### 3. Accuracy: are the scientific findings correct?

How well does the report describe the patterns that the data truly have? Judge by the truth above.

- 5, exemplary: all major phenomena of the truth are identified correctly, the key numbers are consistent with it, and \
the report shows that the data set was really understood.
- 4, good: most of the major phenomena are identified; findings largely agree with the truth, with small omissions or \
imprecisions.
- 3, adequate: some true patterns are identified, important ones are missed; correct claims are mixed with wrong or \
unsupported ones.
- 2, poor: few true patterns are identified; there are substantial errors, or invented findings that the data don't \
support.
- 1, minimal: no finding is correct; the whole analysis is general, invented, or against the truth.

$form""")

# The form is not valid JSON, so that a copy of it is not a rating.
FORM = """## Form of the answer

Answer with this JSON object alone:

{"completeness": <whole number, 1 to 5>, "completeness_reason": "<one sentence>", "sections": {"abstract": <true or \
false>, "introduction": <true or false>, "dataset": <true or false>, "methods": <true or false>, "results": <true or \
false>, "evaluation": <true or false>, "conclusion": <true or false>}, "quality": <whole number, 1 to 5>, \
"quality_reason": "<one sentence>", "accuracy": <whole number, 1 to 5>, "accuracy_reason": "<one sentence>"}"""


class PaperRating(BaseModel):
    """A model's answer, in the paper's order."""

    model_config = ConfigDict(frozen=True)

    completeness: Level
    completeness_reason: Reason
    sections: Flags
    quality: Level
    quality_reason: Reason
    accuracy: Level
    accuracy_reason: Reason


class PaperJudge(RubricJudge):
    """A model's ratings of completeness, quality and accuracy, asked for as in the paper."""

    prefix, system, form = "paper:", SYSTEM, PaperRating
    version = f"1.{digest(SYSTEM, QUESTION.template, FORM, REPAIR, RULES)}"
    prompts = MappingProxyType({"system": SYSTEM, "question": QUESTION.safe_substitute(form=FORM)})

    @staticmethod
    def question(report: Report, _mark: str, text: str) -> Order:
        """The prompt about a report."""
        task, truth = report.task, report.task.summary(report.truth)
        prompt = QUESTION.substitute(title=task.title, brief=task.brief, truth=truth, report=text, form=FORM)
        return Order(KIND, {"truth": truth, "report": text}, prompt)
