"""Plans of a diligent lead: bullet points by team, and tasks by role."""

from __future__ import annotations

POINTS = {
    "data": (
        "See the layout of the table: what a row is, what time and places it covers.",
        "Repair what is wrong with it and count every repair.",
        "Describe what the cleaned data show, in numbers.",
        "Hand over one description, so that nobody has to open the raw table again.",
    ),
    "model": (
        "Read what the data team found out and repeat its repairs.",
        "Fit one main model that answers the project's questions, with tests.",
        "Set it against simpler ones and against a held-out stretch.",
        "Hand over estimates with their uncertainty.",
    ),
    "eval": (
        "Take the model team's claims as they are stated and test each anew.",
        "Measure the error on data that were not fitted.",
        "Look where the models fail and what these places have in common.",
        "Decide which findings the paper may state.",
    ),
    "writing": (
        "Read every artifact and collect the numbers that the eval team confirmed.",
        "Draft the seven sections, each with its sources.",
        "Check that every number stands in an artifact, and state the findings as a block.",
    ),
    "solo": (
        "See the layout of the table, repair what is wrong with it, and count every repair.",
        "Fit one main model that answers the project's questions, with tests.",
        "Set it against simpler ones and against a held-out stretch.",
        "Test each finding anew, and keep those that hold.",
        "Hand over the artifacts, then write the paper from them.",
    ),
}
"""The plan of each team."""

OTHER_POINTS = (
    "Read what was handed over.",
    "Do the team's part, in numbers.",
    "Hand over what was found and how sure it is.",
)
"""The plan of an unknown team."""

TASKS = {
    "data_lead": "Describe every column, clean the table, and report its size and what is in it.",
    "data_engineer": "Find and repair duplicates, spellings, units, gaps and outliers, and count each repair.",
    "domain_expert": "Describe every column and clean the table, and report what matters for the questions.",
    "ml_engineer": "Fit the main model on the cleaned data and report its estimates with tests.",
    "statistician": "Estimate the other quantities the paper has to state, with errors on a held-out stretch.",
    "experimentalist": "Fit the main model, forecast what was not fitted, and write both into `experiment_results`.",
    "eval_lead": "Test every claim of the model team's artifact again and report which hold.",
    "validation_analyst": "Reproduce the main findings independently and measure the error on held-out data.",
    "error_analyst": "Fit the main model and test its claims in parts of the data.",
    "lead_author": "Read all artifacts, collect the confirmed findings with their numbers, and plan the paper.",
    "methods_writer": "Collect what was done to the data, the methods and the checks, with numbers and sources.",
    "results_writer": "Collect the findings that the eval team confirmed, what they mean and where they end.",
}
"""The task of each role."""


def points_for(team: str) -> tuple[str, ...]:
    """The bullet points of a team's plan."""
    return POINTS.get(team, OTHER_POINTS)


OTHER_TASKS = (
    "Repair the data, fit the main model and report its estimates with tests.",
    "Fit the model, and forecast a held-out stretch.",
    "Repair the data, fit the model, and report what it leaves unexplained.",
    "Fit the model and check its claims in both halves of the data.",
)
"""The tasks of members of unknown roles, in turn."""


def task_for(member: str, place: int) -> str:
    """The task of a member; for an unknown role, by its place in the plan."""
    return TASKS.get(member) or OTHER_TASKS[place % len(OTHER_TASKS)]
