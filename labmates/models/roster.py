"""The roster: 35 open-weight models of ten families, from the study that labmates is compared with.

Source: Kumar, Bharathwaj and Jurgens, "Cooperative Profiles Predict Multi-Agent LLM Team Performance in AI for Science
Workflows" (arXiv:2604.20658), appendices I and J (Tables 8 and 9).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from labmates.errors import UsageError
from labmates.util.csv_rows import finite, read_rows
from labmates.util.display_names import short_names

_TRUTHS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True)
class KnownModel:
    """A model of the roster."""

    name: str  # The paper's name. A name that ends in ``-think`` is the thinking mode of the same weights.
    family: str
    size: float  # total parameters, in billions
    thinking: bool  # whether it reasons before it answers
    # MMLU-Pro accuracy of the weights in percent (5-shot, chain of thought), in any mode; None if unknown, as for all
    # models of the paper
    mmlu_pro: float | None
    ifeval: float | None  # IFEval strict prompt accuracy in percent; None if unknown
    source: str  # the paper's source of the two figures; "the paper" for its own measurement
    weights: str = ""  # the model with the same weights; empty if that is `name`
    # The setting that selects the mode (``chat_template_kwargs.enable_thinking=true``); empty for weights with a single
    # mode.
    setting: str = ""
    # Further names on servers, in lower case and without organisation: of the Hugging Face repository, and of Ollama
    # (``qwen3:8b``).
    served: tuple[str, ...] = ()


@cache
def roster() -> tuple[KnownModel, ...]:
    """All models, in the paper's order."""
    table = files("labmates.models").joinpath("roster.csv").read_text(encoding="utf-8")
    return tuple(map(known_model, csv.DictReader(table.splitlines())))


def read_roster(path: Path) -> tuple[KnownModel, ...]:
    """Read further models from a CSV file with the columns of the roster.

    ``name``, ``size`` (billions) and ``thinking`` (yes or no) are required; ``family``, ``mmlu_pro``, ``ifeval`` and
    ``source`` may be empty or missing. Raises `UsageError` if the file can't be read, names a model twice, or a value
    is missing or invalid.
    """
    entries: dict[str, KnownModel] = {}
    for line, row in enumerate(read_rows(path, ("name", "size", "thinking")), start=2):
        try:
            if entries.setdefault(row["name"].lower(), entry := known_model(row)) is not entry:
                raise ValueError("an earlier line has this model")
        except ValueError as error:
            raise UsageError(f"the roster '{path}', line {line} ({row['name']}): {error}") from error
    return tuple(entries.values())


def traits_of(names: Iterable[str], more: Iterable[KnownModel] = ()) -> dict[str, KnownModel]:
    """The known traits of models by name; `more` models take precedence over the roster.

    A name is one of the roster or of servers (`KnownModel.served`). A name of `more` may be whole
    (``openai:Qwen/Qwen3-4B``) or short (``Qwen/Qwen3-4B``, ``qwen3-4b``). The setting of a thinking mode
    (``openai:qwen3-8b?chat_template_kwargs.enable_thinking=true``) selects that mode. Unknown models are left out.
    """
    listed = {model.name.lower(): model for model in more}
    known = {model.name: model for model in roster()} | listed
    served = {name: model.name.lower() for model in (*roster(), *listed.values()) for name in model.served}
    modes = {(model.weights, model.setting): model for model in roster() if model.setting}
    traits = {}
    for name in names:
        plain, _, query = name.partition("?")
        shorts = list(short_names(plain))
        shorts += [served[short] for short in shorts if short in served]
        pairs = [(short, part) for short in shorts for part in query.split("&")]
        mode = next((modes[pair] for pair in pairs if pair in modes), None)
        whole = next((known[short] for short in short_names(name) if query and short in known), None)
        model = whole or mode or next((known[short] for short in shorts if short in known), None)
        if model:
            traits[name] = model
    return traits


def known_model(row: Mapping[str, str]) -> KnownModel:
    """The model in a row of a roster. Raises `ValueError` if a value is missing or invalid."""
    if not row["name"]:
        raise ValueError("a model needs a name")
    if row["thinking"].lower() not in _TRUTHS:
        raise ValueError(f"thinking must be yes or no, not '{row['thinking']}'")
    size = _number(row, "size")
    if size is None or not size > 0:
        raise ValueError("size must be a positive number of billions of parameters")
    return KnownModel(
        name=row["name"],
        family=row.get("family", ""),
        size=size,
        thinking=_TRUTHS[row["thinking"].lower()],
        mmlu_pro=_number(row, "mmlu_pro"),
        ifeval=_number(row, "ifeval"),
        source=row.get("source", ""),
        weights=row.get("weights", ""),
        setting=row.get("setting", ""),
        served=tuple(row.get("served", "").lower().split()),
    )


def _number(row: Mapping[str, str], name: str) -> float | None:
    if not (text := row.get(name, "")):
        return None
    number = finite(text)
    if number is None:
        raise ValueError(f"{name} must be a number, not '{text}'")
    return number
