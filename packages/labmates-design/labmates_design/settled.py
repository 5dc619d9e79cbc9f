"""Studies that grow by one replicate at a time until their comparison is settled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Final

from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.stats.paired import FEWEST_TOLD
from labmates.studies.designs import Rule, Settled
from labmates.studies.spec import StudySpec, each_condition
from labmates.workflows.analyses.compare import compare
from labmates.workflows.analyses.compare_params import CompareParams
from labmates.workflows.protocol.analysis import Runs, TooFewRunsError
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates_design.stopping import looks

LEAST: Final = FEWEST_TOLD + 1
"""Fewest data sets with which stopping early is possible at all."""
_MOST_READ: Final = 500


def growing(store: Store, spec: StudySpec) -> Iterator[StudySpec]:
    """The study with more and more replicates, from those that have started up to its own number.

    It ends when runs are left, because the cap is spent, a model pauses or a person stops the study.

    Raises
    ------
    UsageError
        If it has too few data sets to stop early, or nothing in it can be compared.
    """
    planned = _planned(spec)
    if EXPERIMENTS.get(spec.kind).players is None:
        compare(Runs.given(store, planned), CompareParams())
    if (number := len({run.data_set for run in planned}) * spec.replicates) < LEAST:
        raise UsageError(
            f"--until settled needs {LEAST} data sets or more, the largest number to be played; {spec.name} has "
            f"{number}: raise its replicates"
        )
    started = (run.replicate + 1 for run in store.runs(study=spec.name) if run.status != "planned")
    for number in range(min(max(started, default=1), spec.replicates), spec.replicates + 1):
        yield spec.model_copy(update={"replicates": number})
        if _left(store, spec):
            return


def settled(store: Store, study: StudySpec, most: int) -> Settled | None:
    """Whether every pair of conditions of a study is told apart, or will hardly be in `most` replicates.

    Pairs are those of ``labmates compare``, on the primary outcome. None while replicates are worth playing, while runs
    are left, and after the last replicate.

    Raises
    ------
    TooFewRunsError
        If no run has the primary outcome, or nothing can be compared with `LEAST` data sets.
    """
    if study.replicates >= most or _left(store, study):
        return None
    records = list(store.runs(study=study.name))
    try:
        result = compare(Runs.given(store, records), CompareParams())
    except TooFewRunsError:
        data_sets = {run.data_set for run in records}
        if len(data_sets) < LEAST and any(EXPERIMENTS.get(study.kind).primary in run.metrics for run in records):
            return None
        raise
    p_values = [row["p"] for row in result.objects or () if row["role"] == "primary"]
    if any(p is None for p in p_values):
        return None
    blocks = math.ceil(len({run.data_set for run in records}) / study.replicates)
    look = looks(most, blocks)[study.replicates - 1]
    if all(p <= look.told or p >= look.hopeless for p in p_values):
        return Settled(study.replicates, any(p <= look.told for p in p_values), result.verdict[0])
    return None


def _planned(spec: StudySpec) -> list[RunRecord]:
    """A run of each condition, as if it had ended."""
    return [
        RunRecord(
            key,
            spec.kind,
            key,
            0,
            0,
            condition.model_dump(mode="json"),
            condition.models(),
            "completed",
            metrics={EXPERIMENTS.get(spec.kind).primary: 0.0},
        )
        for key, condition in islice(each_condition(spec), _MOST_READ)
    ]


def _left(store: Store, study: StudySpec) -> int:
    return study_counts(store, study.name).of("planned", "interrupted", "running")


class _Settled:
    """Stopping once every pair of conditions is told apart, or hardly will be."""

    growing = staticmethod(growing)
    settled = staticmethod(settled)


SETTLED: Rule = _Settled()
