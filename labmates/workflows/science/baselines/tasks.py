"""Plans of a diligent lead: a few points, and a task for each member."""

from __future__ import annotations

from typing import Final

POINTS: Final = (
    "Read what was handed over, see the layout of the data and repair what is wrong with them.",
    "Do the team's part of the project in numbers, and test what was claimed.",
    "Hand over what was found and how sure it is.",
)
"""The plan of each team."""

TASKS: Final = (
    "Repair the data, fit the main model and report its estimates with tests.",
    "Fit the model, and forecast a held-out stretch.",
    "Repair the data, fit the model, and report what it leaves unexplained.",
    "Fit the model and check its claims in both halves of the data.",
)
"""The tasks of members, in turn; those of unknown roles work by the words of theirs."""


def task_for(place: int) -> str:
    """The task of a member, by its place in the plan."""
    return TASKS[place % len(TASKS)]
