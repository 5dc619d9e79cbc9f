"""``labmates games``, ``labmates profile`` and ``labmates screen``."""

from __future__ import annotations

from typing import Final

from labmates.registry import lazy
from labmates.workflows.verb import Verb

FIXED = ("game", "model", "model_for", "rounds", "rules")
"""What a profile says by itself."""

PROFILE = Verb(
    "Measure how models play the behavioural games.",
    lazy("labmates.workflows.games.profiling:profile_verb"),
    lazy("labmates.workflows.games.profiling:ProfileParams"),
    function=lazy("labmates.workflows.games.profiling:profile"),
    example="labmates profile openai:gpt-5.4-mini scripted:random --plot profile.png",
    kind="game",
    fixed=FIXED,
    has_store=True,
    has_tables=True,
    has_figures=True,
    objects="per model",
)

SCREEN = Verb(
    "Predict how models would do in the lab from how they play.",
    lazy("labmates.workflows.games.prediction.screen:screen_verb"),
    lazy("labmates.workflows.games.prediction.screen:ScreenParams"),
    function=lazy("labmates.workflows.games.prediction.screen:screen"),
    example="labmates screen openai:qwen3-8b --base-url http://127.0.0.1:8000/v1",
    kind="game",
    fixed=FIXED,
    has_store=True,
    has_tables=True,
    choices=("study",),
    objects="per model",
)

_CATALOG: Final = "labmates.workflows.games.catalog"

GAMES = Verb(
    "List the behavioural games, or show or check one.",
    lazy(f"{_CATALOG}:games"),
    example="labmates games show weakest-link",
    objects="per game",
    verbs={
        "show": Verb(
            "Show a game.",
            lazy(f"{_CATALOG}:show"),
            lazy(f"{_CATALOG}:ShowParams"),
            example="labmates games show o-ring --group-size 3 --group-size 5 --rule threshold=40",
            objects="per group size",
        ),
        "check": Verb(
            "Check a game.",
            lazy(f"{_CATALOG}:check"),
            lazy(f"{_CATALOG}:CheckParams"),
            example="labmates games check my-game",
        ),
    },
)
