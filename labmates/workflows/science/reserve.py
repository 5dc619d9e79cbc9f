"""The reserve: what of the pool is set aside for the artifacts that are still to be written.

Each phase on the agenda has a share for its artifact. Plans, work and deliberation draw on the pool without any share;
the writing of an artifact draws on its own share, too. So a share is held back from everybody who comes before: where
the pool is too small for all shares, the paper's is the last to go, then those of the teams before it, from the last
to the first. The organisation says how many tokens an artifact is likely to take. Those of the pipeline were measured
with the diligent baseline, whose code prints much, on all tasks: 2,900-4,400 tokens read and 600-1,100 written for the
first artifact; 4,100-5,600 and 1,600-2,700; 5,700-8,500 and 1,100-1,700; 5,900-7,900 and 1,800-2,600 for the paper. The
rest is for longer artifacts, for a reply that is asked for again, and for findings that are stated by a call of their
own. At the default prices they cost $0.045 together, the paper $0.015.
"""

from __future__ import annotations

from collections.abc import Sequence

from labmates.agents.organisation_parts import Team
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.state import Phase


def likely_cost(condition: ScienceCondition, team: Team) -> int:
    """The likely cost of a team's artifact at the price list, in micro-dollars."""
    return condition.prices.of(condition.model_of(team.lead.id)).cost(team.tokens.input, team.tokens.output)


def share_of(condition: ScienceCondition, team: Team) -> int:
    """Reserve for the artifact of a team, in micro-dollars."""
    likely = likely_cost(condition, team)
    if condition.reserve is None:
        return likely
    whole = sum(likely_cost(condition, other) for other in condition.teams)
    return condition.reserve * likely // whole if whole else condition.reserve // len(condition.teams)


def set_aside(condition: ScienceCondition, phases: Sequence[Phase]) -> int:
    """Reserve for the artifacts of these phases, in micro-dollars."""
    shares = 0
    for phase in phases:
        team = condition.crew.teams[phase["team"]]
        writers = len(team.seats) if "report" in phase["steps"] else int("write" in phase["steps"])
        shares += writers * share_of(condition, team)
    return shares
