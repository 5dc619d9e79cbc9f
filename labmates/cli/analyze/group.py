"""``labmates analyze``: what the runs of a store mean."""

from __future__ import annotations

import click

from labmates.cli.analyze.agreement import agreement
from labmates.cli.analyze.check import check
from labmates.cli.analyze.convergence import convergence
from labmates.cli.analyze.dilemmas import dilemmas
from labmates.cli.analyze.populations import evolution, selfplay
from labmates.cli.analyze.prediction import prediction
from labmates.cli.analyze.proximity import proximity
from labmates.cli.analyze.ratings import ratings
from labmates.cli.analyze.reasons import reasons
from labmates.cli.analyze.strategies import diversity, invasion
from labmates.cli.analyze.teams import teams
from labmates.cli.analyze.teamwork import teamwork
from labmates.cli.analyze.tournament import tournament


@click.group(epilog="Example: labmates analyze agreement --study pilot")
def analyze() -> None:
    """Compute what the runs of a store mean."""


for command in (
    agreement,
    check,
    convergence,
    dilemmas,
    diversity,
    evolution,
    invasion,
    prediction,
    proximity,
    ratings,
    reasons,
    selfplay,
    teams,
    teamwork,
    tournament,
):
    analyze.add_command(command)
