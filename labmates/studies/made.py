"""What runs are made with: hashes of prompts, rules and code, and checks that a run or study continues with the same.

The parts of a run are its experiment, and what its condition names: a task, a game, mechanisms, steps, baselines.
Judges are no part: each score has its judge's version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

from labmates.agents.players.base import PLAYERS
from labmates.models.names import parse_model
from labmates.models.scripted import BASELINES
from labmates.records.made import MixedRunsError, begun_groups, joined, mixtures
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.registry import lazy
from labmates.util.sources import source_hash
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Experiment, condition_of

_AGENTS: Final = "agents budgets games mechanisms models.scripted tasks workflows"
_REPLIES: Final = (
    "models.calls_in_text models.conversation models.marks models.normalise models.objects models.structured"
)
_COUNT: Final = tuple(f"labmates.{name}." for name in f"{_AGENTS} {_REPLIES}".split())
"""What results depend on in the core; the rest connects, records, judges, analyses or shows."""
_APART: Final = tuple(
    f"labmates.workflows.{name}." for name in ("analyses", "calls.assessing", "calls.stop_signal", "people", "protocol")
)


def made_of(condition: Condition) -> dict[str, str]:
    """The hashes of what a run of this condition is made with in this process, by part."""
    experiment = EXPERIMENTS.get(condition.kind)
    roots = tuple(_modules(experiment))
    package = f"{roots[0].rpartition('.')[0]}."
    made = {condition.kind: _hash(roots)}
    for registry, name in condition.parts():
        if name in registry:
            made[f"{registry.what} {name}"] = _hash((registry.module(name),))
    for model in map(parse_model, condition.models()):
        if model.scripted:
            families = (module for module in map(PLAYERS.module, PLAYERS) if module.startswith(package))
            made[f"scripted:{model.name}"] = _hash((BASELINES.module(model.name), *families))
    return made


def made_in(run: RunRecord) -> dict[str, str]:
    """What a run is made with that goes on in this process."""
    now = made_of(condition_of(run))
    return joined(run.made, now) if run.chain else now


def check_made(runs: Sequence[RunRecord], *, allow: bool) -> None:
    """Refuse to continue runs that began with other prompts, rules or code, unless allowed."""
    if not allow and (mixed := mixtures((run.kind, made_in(run), 1) for run in runs if run.chain)):
        raise MixedRunsError(f"the run '{runs[0].id}'" if len(runs) == 1 else "these runs", mixed)


def check_together(runs: Sequence[RunRecord], *, allow: bool) -> None:
    """Refuse to use ended runs together with new ones that other prompts, rules or code would make, unless allowed."""
    groups = [(run.kind, run.made if run.chain else made_of(condition_of(run)), 1) for run in runs]
    if not allow and (mixed := mixtures(groups)):
        raise MixedRunsError("these runs and earlier ones", mixed)


def check_study_made(store: Store, study: str, *, allow: bool) -> None:
    """Refuse to continue a study whose runs began with other prompts, rules or code, unless allowed."""
    if allow or not study_counts(store, study).of("planned", "interrupted", "running"):
        return
    begun = begun_groups(store, study)
    now = [(kind, made_of(condition_of(store.run(one))), 0) for kind, _, _, one in begun]
    if mixed := mixtures([*(group[:3] for group in begun), *now]):
        raise MixedRunsError(f"the study '{study}'", mixed)


@cache
def _hash(modules: Sequence[str]) -> str:
    tops = tuple(f"{module.partition('.')[0]}." for module in modules)

    def counts(module: str) -> bool:
        path = f"{module}."
        if path.startswith("labmates."):
            return path.startswith(_COUNT) and not path.startswith(_APART)
        return path.startswith(tops)

    return source_hash(filter(counts, modules), counts)


def _modules(experiment: Experiment[Any]) -> Iterator[str]:
    """The modules of an experiment's rules, its condition's first."""
    for part in (experiment.condition, experiment.graph, experiment.start, experiment.context, experiment.outcome):
        for each in (part.func, *part.args) if isinstance(part, partial) else (part,):
            yield each.module if isinstance(each, lazy) else each.__module__
