"""``labmates demo``, ``labmates tasks`` and ``labmates organisations``."""

from __future__ import annotations

from typing import Final

from labmates.registry import lazy
from labmates.workflows.verb import Verb

DEMO = Verb(
    "Let a scripted team do one science task, offline.",
    lazy("labmates.workflows.science.demo:demo"),
    lazy("labmates.workflows.science.demo:DemoParams"),
    example="labmates demo",
    has_store=True,
)

_TASKS: Final = "labmates.workflows.science.tasks"

TASKS = Verb(
    "List the science tasks, or show, check or create one.",
    lazy(f"{_TASKS}:tasks"),
    example="labmates tasks show ecology",
    objects="per task",
    verbs={
        "show": Verb(
            "Show a task.",
            lazy(f"{_TASKS}:show"),
            lazy(f"{_TASKS}:ShowParams"),
            example="labmates tasks show ecology --seed 3",
        ),
        "oracle": Verb(
            "Print the report of a team that knows the truth.",
            lazy(f"{_TASKS}:oracle"),
            lazy(f"{_TASKS}:DataParams"),
            example="labmates tasks oracle ecology --seed 3 > perfect.md",
        ),
        "prior": Verb(
            "Print the report of a team that never looked at the data.",
            lazy(f"{_TASKS}:prior"),
            lazy(f"{_TASKS}:DataParams"),
            example="labmates tasks prior ecology --seed 3 > guessed.md",
        ),
        "score": Verb(
            "Score the findings of a text.",
            lazy(f"{_TASKS}:score"),
            lazy(f"{_TASKS}:ScoreParams"),
            example="labmates tasks score ecology report.md --seed 3",
            objects="",
        ),
        "new": Verb(
            "Write a small package with a task.",
            lazy(f"{_TASKS}:new"),
            lazy(f"{_TASKS}:NewParams"),
            example="labmates tasks new soil_moisture",
        ),
        "check": Verb(
            "Find out whether a task keeps the rules.",
            lazy(f"{_TASKS}:check"),
            lazy(f"{_TASKS}:CheckParams"),
            example="labmates tasks check labmates_soil/task.py:SoilTask --seeds 5",
            objects="",
        ),
    },
)

_ORGANISATIONS: Final = "labmates.workflows.science.organisation_verbs"

ORGANISATIONS = Verb(
    "List the organisations of the science lab, or show, draw, check or begin one.",
    lazy(f"{_ORGANISATIONS}:listing"),
    example="labmates organisations",
    objects="per organisation",
    verbs={
        "show": Verb(
            "Show the file and the prompts of an organisation.",
            lazy(f"{_ORGANISATIONS}:show"),
            lazy(f"{_ORGANISATIONS}:NamedParams"),
            example="labmates organisations show pipeline",
        ),
        "draw": Verb(
            "Draw the graph of an organisation.",
            lazy(f"{_ORGANISATIONS}:draw"),
            lazy(f"{_ORGANISATIONS}:NamedParams"),
            example="labmates organisations draw hybrid",
        ),
        "check": Verb(
            "Check that an organisation works, offline.",
            lazy(f"{_ORGANISATIONS}:check"),
            lazy(f"{_ORGANISATIONS}:CheckParams"),
            example="labmates organisations check solo",
            objects="per rule",
        ),
        "new": Verb(
            "Write an organisation of your own.",
            lazy(f"{_ORGANISATIONS}:new"),
            lazy(f"{_ORGANISATIONS}:NewParams"),
            example="labmates organisations new mine --like hybrid",
        ),
    },
)
