"""``labmates strategies``: strategies as code, written, imported, checked and played."""

from __future__ import annotations

from typing import Final

from labmates.registry import lazy
from labmates.workflows.verb import Verb

_HOME: Final = "labmates.workflows.populations.commands"

STRATEGIES = Verb(
    "Write, import, check and play strategies as code.",
    example="labmates strategies play --game public-goods --players reference:cooperate reference:cc-2 "
    "reference:defect",
    verbs={
        "write": Verb(
            "Let a model write strategies.",
            lazy(f"{_HOME}:write"),
            lazy(f"{_HOME}:WriteParams"),
            example="labmates strategies write --model openai:gpt-5.4-mini --game public-goods --attitude exploitative "
            "-n 512",
            kind="strategies",
            has_store=True,
            objects="of the run",
        ),
        "play": Verb(
            "Play one game.",
            lazy(f"{_HOME}:play"),
            lazy(f"{_HOME}:PlayParams"),
            example="labmates strategies play --game public-goods --k 1.5 --players mine.py:Strategy_SELFISH_1 "
            "reference:cooperate reference:random-0.5",
            objects="",
        ),
        "check": Verb(
            "Check strategies.",
            lazy(f"{_HOME}:check"),
            lazy(f"{_HOME}:CheckParams"),
            example="labmates strategies check strategies/public-goods/gpt.py",
            objects="per strategy",
        ),
        "import": Verb(
            "Copy strategies into a library.",
            lazy(f"{_HOME}:import_"),
            lazy(f"{_HOME}:ImportParams"),
            example="labmates strategies import downloads/strategies --to strategies",
            objects="per file",
        ),
        "references": Verb(
            "List the reference strategies.",
            lazy(f"{_HOME}:references"),
            example="labmates strategies references --json",
            objects="per strategy",
        ),
    },
)
