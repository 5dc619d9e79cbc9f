"""The models of the study that labmates is compared with: 35 open-weight models of ten families.

Source: Kumar, Bharathwaj and Jurgens, "Cooperative Profiles Predict Multi-Agent LLM Team Performance in AI for Science
Workflows" (arXiv:2604.20658), appendices I and J (Tables 8 and 9).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from labmates.errors import unknown_name


@dataclass(frozen=True)
class KnownModel:
    """One model of the study.

    Attributes
    ----------
    name
        The paper's name for it. A name that ends in ``-think`` is the thinking mode of the same weights.
    family
        Family of models.
    size
        Total parameters, in billions.
    thinking
        Whether it reasons before it answers.
    mmlu_pro
        MMLU-Pro accuracy in percent (5-shot, chain of thought); that of the weights, whatever the mode.
    ifeval
        IFEval strict prompt accuracy in percent.
    source
        Where the paper has the two figures from; "the paper" stands for its own measurement.
    """

    name: str
    family: str
    size: float
    thinking: bool
    mmlu_pro: float
    ifeval: float
    source: str


@cache
def roster() -> tuple[KnownModel, ...]:
    """Return all models, in the paper's order."""
    table = files("labmates.models").joinpath("roster.csv").read_text(encoding="utf-8")
    return tuple(
        KnownModel(
            name=row["name"],
            family=row["family"],
            size=float(row["size"]),
            thinking=row["thinking"] == "yes",
            mmlu_pro=float(row["mmlu_pro"]),
            ifeval=float(row["ifeval"]),
            source=row["source"],
        )
        for row in csv.DictReader(table.splitlines())
    )


def find_known(name: str) -> KnownModel:
    """Return the model called `name`, whatever provider and organisation stand before (``openai:Qwen/Qwen3-4B``).

    Raises
    ------
    UsageError
        If the study had no such model.
    """
    known = {model.name: model for model in roster()}
    short = name.rpartition("/")[2].rpartition(":")[2].lower()
    if short not in known:
        raise unknown_name("model of the roster", name, known)
    return known[short]
