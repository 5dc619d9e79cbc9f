"""``labmates mechanisms``, ``labmates dilemmas`` and ``labmates analyze reasons``."""

from __future__ import annotations

from typing import Final

from labmates.registry import lazy
from labmates.workflows.verb import Verb

# It asks a model and adds to runs, which an analysis never does.
REASONS = Verb(
    "Let a model label the reasons that players give for their choices.",
    lazy("labmates.workflows.dilemmas.reasons:reasons"),
    lazy("labmates.workflows.dilemmas.reasons:ReasonsParams"),
    example="labmates analyze reasons --judge openai:gpt-5.4-mini --most 200",
    asks_models=True,
    has_store=True,
    choices=("runs", "study"),
    objects="",
)

_CATALOG: Final = "labmates.workflows.dilemmas.catalog"

MECHANISMS = Verb(
    "List the cooperation mechanisms, or show or check one.",
    lazy(f"{_CATALOG}:mechanisms"),
    example="labmates mechanisms show reputation",
    objects="each",
    verbs={
        "show": Verb(
            "Show a mechanism.",
            lazy(f"{_CATALOG}:show_mechanism"),
            lazy(f"{_CATALOG}:MechanismParams"),
            example="labmates mechanisms show contract --game public-goods",
            objects="each",
        ),
        "check": Verb(
            "Check a mechanism.",
            lazy(f"{_CATALOG}:check"),
            lazy(f"{_CATALOG}:MechanismParams"),
            example="labmates mechanisms check my-mechanism --game prisoners",
        ),
    },
)

DILEMMAS = Verb(
    "List the social dilemmas, or show one.",
    lazy(f"{_CATALOG}:dilemmas"),
    example="labmates dilemmas show trust",
    objects="each",
    verbs={
        "show": Verb(
            "Show a dilemma.",
            lazy(f"{_CATALOG}:show_dilemma"),
            lazy(f"{_CATALOG}:DilemmaParams"),
            example="labmates dilemmas show my-game.yaml",
            objects="each",
        ),
    },
)
