"""Kinds of steps of an organisation: what each declares, and all of them by name.

A kind declares once what it is, and everything else reads it here: organisations, prompts, measures of coordination,
the reserve, drawings, seats from outside, baselines and checks. The folder ``steps`` of the lab has the kinds
themselves, in one file each; other packages add theirs (entry points ``labmates.steps``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar, Final, Literal, get_args

from labmates.errors import UsageError
from labmates.registry import PluginError, Registry

Does = Literal["talk", "work", "write"]


class StepKind:
    """The declaration of a kind of step.

    Attributes
    ----------
    name
        Its name in organisations.
    does
        ``talk``: its replies are texts for teammates, without tools, and count as coordination. ``work``: its agents
        use tools until they close their task. ``write``: it ends with an artifact of the team, which a reserve pays.
    by_each
        Whether each member does it on its own, with its share of the money; else the team does it in one go.
    pace
        Whether members act at the same time (``together``), at the same time in several ``rounds``, or take ``turns``
        and hear each other at once. Texts reach others from the next stage on.
    tells
        Whether members hear what it says, by the channel ``tell``.
    assigns
        Whether its reply gives members their tasks.
    reopens
        Whether its phase goes back to the artifact that the team wrote before: its author then sees the material of the
        earlier phases, and that artifact.
    approval
        The point of approval that it asks at; empty for none.
    detail
        The parameter of its short form, as in ``{talk: 2}``.
    label
        Its part of the steps of its calls in records, TEAM/PHASE/SEAT/LABEL/…; by default its name.
    order
        Name of its order to an agent, and of that order's prompt; by default its name.
    prompts
        Its prompts by name, with ``$values``. An organisation's own ones replace them.
    """

    name: ClassVar[str]
    does: ClassVar[Does]
    by_each: ClassVar[bool] = False
    pace: ClassVar[Literal["together", "rounds", "turns"]] = "together"
    tells: ClassVar[bool] = False
    assigns: ClassVar[bool] = False
    reopens: ClassVar[bool] = False
    approval: ClassVar[str] = ""
    detail: ClassVar[Literal["who", "rounds"]] = "who"
    label: ClassVar[str] = ""
    order: ClassVar[str] = ""
    prompts: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        name = getattr(cls, "name", "")
        cls.label = cls.label or name
        cls.order = cls.order or name


STEPS: Registry[StepKind] = Registry("step", "labmates.steps")
"""All kinds of steps by name."""
_CHECKED: dict[str, StepKind] = {}


def find_step(name: str) -> StepKind:
    """The kind of step `name`.

    Raises
    ------
    UsageError
        If it is unknown, or lacks a part of its declaration, without which it would be measured wrongly.
    """
    kind = STEPS.get(name)
    if _CHECKED.get(name) is not kind:
        with STEPS.guarded(name, "can't be used"):
            if fault := fault_of(name, kind):
                raise UsageError(f"the step '{name}' {fault}")
        _CHECKED[name] = kind
    return kind


def fault_of(name: str, kind: object) -> str:
    """What the declaration of a kind of step lacks; empty if it is complete."""
    if not isinstance(kind, StepKind):
        return "is not an object of a class derived from StepKind"
    if getattr(kind, "name", "") != name:
        return f"calls itself '{getattr(kind, 'name', '')}'; set name = '{name}'"
    if getattr(kind, "does", "") not in get_args(Does):
        return f"does not declare what it does; set does to one of {', '.join(get_args(Does))}"
    other = kinds_by_label().get(kind.label, kind)
    if _measured(other) != _measured(kind):
        return f"records its calls as '{kind.label}', like the step '{other.name}'; set another label"
    return ""


def kinds_by_label() -> dict[str, StepKind]:
    """The usable kinds of steps by their label in records; the first of two with the same."""
    kinds: dict[str, StepKind] = {}
    for name in sorted(STEPS, key=lambda name: not STEPS.is_own(name)):
        with suppress(PluginError):  # a broken plug-in must not keep other runs from being measured
            kind = STEPS.get(name)
            if getattr(kind, "does", "") in get_args(Does):
                kinds.setdefault(kind.label, kind)
    return kinds


def kind_of_order(order: str) -> StepKind | None:
    """The kind of step with an order of this name."""
    return next((kind for kind in kinds_by_label().values() if kind.order == order), None)


def _measured(kind: StepKind) -> tuple[object, ...]:
    return kind.does, kind.pace, kind.tells, kind.assigns


def label_of(step: str) -> str:
    """The label in the step of a call, TEAM/PHASE/SEAT/LABEL/…; empty for other steps."""
    parts = step.split("/")
    return parts[_LABEL] if len(parts) > _LABEL else ""


_LABEL: Final = 3
