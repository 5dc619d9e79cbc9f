"""The stub with the typed parameters of `labmates.run`: ``python -m tests.support.condition_types`` writes it."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition
from tests.support.plugins import ROOT

PATH = ROOT / "labmates" / "condition_types.pyi"
HEAD = """# Made from the models of the conditions by: python -m tests.support.condition_types
from collections.abc import Callable, Mapping
from typing import Any, Literal, NewType, Protocol, Required, TypedDict, TypeVar, Unpack, overload

from labmates.studies.settings import RunSettings
from labmates.workflows.people.approval import Ask

R_co = TypeVar("R_co", covariant=True)
Kind = NewType("Kind", str)

class RunOptions(TypedDict, total=False):
    seed: int
    replicates: int
    store: str | None
    settings: RunSettings | Mapping[str, Any] | None
    progress: bool
    approve: Ask | None
"""
FUNCTION = "\nclass RunFunction(Protocol[R_co]):\n"
OVERLOAD = "    @overload\n    def __call__(self, kind: {kind}, **condition: {condition}) -> R_co: ...\n"
TAIL = "\ndef by_experiment(function: Callable[..., R_co]) -> RunFunction[R_co]: ...\n"


def source() -> str:
    """The stub's source code."""
    names = EXPERIMENTS.names()
    parameters = "".join(_typed_dict(name, EXPERIMENTS.get(name).condition) for name in names)
    kinds = {f'Literal["{name}"]': f"Unpack[{_class_name(name)}]" for name in names} | {"Kind": "Any"}
    overloads = "".join(OVERLOAD.format(kind=kind, condition=condition) for kind, condition in kinds.items())
    return HEAD + parameters + FUNCTION + overloads + TAIL


def _class_name(name: str) -> str:
    return f"{name.title().replace('-', '')}Run"


def _typed_dict(name: str, condition: type[Condition]) -> str:
    head = f"\nclass {_class_name(name)}(RunOptions, total=False):\n"
    free = {
        field
        for validator in condition.__pydantic_decorators__.field_validators.values()
        if validator.info.mode == "before"
        for field in validator.info.fields
    }
    return head + "".join(
        f"    {field}: {_annotation(info, any_type=field in free)}\n" for field, info in condition.model_fields.items()
    )


def _annotation(info: FieldInfo, *, any_type: bool) -> str:
    converts = any_type or any(isinstance(mark, BeforeValidator) for mark in info.metadata)
    accepted = "Any" if converts else _type(info.annotation)
    return f"Required[{accepted}]" if info.is_required() else accepted


def _type(annotation: Any) -> str:
    """The source of a simple type; ``Any`` for one that pydantic makes from other types."""
    if annotation in (bool, int, float, str):
        return str(annotation.__name__)
    if annotation is NoneType:
        return "None"
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(_quoted, get_args(annotation)))}]"
    if get_origin(annotation) in (Union, UnionType):
        parts = [_type(part) for part in get_args(annotation)]
        return "Any" if "Any" in parts else " | ".join(parts)
    return "Any"


def _quoted(word: str) -> str:
    return f'"{word}"'


if __name__ == "__main__":
    PATH.write_text(source(), encoding="utf-8")
