"""The analysis of behavioural games: models' profiles."""

from __future__ import annotations

from functools import partial

from labmates.stats.figures import paged
from labmates.workflows.protocol.analysis import Analysis, Params, Result, Runs, TooFewRunsError


def profiles(runs: Runs, _params: Params) -> Result:
    """Show models' play in the behavioural games: their cooperative profiles.

    The first table shows each game's primary metric, and cooperation by actions and by resulting welfare (0 at the
    equilibrium, 1 at the social optimum), with 95 % intervals. Runs with players of several models do not count. To
    play missing simulations too, use labmates profile. The second table shows, by game, the share of simulations and of
    models near the social optimum, compared with people.
    """
    from labmates_profiles.profile_figures import profile_figure, profile_pages
    from labmates_profiles.profiles import answer, games_of, games_table, profiles_table
    from labmates_profiles.profiles import profiles as profiles_of

    records = runs.records("game")
    played = profiles_of(records)
    if not played:
        raise TooFewRunsError(f"none of these {len(records)} runs is an ended game by one model")
    alt = "Each model's primary metric, a panel for each game with its reference plays; the numbers are in the table."
    games = games_of(records)
    draws = [partial(profile_figure, played, games, page) for page in profile_pages(played, games)]
    figures = paged("profiles", "Cooperative profiles", alt, draws)
    table = profiles_table(played)
    return Result([table, games_table(played)], figures, answer(table))


PROFILES = Analysis(
    "profiles",
    "Cooperative profiles",
    Params,
    profiles,
    example="labmates analyze profiles --out profiles.tex --plot profiles.png",
    kind="game",
    has_figures=True,
)
