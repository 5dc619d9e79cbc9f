"""Template reports: of a team that knows the truth, and of a team that ignores the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from labmates.tasks.base import Difficulty, Task

ORACLE = """# {title}

## Abstract
This report was written by a template from the known truth of a synthetic data set. It shows what a complete and \
right report looks like, and judges are tested with it. All findings that the task asks for are stated, in \
words and as a block of findings.

## Introduction
The project asks a team to look into one data set and to say what it found. Whoever reads the outcome wants to know \
which patterns are there, how strong they are and what follows from them. The questions are those of the task called \
{name}.

## Dataset description
The data team received a table with some thousand rows and the dirt of real records. Values are missing, rows are \
repeated, units change and names are spelled in several ways. The data dictionary names each column with its unit.

## Methods
No method was applied, because the truth was known beforehand. A team would clean the table first, fit a model to \
what is left, and check it on data that the model has not seen. Tests with stated error rates would then tell \
effects from chance.

## Results
{summary}

## Evaluation
Every error is zero by construction. Comparing them with the truth by code should \
therefore find nothing wrong. A difference would point to a fault in the task or in its scoring.

## Conclusion
The questions of the project are answered in full, and the answers are repeated below in a form that programs can \
read. Reports of real teams will fall short of this one. How far they do is what the scores measure.

```findings
{findings}
```
"""


PRIOR = """# {title}

## Abstract
This report was written by a template, and nobody looked at the data. It states what can be guessed from the questions \
alone, so that the score of a real report can be compared with what guessing earns.

## Results
No analysis was done. The task is called {name}.

```findings
{findings}
```
"""


def oracle_report(task: Task[Any, Any], truth: BaseModel) -> str:
    """A full report with seven sections and a findings block, written from the `truth`."""
    return _filled(ORACLE, task, task.oracle(truth), task.summary(truth))


def prior_report(task: Task[Any, Any], columns: Sequence[str], difficulty: Difficulty) -> str:
    """A short report with the findings block of the task's prior."""
    return findings_report(task, task.prior(columns, difficulty))


def findings_report(task: Task[Any, Any], findings: BaseModel) -> str:
    """A report that only states `findings`."""
    return _filled(PRIOR, task, findings)


def _filled(template: str, task: Task[Any, Any], findings: BaseModel, summary: str = "") -> str:
    block = findings.model_dump_json(exclude_none=True)
    return template.format(title=task.title, name=task.name, summary=summary, findings=block)
