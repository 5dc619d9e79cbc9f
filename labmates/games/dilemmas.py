"""Registry of social dilemmas from payoff tables; other packages add theirs through the group ``labmates.dilemmas``."""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files

from labmates.errors import UsageError
from labmates.games.payoff_table import PayoffTable, read_table
from labmates.registry import Registry


@cache
def _packaged(name: str) -> PayoffTable:
    text = files("labmates.games").joinpath("tables", f"{name}.yaml").read_text(encoding="utf-8")
    return read_table(text, f"the dilemma '{name}'")


prisoners = partial(_packaged, "prisoners")
public_goods = partial(_packaged, "public-goods")
travellers = partial(_packaged, "travellers")
trust = partial(_packaged, "trust")
stag_hunt = partial(_packaged, "stag-hunt")
matching_pennies = partial(_packaged, "matching-pennies")

DILEMMAS: Registry[object] = Registry("dilemma", "labmates.dilemmas")
"""Every dilemma by name; an entry is a `PayoffTable`, or a function without parameters that returns one."""


def get_dilemma(name: str) -> PayoffTable:
    """The payoff table of the dilemma called `name`; a `UsageError` if it is unknown or invalid."""
    with DILEMMAS.guarded(name, "can't be used"):
        dilemma = DILEMMAS.get(name)
        table = dilemma() if callable(dilemma) else dilemma
        if not isinstance(table, PayoffTable):
            raise UsageError(f"a dilemma must be a labmates.games.payoff_table.PayoffTable, not {table!r}")
        return table
