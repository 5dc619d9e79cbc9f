"""The roles of the science lab: four teams in order, each with a lead and up to two specialists; or one agent alone.

The teams, their artifacts and the third specialists follow the paper on cooperative profiles (section 4.1, appendix C);
the second specialists are our own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Role:
    """One agent's part: `id` is its name in prompts and records."""

    id: str
    title: str
    description: str


@dataclass(frozen=True)
class Team:
    """A team of the lab: its members (the first leads), what it hands over, and whether it may run code.

    A team that is `alone` has nobody to talk to and does the work of all others.
    """

    name: str
    artifact: str
    sections: tuple[str, ...]
    roles: tuple[Role, ...]
    has_code: bool = True
    alone: bool = False

    def members(self, size: int) -> tuple[Role, ...]:
        """Return the first `size` members, the lead first."""
        return self.roles[:size]

    @property
    def lead(self) -> Role:
        """The member that plans and writes the artifact."""
        return self.roles[0]


DATA = Team(
    "data",
    "dataset_description",
    (
        "Overview: what one row is, how many rows and columns, the time or space that they cover",
        "Variables: each column with its unit, range and role",
        "Quality: missing values, outliers, duplicates, mixed units, and how each was handled",
        "Patterns: the relations, groups and changes that the data show, with numbers",
        "Advice to the model team",
    ),
    (
        Role(
            "data_lead",
            "data lead",
            "Decide how the data are to be examined, look at their structure and distributions yourself, and write "
            "`dataset_description` so that later teams know what is in the data without opening them.",
        ),
        Role(
            "data_engineer",
            "data engineer",
            "Find and repair what is wrong with the raw data: duplicated rows, missing values, outliers, units and "
            "spellings that differ within a column. Report each repair with the number of rows that it touched.",
        ),
        Role(
            "domain_expert",
            "domain expert",
            "Judge which variables matter for the project's questions and why, derive the features that the "
            "subject calls for, and document each with its formula and its relation to the outcome.",
        ),
    ),
)

MODEL = Team(
    "model",
    "model_architecture",
    (
        "Aim: what is modelled and why",
        "Features: what goes in and how it was made",
        "Method: algorithms, settings and the reasons for them",
        "Fit: what the fitted models say about the project's questions, with estimates and their uncertainty",
        "Limits and open points for the eval team",
    ),
    (
        Role(
            "ml_engineer",
            "machine-learning engineer",
            "Choose the modelling approach, write the main model, fit it, and document in `model_architecture` "
            "what it is, why it suits the data, and what it found.",
        ),
        Role(
            "statistician",
            "statistician",
            "Estimate the quantities that the paper has to state with statistical models: effect sizes with "
            "confidence intervals and tests, assumptions checked.",
        ),
        Role(
            "experimentalist",
            "experimentalist",
            "Compare alternatives: simple baselines, feature subsets, settings left out one at a time. Write the "
            "artifact `experiment_results` with a table of all comparisons.",
        ),
    ),
)

EVAL = Team(
    "eval",
    "evaluation_report",
    (
        "Protocol: how results were checked (splits, metrics, baselines)",
        "Performance: metrics with uncertainty",
        "Checks of the findings: for each stated finding, whether it holds on the data and how sure it is",
        "Errors: where and why the models fail",
        "Verdict: which findings the paper may state, with their values",
    ),
    (
        Role(
            "eval_lead",
            "evaluation lead",
            "Design how the model team's claims are tested, compute the metrics with their uncertainty, and write"
            " `evaluation_report` with a verdict on every finding.",
        ),
        Role(
            "validation_analyst",
            "validation analyst",
            "Try to reproduce the claimed findings independently on held-out parts of the data (other times, "
            "groups or places) and report which hold and which don't.",
        ),
        Role(
            "error_analyst",
            "error analyst",
            "Look for failures: confusion between classes, the distribution of errors, subgroups and periods in "
            "which results break down, and what these have in common.",
        ),
    ),
)

WRITING = Team(
    "writing",
    "final_paper",
    ("Abstract", "Introduction", "Dataset description", "Methods", "Results", "Evaluation", "Conclusion"),
    (
        Role(
            "lead_author",
            "lead author",
            "Plan the paper and write `final_paper`: one coherent text in seven sections that brings together "
            "what all teams found, with their numbers, and says which team found what.",
        ),
        Role(
            "methods_writer",
            "methods writer",
            "Draft the dataset description, methods and evaluation sections from the artifacts of the other teams"
            " and check that every number in the paper stands in an artifact.",
        ),
        Role(
            "results_writer",
            "results writer",
            "Draft results, discussion and conclusion: the findings with their numbers as the eval team confirmed"
            " them, what they mean, and where they end.",
        ),
    ),
    has_code=False,
)

TEAMS: dict[str, Team] = {team.name: team for team in (DATA, MODEL, EVAL, WRITING)}
"""The teams in the order in which they work."""

SOLO = Team(
    "solo",
    WRITING.artifact,
    WRITING.sections,
    (
        Role(
            "researcher",
            "researcher",
            "Examine and repair the data, choose, fit and compare models, test what they say on data that they "
            "have not seen, and write `final_paper`: one coherent text in seven sections that brings together what you "
            "found, with its numbers.",
        ),
    ),
    alone=True,
)
"""One agent in the place of all teams: what their results are compared with (our own design, no part of the paper)."""

EVERY_TEAM = {**TEAMS, SOLO.name: SOLO}
"""The teams of the lab, and the one agent in their place."""

EXTRA_ARTIFACTS = {"experiment_results": "model"}
"""Artifacts besides each team's own that belong to one team."""

REPORT = WRITING.artifact
"""The artifact that the judges read."""
