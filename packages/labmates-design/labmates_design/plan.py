"""The differences that a study can find, before any run is paid for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from operator import itemgetter
from statistics import fmean
from typing import Any, Final

from labmates.budgets.money import format_dollars
from labmates.errors import UsageError
from labmates.models.names import is_own_baseline
from labmates.records.run import RunRecord
from labmates.studies.designs import PlannedRuns
from labmates.util.grouping import grouped
from labmates.workflows.analyses.matching import Matched, factor_of, observed, varying
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates_design.needs import Design, Need, check, parameter_of
from labmates_design.power import detectable_difference

_LEAST_MEASURED: Final = 10
"""Minimum degrees of freedom of a measured spread."""


@dataclass(frozen=True)
class Detectable:
    """The minimum detectable difference of the primary outcome between values of a parameter (80 % power).

    It is that of ``labmates compare --by PARAMETER``; None if no difference is told with this power.
    """

    parameter: str
    metric: str
    data_sets: int
    pairs: int  # pairs of values, which are compared together
    spread: float  # standard deviation among runs of equal conditions and data, the largest of the tasks
    measured: bool  # whether the spread comes from runs in the store, not from the kind's assumption
    difference: float | None
    needs: tuple[Need, ...] = ()  # what finds a given difference, if asked

    def lines(self) -> Iterator[str]:
        """It in words."""
        known = "measured" if self.measured else "assumed"
        least = "none" if self.difference is None else f"{self.difference:.3f}"
        together = f", {self.pairs} pairs together" if self.pairs > 1 else ""
        yield (
            f"compare --by {self.parameter}: minimum detectable difference in {self.metric} (80 % power): {least} "
            f"({self.data_sets} data sets{together}; spread {self.spread:.3f}, {known})"
        )
        for need in self.needs:
            if need.needs is None:
                yield f"  more {need.what} alone don't find that difference"
            else:
                cost = "" if need.dollars is None else f", ${need.dollars / 1e6:,.2f} for all runs"
                yield f"  {need.needs} {need.what} do (the study has {need.has}){cost}"

    def as_json(self) -> dict[str, Any]:
        """It as JSON data; amounts are dollars as decimal strings."""
        dollars = ((need, None if need.dollars is None else format_dollars(need.dollars)) for need in self.needs)
        return asdict(self) | {"needs": [asdict(need) | {"dollars": amount} for need, amount in dollars]}


def found(design: PlannedRuns, parameter: str | None, difference: float | None) -> list[Detectable]:
    """What a comparison of each parameter, or of one, would tell, and what it needs to find a `difference`.

    Raises `UsageError` if the study does not compare the parameter.
    """
    if parameter is not None:
        parameter = parameter_of(parameter)
    told = list(_detectable(design, parameter, difference)) if design.planned else []
    if parameter is not None and not told:
        check(parameter, varying(observed(design.planned, {})) if design.planned else ())
        primary = EXPERIMENTS.get(design.spec.kind).primary
        raise UsageError(f"--for: nothing tells the spread of {primary}, or no runs pair")
    return told


def _detectable(design: PlannedRuns, parameter: str | None, difference: float | None) -> Iterator[Detectable]:
    """What a comparison of each parameter, or of one, would tell, by its own design and verdict."""
    spec, ended, planned = design.spec, design.ended, design.planned
    experiment = EXPERIMENTS.get(spec.kind)
    metric = experiment.primary
    everything = observed(planned, {})
    keys = {run.key for run in planned}
    measured = {
        task: spread
        for task, runs in grouped((run.data_set[0], run) for run in ended if run.key in keys).items()
        if (spread := _spread([run for run in runs if metric in run.metrics], metric)) is not None
    }
    for name in varying(everything):
        if parameter not in (None, name):
            continue
        factor = factor_of(name, everything)
        matches = [Matched.of(factor, *pair) for pair in combinations(factor.levels, 2)]
        paired = [match for match in matches if match.cells]
        if not paired:
            continue
        number, match = min(((len({key[:2] for key in match.cells}), match) for match in paired), key=itemgetter(0))
        spreads = {task: measured.get(task, experiment.spread.get(metric)) for task, *_ in match.cells}
        known = [spread for spread in spreads.values() if spread is not None]
        if len(known) < len(spreads):
            continue
        # Each side of a block is the mean of the conditions that share its data set.
        scale = math.sqrt(2 * number / len(match.cells))
        domain = experiment.domain_of(metric, planned).difference()
        wide = tuple(scale * spread for spread in known)
        least = detectable_difference(wide, spec.replicates, domain, len(paired))
        models = 0 if name == "model" else len({key[2] for key in match.cells})
        plan = Design(wide, spec.replicates, models, domain, len(paired), design.dollars)
        needs = () if difference is None else tuple(plan.needed(difference))
        sets = len(known) * spec.replicates
        yield Detectable(name, metric, sets, len(paired), max(known), measured.keys() >= spreads.keys(), least, needs)


def _spread(runs: Sequence[RunRecord], metric: str) -> float | None:
    """The standard deviation among runs without what is common to a condition or a data set; None for too few runs.

    Baselines tell nothing of models.
    """
    values = {
        (run.key, run.data_set, run.replicate): run.metrics[metric]
        for run in runs
        if not all(map(is_own_baseline, run.models))
    }
    of_keys, of_data = (
        {name: fmean(some) for name, some in grouped((key[side], value) for key, value in values.items()).items()}
        for side in (0, 1)
    )
    freedom = len(values) - len(of_keys) - len(of_data) + 1
    if len(of_keys) < 2:  # the data sets of one condition have no other runs
        of_data, freedom = dict.fromkeys(of_data, 0.0), len(values) - 1
        whole = 0.0
    else:
        whole = fmean(values.values())
    if freedom < _LEAST_MEASURED:
        return None
    squares = ((value - of_keys[key] - of_data[data] + whole) ** 2 for (key, data, _), value in values.items())
    return math.sqrt(math.fsum(squares) / freedom)
