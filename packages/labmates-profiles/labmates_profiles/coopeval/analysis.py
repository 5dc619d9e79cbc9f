"""The analyses `coopeval/ratings` and `coopeval/choices`: the published data of CoopEval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from pydantic import DirectoryPath, Field

from labmates.workflows.dilemmas.analyses import ChoicesParams
from labmates.workflows.protocol.analysis import Analysis, Params, Result, Runs

if TYPE_CHECKING:
    from labmates_profiles.coopeval.records import Unread

FOLDER = Field(description="A checkout of CoopEval's repository, or the folder of a run.")


class PublishedRatingsParams(Params):
    """Parameters of published ratings."""

    folder: DirectoryPath = FOLDER
    summary: bool = Field(False, description="Print means over runs with 95 % intervals, as of your own runs.")


class PublishedChoicesParams(ChoicesParams):
    """Parameters of published choices."""

    folder: DirectoryPath = FOLDER


def published_ratings(_runs: Runs, params: PublishedRatingsParams) -> Result:
    """Rate the published data of CoopEval, beside the published ratings.

    Tables show Table 2 of the paper, means over runs as in its Tables 3 to 7, and for each cell how far the ratings are
    apart and why ranks differ.
    """
    from labmates.stats.ratings import Evolution, summarise
    from labmates.workflows.dilemmas.analyses import rating_figures
    from labmates.workflows.dilemmas.ratings import summaries_answer, summaries_table
    from labmates_profiles.coopeval.records import rate_published
    from labmates_profiles.coopeval.tables import published_tables

    published, unread = rate_published(params.folder, Evolution())
    summaries = cache(lambda: summarise(each.rated for each in published))
    tables = [summaries_table(summaries())] if params.summary else published_tables(published)
    games = dict.fromkeys(each.rated.cell.game for each in published)
    return Result(tables, rating_figures(summaries, games), summaries_answer(summaries()), fault=_left_out(unread))


def published_choices(_runs: Runs, params: PublishedChoicesParams) -> Result:
    """Show models' actions, answers, votes and designs in the published records of CoopEval.

    The tables and figures are those of labmates analyze dilemmas.
    """
    from labmates.workflows.dilemmas.analyses import choices_in
    from labmates_profiles.coopeval.records import published_plays

    plays, unread = published_plays(params.folder)
    return replace(choices_in(plays, params), fault=_left_out(unread))


def _left_out(unread: Sequence[Unread]) -> str | None:
    return "\n".join(f"{each.path} is left out: {each.reason}" for each in unread) or None


RATINGS = Analysis(
    "coopeval/ratings",
    "Published ratings of CoopEval",
    PublishedRatingsParams,
    published_ratings,
    example="labmates analyze coopeval ratings --folder .",
    choices=(),
    has_figures=True,
)
CHOICES = Analysis(
    "coopeval/choices",
    "Published choices in CoopEval",
    PublishedChoicesParams,
    published_choices,
    example="labmates analyze coopeval choices --folder . --plots figures",
    choices=(),
    objects="per row with its table",
    has_figures=True,
)
