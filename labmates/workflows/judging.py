"""Judges at work on a run: which of them still have to score it, and what they say as events of the run.

Used when a run ends, and when it is judged again later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from labmates.agents.transcript import message_to_data
from labmates.budgets.ledger import InsufficientFundsError, Ledger
from labmates.budgets.meter import CallMeter
from labmates.budgets.prices import PriceList
from labmates.budgets.purse import Purse
from labmates.judges.base import Report, Score
from labmates.judges.interview import Interviewer, JudgeCall, Meters
from labmates.judges.panel import EVERY_METRIC, MEAN, Panel, SafeJudge, open_judge
from labmates.judges.rubric import PREFIX
from labmates.judges.rubric import VERSION as RUBRIC_VERSION
from labmates.models.errors import UnpaidCallError
from labmates.models.hub import ModelHub
from labmates.records.bodies import Bodies
from labmates.records.events import Event, JudgeCallEvent, ScoreEvent
from labmates.seeds import derive


@dataclass(frozen=True)
class Judging:
    """Who judges, and through which hub models are asked for it; `thinkers` as for `Interviewer`."""

    panel: Panel
    hub: ModelHub
    thinkers: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Verdict:
    """What one judge says of one report, and the model calls that it made for it."""

    judge: str
    version: str
    scores: tuple[Score, ...]
    calls: tuple[JudgeCall, ...]


@dataclass(frozen=True)
class Hearing:
    """One judge that is to score one report."""

    judge: SafeJudge
    calls: list[JudgeCall] = field(default_factory=list)

    async def hold(self, report: Report) -> Verdict:
        """Let the judge score the report."""
        scores = await self.judge.score(report)
        return Verdict(self.judge.name, self.judge.version, tuple(scores), tuple(self.calls))


def hearings(
    judging: Judging,
    *,
    seed: int,
    meters: Meters,
    had: Sequence[ScoreEvent] = (),
    again: bool = False,
) -> list[Hearing]:
    """Return one hearing for each judge of the panel that has not scored the run yet.

    Parameters
    ----------
    seed
        Seed of the run.
    meters
        Make what pays for the judges' calls; see `judges_meters`.
    had
        Scores that the run has already.
    again
        Let all of them judge, those that have done so too.
    """
    found = []
    for name in judging.panel.names:
        calls: list[JudgeCall] = []
        interviewer = Interviewer(
            judging.hub,
            seed=derive(seed, "judge", name),
            log=calls.append,
            thinkers=judging.thinkers,
            meters=meters,
        )
        judge = open_judge(name, judging.panel, interviewer)
        if again or not has_judged(judge.name, judge.version, had):
            found.append(Hearing(judge, calls))
    return found


def judges_meters(ledger: Ledger, prices: PriceList, hub: ModelHub) -> Meters:
    """Return what makes the meters of judges' calls, which draw on `ledger`, at the providers' prices where known."""
    purse = Purse(ledger, "judges", {})

    def meter(model: str, input_tokens: int, most_tokens: int, output_tokens: int) -> CallMeter:
        price = hub.price(model) or prices.of(model)
        return _JudgeMeter(purse, price, "judge", input_tokens, output_tokens, reserved=most_tokens)

    return meter


class _JudgeMeter(CallMeter):
    """A meter that tells judges in their own terms that there is no money."""

    def begin(self) -> None:
        try:
            super().begin()
        except InsufficientFundsError as error:
            raise UnpaidCallError(
                f"the bound of the run, or the cap of its study, can't pay the judge: {error}"
            ) from None


def has_judged(name: str, version: str, had: Sequence[ScoreEvent]) -> bool:
    """Tell whether a judge has done its work: it scored, or found that the report can't be scored.

    A judge whose version names a help (after a plus sign) needs it only where the plain judge could not score, or could
    read no findings. One that failed at a metric, and has not scored it since, has not done its work.
    """
    plain = version.partition("+")[0]
    done, failed = False, set[str]()
    for score in had:
        unhelped = score.version == plain and score.value is not None and score.details.get("readable", True)
        if score.judge == name and (score.version == version or unhelped):
            done = done or not score.failed
            failed = failed | {score.metric} if score.failed else failed - {score.metric, EVERY_METRIC}
    return done and not failed


def verdict_events(verdict: Verdict, bodies: Bodies) -> list[Event]:
    """Return a verdict as events: the calls with what they cost, then the scores."""
    return [
        *(call_event(verdict.judge, verdict.version, call, bodies) for call in verdict.calls),
        *(score_event(score) for score in verdict.scores),
    ]


def score_event(score: Score) -> ScoreEvent:
    """Return a score as an event."""
    return ScoreEvent(
        judge=score.judge,
        version=score.version,
        metric=score.metric,
        value=score.value,
        reason=score.reason,
        details=dict(score.details),
        failed=score.failed,
    )


def call_event(judge: str, version: str, call: JudgeCall, bodies: Bodies) -> JudgeCallEvent:
    """Return a judge's model call as an event."""
    reply, usage = call.reply, call.reply.usage
    return JudgeCallEvent(
        judge=judge,
        version=version,
        model=call.model,
        messages=[bodies.keep(message_to_data(message)) for message in call.messages],
        reply=bodies.keep(message_to_data(reply.message)),
        finish=reply.finish,
        faults=list(reply.faults),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        estimated=usage.estimated,
        cost=call.uncertain if reply.cached else call.cost,
        uncertain=call.uncertain,
        excess=call.excess,
        attempts=reply.attempts,
        seconds=round(reply.seconds, 4),
        seed=call.seed,
        cached=reply.cached,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )


def mean_events(had: Sequence[ScoreEvent]) -> list[ScoreEvent]:
    """Return the means over model judges that have to be recorded anew, one for each metric that two of them judged.

    Of each judge the newest score by the present rubrics counts, unscored ones only where there is no other. Where
    fewer than two scored, the mean is unscored. A mean that stands in the record already is not repeated.
    """
    newest: dict[str, dict[str, ScoreEvent]] = {}
    for score in had:
        if score.judge.startswith(PREFIX) and score.version == RUBRIC_VERSION:
            by_judge = newest.setdefault(score.metric, {})
            if score.value is not None or score.judge not in by_judge:
                by_judge[score.judge] = score
    last = {score.metric: score for score in had if score.judge == MEAN}
    means = [_mean(metric, by_judge) for metric, by_judge in newest.items() if len(by_judge) > 1]
    return [one for one in means if one.metric not in last or last[one.metric].details != one.details]


def _mean(metric: str, by_judge: Mapping[str, ScoreEvent]) -> ScoreEvent:
    values = {name: score.value for name, score in sorted(by_judge.items())}
    scored = [value for value in values.values() if value is not None]
    enough = len(scored) > 1
    return ScoreEvent(
        judge=MEAN,
        version=RUBRIC_VERSION,
        metric=metric,
        value=sum(scored) / len(scored) if enough else None,
        reason=f"{'mean of' if enough else 'no mean:'} {len(scored)} of {len(values)} model judges that scored",
        details={"judges": values},
    )
