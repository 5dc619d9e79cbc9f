"""Judges at work on a run: which of them still have to score it, and what they say as events of the run.

Used when a run ends, and when it is judged again later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.budgets.budget import CallMeter, LostAttempt
from labmates.budgets.ledger import UNLIMITED, InsufficientFundsError, Ledger
from labmates.budgets.prices import PriceList
from labmates.budgets.purse import Purse
from labmates.budgets.tokens import Usage, token_bound
from labmates.judges.base import Report, Score
from labmates.judges.interview import TEMPERATURE
from labmates.judges.panel import EVERY_METRIC, MEAN, Panel, SafeJudge, open_judge
from labmates.judges.rubric import PREFIX
from labmates.judges.rubric import VERSION as RUBRIC_VERSION
from labmates.models.conversation import Exchange
from labmates.models.errors import ModelPausedError, UnpaidCallError
from labmates.models.hub import ModelHub
from labmates.models.normalise import resendable
from labmates.models.reply import Reply
from labmates.records.bodies import Bodies
from labmates.records.database import StoreError
from labmates.records.events import Event, LLMCallEvent, ScoreEvent
from labmates.records.recorder import Recorder
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts, study_records
from labmates.util.seeds import derive
from labmates.workflows.calls.call import Call, Speaker, call_event
from labmates.workflows.calls.caller import Caller, reply_limit

NO_REPLY = Reply("", (), ("empty",), resendable("", ()), "unknown", Usage(0, 0), attempts=0)
"""Stands for the reply to a call that brought none."""
WRITE_ATTEMPTS = 5
"""The number of retries of writing a verdict if another process wrote to the same run meanwhile."""


@dataclass(frozen=True)
class Judging:
    """The judges, and the hub of their models; `thinkers` as for `ModelJudge`."""

    panel: Panel
    hub: ModelHub
    thinkers: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class JudgeCall:
    """One model call that a judge made; `reply` is `NO_REPLY` for one that failed and may be billed nevertheless.

    `cost`, `uncertain` and `excess` are in micro-dollars, as in `labmates.budgets.budget.CallMeter`.
    """

    call: Call
    reply: Reply
    cost: int = 0
    uncertain: int = 0
    excess: int = 0

    @property
    def paid(self) -> int:
        """The cost, without that of a reply that came from a cache."""
        return self.uncertain if self.reply.cached else self.cost


class JudgeCaller(Caller):
    """Makes the calls of one judge of one report, which are recorded with its verdict.

    No prompt of a judge is shortened.

    Parameters
    ----------
    ledger
        What pays for the calls.
    prices
        Prices of models of which the provider's are not known.
    seed
        The seeds of the calls derive from it, and from their names.

    Attributes
    ----------
    calls
        The calls that brought a reply, or may be billed without one.
    pause
        The error of a model that takes no calls for hours, once one was asked.
    """

    def __init__(self, hub: ModelHub, *, seed: int, ledger: Ledger, prices: PriceList) -> None:
        super().__init__(
            hub,
            Recorder(None, None),
            seed=seed,
            prices=prices,
            max_output_tokens=0,
            temperature=TEMPERATURE,
            lowers_limit=False,
            insist=False,
        )
        self.calls: list[JudgeCall] = []
        self.pause: ModelPausedError | None = None
        self._purse = Purse(ledger, "judges", {})

    async def ask(
        self, model: str, messages: list[BaseMessage], name: str, limit: int, held: Mapping[str, Any] | None
    ) -> Exchange:
        """Make a call; see `labmates.judges.interview.JudgeCalls`.

        Raises `ModelCallError` if it can't be paid, or brings no reply.
        """
        judge = Speaker("", "judge", model)
        try:
            return await self.call(name, judge, messages, self._purse, name=name, limit=limit, response_format=held)
        except ModelPausedError as error:
            self.pause = error
            raise
        except InsufficientFundsError as error:
            raise UnpaidCallError(
                f"the bound of the run, or the cap of its study, can't pay the judge: {error}"
            ) from None

    def _compacted(self, call: Call) -> Call:
        return call

    def _shortened(self, call: Call) -> None:
        return None

    def _affordable(self, call: Call) -> Call:
        window, model = self._terms_of(call.speaker).window, call.speaker.model
        limit = reply_limit(call.limit, call.inputs, window, model)
        return replace(call, limit=limit, reserved=token_bound(call.messages))

    def _record(self, call: Call, reply: Reply | None, meter: CallMeter) -> None:
        if reply is not None or meter.cost:
            self.calls.append(JudgeCall(call, reply or NO_REPLY, meter.cost, meter.uncertain, meter.excess))

    def _lost(self, call: Call, attempt: LostAttempt) -> None:
        """Record nothing: the meter counts it."""


@dataclass
class Assessment:
    """One judge that is to score one report, and its scores once it has."""

    judge: SafeJudge
    caller: JudgeCaller
    scores: Sequence[Score] = ()

    async def hold(self, report: Report) -> None:
        """Let the judge score the report."""
        self.scores = await self.judge.score(report)

    def events(self, bodies: Bodies) -> list[Event]:
        """The verdict as events: the calls with what they cost, then the scores; none if a model is paused."""
        name, version = self.judge.name, self.judge.version
        calls = [judge_call_event(name, version, call, bodies) for call in self.caller.calls]
        return [*calls, *([] if self.caller.pause else map(score_event, self.scores))]

    def check_pause(self) -> None:
        """Raise `ModelPausedError` if a model took no call, so that the report is judged once it does."""
        if self.caller.pause is not None:
            raise self.caller.pause


def assessments(
    judging: Judging,
    *,
    seed: int,
    ledger: Ledger,
    prices: PriceList,
    had: Sequence[ScoreEvent] = (),
    again: bool = False,
) -> list[Assessment]:
    """One assessment for each judge of the panel that has not scored the run yet.

    Parameters
    ----------
    seed
        Seed of the run.
    ledger, prices
        What pays for the judges' calls, and what they cost where the provider's price is not known.
    had
        Scores that the run has already.
    again
        Let all of them judge, those that have done so too.
    """
    open_assessments = []
    for name in judging.panel.names:
        caller = JudgeCaller(judging.hub, seed=derive(seed, "judge", name), ledger=ledger, prices=prices)
        judge = open_judge(name, judging.panel, caller.ask, judging.thinkers)
        if again or not has_judged(judge.name, judge.version, had):
            open_assessments.append(Assessment(judge, caller))
    return open_assessments


def has_judged(name: str, version: str, had: Sequence[ScoreEvent]) -> bool:
    """Whether a judge has done its work: it scored, or found that the report can't be scored.

    A judge with an extractor (its version has a plus sign) is done if the plain judge scored the report and could read
    its findings. A judge whose newest attempt at a metric failed is not done.
    """
    plain = version.partition("+")[0]
    done, failed = False, set[str]()
    for score in had:
        unhelped = score.version == plain and score.value is not None and score.details.get("readable", True)
        if score.judge == name and (score.version == version or unhelped):
            done = done or not score.failed
            failed = failed | {score.metric} if score.failed else failed - {score.metric, EVERY_METRIC}
    return done and not failed


def score_event(score: Score) -> ScoreEvent:
    """A score as an event."""
    return ScoreEvent(**{**vars(score), "details": dict(score.details)})


def judge_call_event(judge: str, version: str, made: JudgeCall, bodies: Bodies) -> LLMCallEvent:
    """A judge's model call as an event."""
    return call_event(
        made.call,
        made.reply,
        bodies,
        type="judge_call",
        judge=judge,
        version=version,
        cost=made.paid,
        uncertain=made.uncertain,
        excess=made.excess,
    )


def mean_events(had: Sequence[ScoreEvent]) -> list[ScoreEvent]:
    """New means over model judges, one for each metric that two of them judged.

    Each judge's newest score by the current rubrics counts, an unscored one only if the judge has no other. With fewer
    than two scores, the mean is unscored. A mean that is already in the record is not repeated.
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


def money_left(store: Store, runs: Iterable[RunRecord]) -> dict[str | None, Ledger]:
    """The money that the cap of each run's study leaves for judging, by study; unlimited without a cap or a study."""
    caps = {record.name: record.cap for record in study_records(store)}
    ledgers: dict[str | None, Ledger] = {}
    for study in {run.study for run in runs}:
        cap = caps.get(study or "")
        left = UNLIMITED if cap is None else max(0, cap - study_counts(store, study or "").committed)
        ledgers[study] = Ledger(left)
    return ledgers


def add_events(store: Store, run_id: str, make: Callable[[Sequence[ScoreEvent], Bodies], list[Event]]) -> list[Event]:
    """Add events to a run that has ended, in one transaction, and return them.

    Parameters
    ----------
    make
        Makes the events out of the scores and bodies that the run has; called anew if another process wrote to the run
        between reading and writing.
    """
    attempt = 0
    while True:
        attempt += 1
        events, bodies = store.events(run_id), Bodies(store.bodies(run_id))
        new = make([event for event in events if isinstance(event, ScoreEvent)], bodies)
        if not new:
            return []
        try:
            store.add(run_id, list(enumerate(new, start=len(events))), bodies.take_new())
        except StoreError:
            if attempt == WRITE_ATTEMPTS:
                raise
        else:
            return new
