"""The forms of the model that predicts lab outcomes."""

from __future__ import annotations

from typing import Final, Literal, get_args

Form = Literal["paper", "robust", "correlated"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
