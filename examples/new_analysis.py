"""An analysis in one file: how unequal are the payoffs of a group?

It says that it is about games (`kind`), so it appears at once under `labmates analyze`, in every report of games and on
the page of every study of games in the viewer; the experiment itself names none of its analyses.
"""

from pathlib import Path

from pydantic import Field

import labmates
from labmates.stats.tables import Table
from labmates.workflows.protocol.analysis import ANALYSES, Analysis, Params, Result, Runs


class InequalityParams(Params):
    """Parameters of the analysis; each becomes an option."""

    least: int = Field(2, ge=2, description="Smallest group that counts.")


def inequality(runs: Runs, params: InequalityParams) -> Result:
    """Difference between the highest and the lowest total of a group, as a share of its mean."""
    players = runs.frame("players", "game")
    rows = []
    for run, group in players.groupby("run", sort=False):
        payoffs = group["payoff"]
        if len(payoffs) >= params.least and payoffs.mean():
            share = (payoffs.max() - payoffs.min()) / abs(payoffs.mean())
            rows.append({"run": run, "models": group["models"].iloc[0], "inequality": round(float(share), 3)})
    most = max(rows, key=lambda row: row["inequality"])
    verdict = [f"The most unequal group has {most['models']}: {most['inequality']:.0%} of its mean payoff."]
    return Result([Table("inequality", "Inequality of payoffs", None, rows)], verdict=verdict)


INEQUALITY = Analysis("inequality", "Inequality of payoffs", InequalityParams, inequality, kind="game")

if __name__ == "__main__":
    ANALYSES.register("inequality", INEQUALITY)
    store = "sqlite:///inequality.db"
    for model in ("scripted:fair-share", "scripted:random"):
        labmates.run("game", game="public-goods", model=model, store=store)
    print(*labmates.analyze("inequality", store=store).verdict)
    page = labmates.report(kind="game", out=Path("report.html"), store=store).read_text()
    print("The report shows it." if "Inequality of payoffs" in page else "The report lacks it.")
