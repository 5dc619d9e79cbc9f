"""The outcome of a tournament: its metrics and whether it counts."""

from __future__ import annotations

from labmates.workflows.experiment import Outcome
from labmates.workflows.tournament.context import TournamentContext
from labmates.workflows.tournament.results import Tournament, tournament_of
from labmates.workflows.tournament.state import TournamentState


def outcome(state: TournamentState, ctx: TournamentContext) -> Outcome:
    """The outcome of a tournament that has ended."""
    del state
    played = tournament_of(ctx.condition.model_dump(), ctx.table.recorder.events)
    return Outcome("completed", played.metrics(), _invalid(played))


def _invalid(tournament: Tournament) -> str | None:
    """The reason why a tournament is invalid: nothing was played, or a model gave no usable decision.

    Nothing is played instead of a failed move, so that single failures do no harm.
    """
    if not tournament.played:
        return "no round was played"
    silent = [model for model, tally in tournament.failures.items() if tally.failed == tally.asked]
    return f"all decisions of {', '.join(silent)} failed" if silent else None
