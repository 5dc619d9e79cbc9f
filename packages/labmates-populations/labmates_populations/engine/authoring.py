"""Prompts for strategies, and the parsing of the replies."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labmates.errors import telling
from labmates.models.objects import UnusableAnswerError
from labmates_populations.engine.kernel.interface import DESCRIPTIONS
from labmates_populations.engine.library import CLASS, StrategyFile, provenance_of, read_text, write_provenance
from labmates_populations.repeated import RepeatedGame, make_repeated

HEADER = """import math
import random

import numpy as np

from labmates.strategies import Action, BaseStrategy, C, D, PlayerHistory
from labmates.strategies import CollectiveRiskDescription, CommonPoolDescription, PublicGoodsDescription"""
"""The imports of a file."""

_MEANINGS = {
    "k": {"public-goods": "k", "collective-risk": "k (the benefit)"},
    "m": {"collective-risk": "m (the cooperators that it takes)"},
    "capacity": {"common-pool": "capacity (K)"},
}
_ARGUMENTS = {False: "history: PlayerHistory", True: "history: PlayerHistory, stock: float"}
"""Arguments of a decision based on counts, in games without and with a stock."""
_FENCED = re.compile(r"```[ \t]*(?:python|py)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_OUTSIDE = re.compile(r"^(?:def |async |class |if |for |while |with |try:|@|\w[\w.]*\s*[:+\-*/]?=|\w+\()", re.MULTILINE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def task_of(game: str, *, individual: bool = False) -> dict[str, str]:
    """The interface of a game, for the prompt of an implementation.

    `individual`: strategies see each opponent's actions and payoffs, in the paper's form.
    """
    made: RepeatedGame = make_repeated(game, 4)
    own = [_MEANINGS[name][game] for name in made.parameters]
    stocked = made.start(1) is not None
    arguments, stock = ("state, history", "state.current_stock") if individual else (_ARGUMENTS[stocked], "stock")
    return {
        "header": HEADER,
        "description_class": DESCRIPTIONS[game].__name__,
        "parameters": ", ".join(["n_players", "n_rounds", *own]),
        "arguments": arguments,
        "stock": f"- `{stock}` is what is in the pool now.\n" if stocked else "",
    }


def written_class(reply: str, name: str) -> str:
    """The class in a reply: in its last block of code, or in the whole reply.

    Raises
    ------
    UnusableAnswerError
        If there is no class of this name, or there is code outside it.
    """
    blocks = _FENCED.findall(reply) or [reply]
    code = next((block for block in reversed(blocks) if f"class {name}" in block), None)
    if code is None:
        raise UnusableAnswerError(f"the reply has no class {name}")
    known = set(filter(None, HEADER.splitlines()))
    lines = [line for line in code.splitlines() if line.rstrip() not in known]
    code = "\n".join(lines).strip("\n")
    start = re.search(rf"^class {name}\b", code, re.MULTILINE)
    if start is None:
        raise UnusableAnswerError(f"the class {name} does not stand by itself")
    body = code[start.end() :]
    before = [line for line in code[: start.start()].splitlines() if line.strip() and not line.startswith("#")]
    if before or _OUTSIDE.search(body) or re.search(r"^(?:import|from) ", body, re.MULTILINE):
        raise UnusableAnswerError("the reply has code outside the class; put everything into the class")
    return code[start.start() :].rstrip() + "\n"


def source_of(code: str) -> str:
    """A file with one class."""
    return f"{HEADER}\n\n\n{code}"


def model_file(library: Path, game: str, model: str) -> StrategyFile:
    """A library's file of a model's strategies."""
    stem = _UNSAFE.sub("-", model).strip("-.") or "model"
    return StrategyFile(library / game / f"{stem}.py", game, stem)


def add_to_library(
    library: Path, game: str, model: str, written: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[StrategyFile, int]:
    """Add strategies to a model's file, with their provenance; return the file and the number of new strategies.

    Parameters
    ----------
    written
        Code, and its provenance with ``run``, ``attitude`` and ``class``. Known strategies are skipped; new classes
        are numbered consecutively by attitude.

    Raises
    ------
    UsageError
        If the library can't be read or written.
    """
    file = model_file(library, game, model)
    lines = _lines(file)
    known = {(line.get("run"), line.get("written_as")) for line in lines}
    text = read_text(file.path) if file.path.exists() else f"{HEADER}\n"
    added = 0
    for code, provenance in written:
        old, attitude = str(provenance["class"]), str(provenance["attitude"])
        if (provenance.get("run"), old) in known:
            continue
        number = max((int(n) for other, n in CLASS.findall(text) if other.lower() == attitude), default=0) + 1
        name = f"Strategy_{attitude.upper()}_{number}"
        text += "\n\n" + re.sub(rf"\b{old}\b", name, code)
        digest = hashlib.sha256(code.encode()).hexdigest()
        lines.append({**provenance, "class": name, "written_as": old, "number": number, "sha256": digest})
        added += 1
    if not added:
        return file, 0
    with telling(f"can't write to '{library}'"):
        file.path.parent.mkdir(parents=True, exist_ok=True)
        # The provenance first: a surplus line is rewritten later, but a strategy without provenance stays unexplained.
        write_provenance(file, lines)
        new = file.path.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(file.path)
    return file, added


def _lines(file: StrategyFile) -> list[dict[str, Any]]:
    """The provenance of the classes that are present in a file."""
    text = read_text(file.path) if file.path.exists() else ""
    lines = provenance_of(file).items()
    return [line for name, line in lines if re.search(rf"^class {re.escape(name)}\b", text, re.MULTILINE)]
