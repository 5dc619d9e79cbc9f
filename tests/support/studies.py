"""The conditions of a study as a list."""

from __future__ import annotations

from labmates.studies.spec import StudySpec, each_condition
from labmates.util.bounded_yaml import Source
from labmates.workflows.protocol.experiment import Condition


def conditions_of(spec: StudySpec, source: Source | None = None) -> list[Condition]:
    return [condition for _, condition in each_condition(spec, source)]
