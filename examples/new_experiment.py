"""An experiment in one file, with an analysis: whoever guesses nearest to two thirds of the mean wins.

The viewer shows its runs, a report its metrics and the analysis, `labmates run` takes its parameters as options. In a
package of yours, entry points take the place of the calls of `register`.
"""

from statistics import fmean
from typing import ClassVar

from pydantic import Field

import labmates
from labmates.agents.decisions import Form
from labmates.condition_types import Kind
from labmates.models.catalog import ModelRef
from labmates.models.orders import Order
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.records.events import DecisionEvent, PayoffEvent
from labmates.stats.domains import SHARE, Domain
from labmates.stats.figures import Drawing, new_figure
from labmates.stats.tables import Table
from labmates.workflows.calls.call import Speaker
from labmates.workflows.play import playing
from labmates.workflows.protocol.analysis import ANALYSES, Analysis, Params, Result, Runs
from labmates.workflows.protocol.experiment import EXPERIMENTS, Experiment, Metric, Outcome
from labmates.workflows.protocol.services import Services
from labmates_author.experiments import check_experiment


class ContestCondition(playing.PlayCondition):
    """Players guess numbers from 0 to 100; whoever is nearest to two thirds of the mean wins the round."""

    kind: ClassVar[str] = "contest"
    model: ModelRef = Field(description="The model of all players.")
    players: int = Field(3, ge=2, le=20, description="Players.")
    rounds: int = Field(4, ge=1, le=50, description="Rounds.")

    def models(self) -> list[str]:
        """The model."""
        return [self.model]


class Guess(Form):
    """A player's decision."""

    guess: int = Field(ge=0, le=100)


async def contest(condition: ContestCondition, services: Services) -> Outcome:
    """Let everybody guess, round by round; all hear the last target."""
    table, target, guesses = playing.Table(condition, services), 50.0, list[int]()
    players = [Speaker("", f"player {place + 1}", condition.model) for place in range(condition.players)]
    for number in range(1, condition.rounds + 1):
        text = f'Guess two thirds of the mean guess. The last target was {target}. Reply with {{"guess": 0 to 100}}.'
        order = [Order("contest", {"target": target}, text).human()]
        asked = [table.decide(f"{number}/{who.agent}", who, order, Guess, name="guess") for who in players]
        decided = [form.guess if form else 50 for form in await playing.together(asked)]
        target, guesses = round(2 / 3 * fmean(decided), 1), [*guesses, *decided]
        nearest = min(abs(guess - target) for guess in decided)
        for who, guess in zip(players, decided, strict=True):
            where = {"step": f"{number}/{who.agent}/guess", "agent": who.agent, "round": number}
            services.recorder.once(DecisionEvent(**where, stage="guess", decision={"guess": guess}))
        points = {who.agent: float(abs(guess - target) == nearest) for who, guess in zip(players, decided, strict=True)}
        services.recorder.once(PayoffEvent(step=f"{number}/points", round=number, payoffs=points))
    return Outcome("completed", {"guess": fmean(guesses), "zeros": guesses.count(0) / len(guesses)})


def guesses(runs: Runs, _params: Params) -> Result:
    """Average guesses by model and round."""
    decided = runs.frame("decisions", "contest").rename(columns={"decision.guess": "guess"})
    means = decided.groupby(["models", "round"], as_index=False)["guess"].mean()
    figure, [axes] = new_figure(5, 3)
    for model, rounds in means.groupby("models"):
        axes.plot(rounds["round"], rounds["guess"], marker="o", label=model)
    axes.legend()
    drawing = Drawing("guesses", "Guesses by round", "Mean guesses fall from round to round.", lambda: figure)
    return Result([Table("guesses", "Mean guesses", None, means)], [drawing], ["Who thinks further guesses less."])


METRICS = (Metric("guess", "mean guess", Domain(0, 100), "lower"), Metric("zeros", "share of guesses of 0", SHARE))
CONTEST = Experiment.plain("contest", ContestCondition, contest, METRICS)
GUESSES = Analysis("guesses", "Guesses", Params, guesses, kind="contest", has_figures=True)


class Thinker(ScriptedModel):
    """Guesses two thirds of the last target."""

    baseline = "thinker"

    def compose(self, heard: Heard) -> Draft:
        """Guess."""
        return Draft(f'{{"guess": {int(2 / 3 * heard.facts["target"])}}}')


if __name__ == "__main__":
    EXPERIMENTS.register("contest", CONTEST)
    ANALYSES.register("guesses", GUESSES)
    BASELINES.register("thinker", Thinker)
    print(f"Problems: {check_experiment('contest', model='scripted:thinker') or 'none'}")
    STORE = "sqlite:///contest.db"
    labmates.run(Kind("contest"), model="scripted:thinker", replicates=2, store=STORE)
    print(labmates.analyze("guesses", store=STORE).frame().to_string(index=False))
    print(f"Written to {labmates.report(kind='contest', out='contest.html', store=STORE)}")
