"""The effort of a profile against that of lab runs: the ratio decides whether screening saves anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.games.prediction.sources import is_lab_run, is_profile_run


@dataclass(frozen=True)
class Effort:
    """The usage of some runs.

    Attributes
    ----------
    tokens
        Input and output of all runs together.
    money
        Of all runs, in micro-dollars: what was paid, or credits at the price lists of the runs' conditions.
    """

    runs: int
    tokens: int
    money: int


@dataclass(frozen=True)
class Ratio:
    """A profile beside lab runs.

    Attributes
    ----------
    paid
        Whether money is what providers bill; else, as for baselines, credits at the price lists of the conditions.
    """

    profile: Effort
    lab: Effort
    paid: bool

    @property
    def in_tokens(self) -> float | None:
        """Lab runs that take as many tokens as the profile; None if a lab run takes none."""
        return _over(self.profile.tokens, self.lab.tokens, self.lab.runs)

    @property
    def in_money(self) -> float | None:
        """Lab runs that cost as much as the profile; None if a lab run costs nothing."""
        return _over(self.profile.money, self.lab.money, self.lab.runs)

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        profile, lab = self.profile, self.lab
        what = "as billed" if self.paid else "in credits at the price lists of the conditions"
        parts = [(self.in_tokens, "tokens"), (self.in_money, "money")]
        as_many = " and ".join(f"{value:.3g} lab runs in {name}" for value, name in parts if value is not None)
        per_run = f"{lab.tokens / lab.runs:,.0f} tokens and {show_dollars(round(lab.money / lab.runs))}"
        return (
            f"Games : lab. The profile ({profile.runs} simulations) took {profile.tokens:,} tokens and "
            f"{show_dollars(profile.money)}, a lab run {per_run} (mean of {lab.runs}; money {what})"
            + (f": the profile takes as much as {as_many}." if as_many else ".")
        )

    def json(self) -> dict[str, Any]:
        """The object as JSON data; money is in dollars."""
        from labmates.budgets.money import format_dollars

        both = {"profile": self.profile, "lab": self.lab}
        efforts = {name: {**asdict(one), "money": format_dollars(one.money)} for name, one in both.items()}
        return {**efforts, "paid": self.paid, "lab_runs_in_tokens": self.in_tokens, "lab_runs_in_money": self.in_money}


def _over(profile: int, lab: int, runs: int) -> float | None:
    return profile * runs / lab if lab else None


def profile_beside_lab(
    store: Store,
    model: str,
    games: Sequence[str],
    *,
    study: str | None = None,
    variant: Mapping[str, str] | None = None,
) -> Ratio | None:
    """Measure what a model's stored profile takes beside the lab runs of the store; None without any of either.

    Parameters
    ----------
    study
        Lab runs of this study alone.
    variant
        Other values of the condition of profiles than the usual ones.
    """
    played = [
        run
        for run in store.runs(kind="game")
        if run.models == [model] and run.condition["game"] in games and is_profile_run(run, variant)
    ]
    worked = [run for run in store.runs(kind="science", study=study) if is_lab_run(run)]
    if not played or not worked:
        return None
    bills = [[parse_dollars(run.bill) for run in runs if run.bill is not None] for runs in (played, worked)]
    # Baselines are free: their usage is shown at list prices.
    paid = all(len(known) == len(runs) and sum(known) for known, runs in zip(bills, (played, worked), strict=True))
    return Ratio(_effort(store, played, paid=paid), _effort(store, worked, paid=paid), paid)


def _effort(store: Store, runs: Iterable[RunRecord], *, paid: bool) -> Effort:
    records = list(runs)
    tokens = sum(run.usage.input_tokens + run.usage.output_tokens for run in records)
    if paid:
        money = sum(parse_dollars(run.bill or "0") for run in records)
    else:
        money = sum(store.costs([run.id for run in records]).values())
    return Effort(len(records), tokens, money)
