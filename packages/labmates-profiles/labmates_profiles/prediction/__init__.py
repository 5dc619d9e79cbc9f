"""Do dispositions in games predict outcomes in the lab?"""

from __future__ import annotations

from typing import Final, Literal, get_args

Form = Literal["paper", "robust", "correlated"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
Rule = Literal["lead", "minimum", "mean", "each"]
"""Whose disposition counts in a team: the lead's, the least cooperative member's, the mean of all seats, or as two
predictors the lead's and the mean of the other seats."""
