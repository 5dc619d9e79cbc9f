"""One tournament, from its condition to its metrics."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.runnables import RunnableConfig

from labmates.analysis.tournaments import Tournament, tournament_of
from labmates.workflows.kinds import Outcome
from labmates.workflows.playing import Table
from labmates.workflows.services import Services
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.context import TournamentContext
from labmates.workflows.tournament.graph import first_state, tournament_graph


async def execute(condition: TournamentCondition, services: Services) -> Outcome:
    """Play one tournament.

    Raises
    ------
    EndpointError
        If a model could not be had; what was done so far is recorded and can be gone on with.
    """
    ctx = TournamentContext(condition, Table(condition, services), services.seed)
    await tournament_graph().ainvoke(first_state(), _config(condition, services), context=ctx)
    found = tournament_of(condition.model_dump(), ctx.table.recorder.events)
    return Outcome("completed", found.metrics(), _invalid(found))


def _invalid(found: Tournament) -> str | None:
    """Return why a tournament can't be used: nothing was played, or a model gave no usable decision.

    Nothing is played in the place of a failed move, so that single failures do no harm.
    """
    if not found.played:
        return "no round was played"
    silent = [model for model, tally in found.failures.items() if tally.failed == tally.asked]
    return f"all decisions of {', '.join(silent)} failed" if silent else None


def metrics_of(ctx: TournamentContext) -> Mapping[str, float]:
    """Return the metrics of a tournament that has ended, out of its record."""
    return tournament_of(ctx.condition.model_dump(), ctx.table.recorder.events).metrics()


def _config(condition: TournamentCondition, services: Services) -> RunnableConfig:
    """Return the graph's configuration: the name and the tags of its trace."""
    return {
        "run_name": f"tournament {condition.structure} {condition.model} {services.run_id}",
        "tags": ["labmates", "tournament", condition.structure],
        "metadata": {
            "run": services.run_id,
            "condition": services.key,
            "structure": condition.structure,
            "model": condition.model,
            "teams": condition.teams,
            "team_size": condition.team_size,
            "seed": services.seed,
        },
    }
