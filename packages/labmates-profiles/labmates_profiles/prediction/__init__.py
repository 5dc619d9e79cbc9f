"""Do dispositions in games predict outcomes in the lab?"""

from __future__ import annotations

from typing import Final, Literal, get_args

Form = Literal["paper", "robust", "correlated"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
