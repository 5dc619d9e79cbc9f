"""The condition of a run: every parameter of one cell of an experiment."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from labmates.models.names import parse_model
from labmates.models.settings import Thoughts

if TYPE_CHECKING:
    from labmates.models.check import Ability
    from labmates.registry import Registry

ThoughtsSent = Annotated[
    Thoughts,
    Field(
        description="Own thoughts that a model gets back with its transcript: tools (those of turns with tool calls, "
        "as providers ask), turn (those of the current turn: fewer tokens, refused by some) or all.",
    ),
]
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)


class Condition(BaseModel, ABC):
    """Every parameter of one cell of an experiment. Equal conditions have equal keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    kind: ClassVar[str]
    material: ClassVar[frozenset[str]] = frozenset()
    """Fields that define the agents' data; a run can't be continued with other values."""

    @property
    def key(self) -> str:
        """A stable id of the condition: a hash of its canonical JSON, 16 hexadecimal digits."""
        return self.key_of(self.model_dump(mode="json"))

    @classmethod
    def key_of(cls, values: Mapping[str, Any]) -> str:
        """The key of the condition with these JSON values."""
        text = _CANONICAL.encode({"kind": cls.kind, **values})
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def labels(self) -> tuple[str, ...]:
        """Tags of the condition's traces; the first two are part of their names."""
        return ()

    @property
    def pool(self) -> int | None:
        """The credits of one run, in micro-dollars; None for a kind without a budget."""
        return None

    @property
    def approvals(self) -> tuple[str, ...]:
        """Steps that need a person's approval."""
        return ()

    @property
    def interrupts(self) -> bool:
        """Whether code of the user's may interrupt the graph of a run to ask a person."""
        return False

    def doubts(self) -> Sequence[str]:
        """Reasons why results under this condition mean little, for people; told at the start and recorded."""
        return ()

    def parts(self) -> Iterable[tuple[Registry[Any], str]]:
        """Entries whose rules a run follows, such as its task or game, beside its experiment and its models."""
        return ()

    def needs(self) -> tuple[Ability, ...]:
        """Capabilities required of the models' servers."""
        return ()

    def longest_reply(self, model: str) -> int:
        """The highest output limit of a model's calls, in tokens; 0 if the condition has none."""
        return parse_model(model).settings.max_output_tokens or int(getattr(self, "max_output_tokens", 0))

    @abstractmethod
    def models(self) -> list[str]:
        """The participating models, each once, in order."""

    def without_effect(self, given: Mapping[str, Any]) -> dict[str, str]:
        """The `given` parameters without effect in this condition, with the reason."""
        return {name: "has no effect with these parameters" for name in given if name not in self.model_fields_set}

    def check(self) -> None:
        """Check constraints beyond types (for instance that the task exists).

        Raises
        ------
        UsageError
            If the condition is invalid.
        """
