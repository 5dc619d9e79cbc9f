"""Evidence in the lab: the division of a data set, and each seat's part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import find_organisation
from labmates.agents.organisation_parts import FlowPhase, Step
from labmates.agents.steps import find_step
from labmates.tasks.base import Dataset, Difficulty, Task
from labmates.tasks.words import WORDS

if TYPE_CHECKING:
    from labmates.tasks.evidence import Part

SHARED: Final = "shared"
Arm = Literal["oracle", "restricted", "team", "mute"]
ALONE: Final[tuple[Arm, ...]] = ("oracle", "restricted")
"""Single-agent arms."""

_MATERIALS_KEPT: Final = 32
"""The replicates of most studies; of a built-in task, up to some 40 megabytes."""
_SPLIT = re.compile(r"split:(0|1|0?\.\d{1,4}|[01]\.0{1,4}|0\.\d{1,4})")


def _evidence(text: str) -> str:
    if text == SHARED:
        return text
    match = _SPLIT.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is neither shared nor split:S with S from 0 to 1 (try split:0.5)")
    return f"split:{float(match[1]):g}"


Evidence = Annotated[str, AfterValidator(_evidence)]
"""``shared``, or ``split:S`` with the share S of the credit that needs two or more instruments."""


class Materials(NamedTuple):
    """A run's data set, and the parts for the seats: a single part if all hold the same."""

    dataset: Dataset[Any]
    parts: tuple[Part, ...]


def prepare(task: Task[Any, Any], seed: int, difficulty: Difficulty, evidence: str, arm: Arm) -> Materials:
    """A run's data set, divided by its condition; read-only.

    The newest ones are cached: organisations and models of a study share seeds.
    """
    return _prepared(type(task), 0 if task.is_fixed and evidence == SHARED else seed, difficulty, evidence, arm)


@lru_cache(maxsize=_MATERIALS_KEPT)
def _prepared(kind: type[Task[Any, Any]], seed: int, difficulty: Difficulty, evidence: str, arm: Arm) -> Materials:
    from labmates.tasks.evidence import ALL, Part, divide, union

    task = kind()
    dataset = task.generate(seed, difficulty)
    if evidence == SHARED:
        return Materials(dataset, (Part(ALL, dataset.frame, dataset.description),))
    parts = divide(task, seed, difficulty, float(evidence.removeprefix("split:")))
    if arm == "oracle":
        return Materials(dataset, (union(task, parts),))
    if parts[0].frame is parts[1].frame:  # nothing is divided
        return Materials(dataset, (Part(ALL, dataset.frame, dataset.description),))
    return Materials(dataset, parts[:1] if arm == "restricted" else parts)


def seat_description(task: Task[Any, Any], parts: Sequence[Part], held: int | None) -> str:
    """The instruments that there are, which of them a seat holds, and the data dictionary of its part.

    Parameters
    ----------
    parts
        The parts of the run: a single one if all seats hold the same.
    held
        Index of the seat's part; None if it runs no code.
    """
    part = parts[0] if len(parts) == 1 or held is None else parts[held]
    about = task.instruments.about if task.instruments else {}
    if part.instrument not in about:
        return part.description
    mine = "" if len(parts) > 1 and held is None else part.instrument
    listed = [
        f"- {name}{' (yours)' * (name == mine)}: {text.partition('. ')[0].partition(chr(10))[0].rstrip('.')}."
        for name, text in about.items()
    ]
    lead = f"The records come from {WORDS[len(about)]} instruments:\n" + "\n".join(listed)
    if mine:
        return f"{lead}\n\nYou hold one of them alone: {mine}.\n\n{part.description}"
    rest = part.description.removeprefix(about[part.instrument]).strip()
    return f"{lead}\n\nYou hold none of them. Each agent who runs code holds one, and is told:\n\n{rest}"


def kept_apart(crew: Organisation) -> Organisation:
    """The same seats, models and evidence as independent researchers: in as many phases, each with a report."""
    independent = find_organisation("independent")
    [group] = independent.teams.values()
    part = {"title": group.lead.title, "part": group.lead.part}
    seats = {name: seat.model_copy(update=part) for name, (_, seat) in crew.seats.items()}
    phases = Counter(phase.team for phase in crew.flow if any(find_step(name).does == "work" for name in phase.names))
    turns = max(team.turns for team in crew.teams.values())
    work, report = Step(do="work"), Step(do="report")
    alone = FlowPhase(team=group.name, steps=(work,))
    last = FlowPhase(team=group.name, steps=(work, report))
    return independent.model_copy(
        update={
            "name": crew.name,
            "flow": (*[alone] * (max(phases.values(), default=1) - 1), last),
            "teams": {group.name: group.model_copy(update={"seats": seats, "turns": turns})},
        }
    )
