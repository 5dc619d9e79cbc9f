"""The reserve: the part of the pool set aside for artifacts yet to be written.

Each phase on the agenda has a share for its artifact. Plans, work and deliberation can't use the shares; writing an
artifact may use its share. So if the pool is too small for all shares, the paper's share is used up last, before it
those of the teams from the last to the first. The organisation sets the expected tokens of an artifact. Those of the
pipeline were measured with the diligent baseline, whose code prints much, on all tasks: 2,900-4,400 tokens read and
600-1,100 written for the first artifact; 4,100-5,600 and 1,600-2,700; 5,700-8,500 and 1,100-1,700; 5,900-7,900 and
1,800-2,600 for the paper. The rest allows for longer artifacts, repair turns, and findings stated in a separate call.
At the default prices they cost $0.045 in total, the paper $0.015. A pool of less than twice that would buy artifacts
about nothing, so half of it is left for the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.agents.organisation_parts import Team
from labmates.agents.steps import find_step
from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS
from labmates.budgets.tokens import estimate_messages
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.state import Phase, first_state

_BARE = 3
"""Of what an artifact reads, an order without much material is at most this fraction."""


def likely_cost(condition: ScienceCondition, team: Team) -> int:
    """The expected cost of a team's artifact by the price list, in micro-dollars."""
    return condition.prices.of(condition.model_of(team.lead.id)).cost(team.tokens.input, team.tokens.output)


def likely_output(team: Team, messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]) -> int:
    """The expected length of a team's artifact in tokens: the less its author reads, the less there is to write."""
    whole = team.tokens.input
    return team.tokens.output * min(whole, estimate_messages(messages, tools)) // whole if whole else team.tokens.output


def share_of(condition: ScienceCondition, team: Team) -> int:
    """The reserve for an artifact of a team, in micro-dollars; by default at most half of the pool is set aside.

    That pays an order without material and the shortest paper before any other artifact.
    """
    teams, author = condition.crew.teams, condition.crew.author
    writers = Counter(one.name for one in _writers(condition, first_state(condition.crew)["agenda"]))
    likely = {name: likely_cost(condition, teams[name]) for name in writers}
    whole = sum(likely[name] * number for name, number in writers.items())
    most = min(whole, condition.pool // 2) if condition.reserve is None else condition.reserve
    if not whole:
        return most // writers.total()
    papers, share = writers[author], most * likely[author] // whole
    if condition.reserve is None:
        bare = teams[author].tokens.input // _BARE
        least = condition.prices.of(condition.model_of(teams[author].lead.id)).cost(bare, LEAST_OUTPUT_TOKENS)
        share = max(share, min(most // papers, least))
    if team.name == author:
        return share
    return (most - papers * share) * likely[team.name] // (whole - papers * likely[author])


def set_aside(condition: ScienceCondition, phases: Sequence[Phase], likely: Mapping[str, int] | None = None) -> int:
    """The reserve for the artifacts of these phases, in micro-dollars.

    By default it is no more than what an artifact is `likely` to cost by its team's material.
    """
    known = likely if likely and condition.reserve is None else {}
    shares = ((team, share_of(condition, team)) for team in _writers(condition, phases))
    return sum(min(share, known.get(team.name, share)) for team, share in shares)


def _writers(condition: ScienceCondition, phases: Sequence[Phase]) -> Iterator[Team]:
    """The team of each artifact that these phases write."""
    for phase in phases:
        team = condition.crew.teams[phase["team"]]
        kinds = [kind for kind in map(find_step, phase["steps"]) if kind.does == "write"]
        yield from [team] * max((len(team.seats) if kind.by_each else 1 for kind in kinds), default=0)
