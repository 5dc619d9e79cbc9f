"""What is set aside for the artifacts: who may draw on it, what is skipped when the pool is small, what is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.agents.organisation_files import BUILT_IN
from labmates.budgets.tokens import text_of
from labmates.errors import UsageError
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.events import ArtifactEvent, ChargeEvent, LLMCallEvent, PhaseEvent
from labmates.records.run import RunRecord
from labmates.studies.replay import replay
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.calls.stop_signal import StopSignal
from labmates.workflows.protocol.experiment import make_condition
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.reserve import likely_cost, set_aside, share_of
from labmates.workflows.science.lab.state import first_state, new_phase
from labmates.workflows.science.steps.running import payable
from tests.support.puppet import agent_of, dutiful, puppet, step_of
from tests.support.story import story
from tests.support.teams import PIPELINE, TEAMS
from tests.workflows.science.test_science_lab import Lab

SETTINGS = RunSettings(sandbox="unsafe-local")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def condition(**values: Any) -> ScienceCondition:
    return ScienceCondition(**{"task": "anomaly", "model": "scripted:silent", **values})


def greedy(heard: Heard) -> Draft:
    """Work as long as the pool pays, with much talk; write what is asked for."""
    if step_of(heard) == "work":
        return Draft("word " * 400, (call("list_artifacts"),))
    return dutiful(heard)


def spent_on(lab: Lab, run: RunRecord, *kinds: str) -> int:
    charges = [event for event in lab.events(run) if isinstance(event, ChargeEvent)]
    return sum(event.amount for event in charges if any(f"/{kind}/" in event.step for kind in kinds))


def written(lab: Lab, run: RunRecord) -> list[str]:
    return list(dict.fromkeys(event.name for event in lab.events(run) if isinstance(event, ArtifactEvent)))


def phases(lab: Lab, run: RunRecord, status: str) -> list[str]:
    return [event.team for event in lab.events(run) if isinstance(event, PhaseEvent) and event.status == status]


def test_by_default_each_artifacts_likely_cost_is_set_aside_at_its_models_price() -> None:
    prices = {"models": {"scripted:diligent": {"input": "5", "output": "30"}}}
    dear = condition(model_for={"writing": "scripted:diligent"}, prices=prices)
    plain = condition()
    assert share_of(dear, TEAMS["writing"]) == 10 * share_of(plain, TEAMS["writing"])
    assert share_of(dear, TEAMS["data"]) == share_of(plain, TEAMS["data"]) == likely_cost(plain, TEAMS["data"])
    agenda = first_state(plain.organisation)["agenda"]
    assert set_aside(plain, agenda) == 45_000
    assert set_aside(plain, agenda[3:]) == 15_000
    assert set_aside(plain, [new_phase(PIPELINE, PIPELINE.place("data"), 1), *agenda]) == 45_000 + 7_500
    assert set_aside(condition(solo=True), first_state(condition(solo=True).organisation)["agenda"]) == 15_000


@given(st.integers(0, 2_000_000), st.sampled_from(BUILT_IN))
def test_an_amount_of_ones_own_is_shared_among_the_artifacts(micro: int, organisation: str) -> None:
    asked = condition(reserve=f"{micro / 1e6:.6f}", budget="2", organisation=organisation)
    whole = set_aside(asked, first_state(asked.organisation)["agenda"])
    assert micro - len(asked.teams) * 3 < whole <= micro


@given(st.integers(1, 1_000_000), st.sampled_from(BUILT_IN))
def test_by_default_half_of_a_small_pool_is_left_for_the_work(micro: int, organisation: str) -> None:
    small, large = (condition(budget=budget, organisation=organisation) for budget in (f"{micro / 1e6:.6f}", "1"))
    aside, enough = (set_aside(one, first_state(one.organisation)["agenda"]) for one in (small, large))
    assert min(micro // 2, enough) - 4 < aside <= min(micro // 2, enough)


@given(st.lists(st.integers(0, 60), max_size=6), st.integers(0, 150), st.integers(0, 60))
def test_as_many_are_paid_as_equal_shares_can_pay(costs: list[int], funds: int, limit: int) -> None:
    named = {str(number): cost for number, cost in enumerate(costs)}
    able = payable(named, funds, {"0": limit})

    def pays(seat: str, number: int) -> bool:
        return named[seat] <= min(funds // number, limit if seat == "0" else funds)

    assert all(pays(seat, len(able)) for seat in able)
    assert not any(sum(pays(seat, more) for seat in named) >= more for more in range(len(able) + 1, len(named) + 1))


def test_where_nothing_costs_anything_the_amount_is_shared_equally() -> None:
    free = condition(reserve="0.4", prices={"default": {"input": "0", "output": "0"}})
    assert [share_of(free, team) for team in free.teams] == [100_000] * 4
    assert share_of(condition(prices={"default": {"input": "0", "output": "0"}}), TEAMS["data"]) == 0


def test_the_reserve_is_part_of_the_condition() -> None:
    assert len({condition().key, condition(reserve="0").key, condition(reserve="0.1").key}) == 3
    stored = condition(reserve="0.1").model_dump(mode="json")
    assert ScienceCondition.model_validate(stored) == condition(reserve="0.1")


@pytest.mark.parametrize(
    ("value", "says"),
    [("2", r"reserve: more than the pool of \$1 "), ("-1", "reserve"), ("much", "reserve: 'much' is")],
)
def test_a_reserve_that_can_not_be_is_refused(value: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_condition("science", {"task": "anomaly", "model": "scripted:silent", "reserve": value})


@pytest.mark.parametrize("solo", [False, True])
async def test_work_never_draws_on_what_is_set_aside(lab: Lab, solo: bool) -> None:
    run = await lab.play(greedy, budget="0.09", solo=solo)
    aside = 15_000 if solo else 45_000
    used = spent_on(lab, run, "plan", "work", "deliberation")
    # The paper's expected length is in proportion to what there was to read before the last reply.
    *_, last = [e.input_tokens for e in lab.events(run) if isinstance(e, LLMCallEvent) and "/work/" in e.step]
    likely = 0.5 * last + 3 * min(3_000, 3_000 * last // 12_000)
    assert 0.6 * (90_000 - aside) < used <= 90_000 - (likely if solo else 0)
    assert "final_paper" in written(lab, run)
    if not solo:
        # The data team could draw on nothing that is set aside for later artifacts, or that its own takes.
        data = [e for e in lab.events(run) if isinstance(e, ChargeEvent) and e.team == "data"]
        assert sum(e.amount for e in data) <= 90_000 - aside + 7_500
        assert "dataset_description" in written(lab, run)


@pytest.mark.parametrize("budget", ["0.004", "0.01", "0.016", "0.027", "0.038", "0.05", "0.07"])
async def test_the_paper_goes_first_then_the_artifacts_from_the_last_to_the_first(lab: Lab, budget: str) -> None:
    run = await lab.play(greedy, budget=budget)
    names = [team.artifact for team in TEAMS.values()]
    assert "final_paper" in written(lab, run)
    assert sum(e.amount for e in lab.events(run) if isinstance(e, ChargeEvent)) <= round(float(budget) * 1e6)
    missing = [name for name in names if name not in written(lab, run)]
    skipped = [TEAMS[team].artifact for team in phases(lab, run, "skipped")]
    assert missing == skipped
    if float(budget) < 0.015:
        assert missing == names[:3]
    if float(budget) > 0.045:  # no plan is bought that nobody could be paid to carry out
        assert len(missing) <= 1
    assert run.metrics["artifacts_missing"] == len(missing)


async def test_a_skipped_phase_makes_no_call_and_is_shown(lab: Lab) -> None:
    run = await lab.play(dutiful, budget="0.004")
    assert run.status == "exhausted"
    assert phases(lab, run, "skipped") == ["data", "model", "eval"]
    assert phases(lab, run, "ended") == ["writing"]
    calls = [event.step for event in lab.events(run) if isinstance(event, LLMCallEvent)]
    assert {step.split("/")[0] for step in calls} == {"writing"}


async def test_with_a_reserve_of_zero_the_run_ends_with_the_first_unpaid_call(lab: Lab) -> None:
    run = await lab.play(greedy, budget="0.03", reserve="0")
    assert run.status == "exhausted"
    assert "final_paper" not in written(lab, run)
    assert phases(lab, run, "skipped") == []
    assert phases(lab, run, "started")[-1] != "writing"


async def test_long_material_is_cut_until_the_paper_can_be_paid(lab: Lab) -> None:
    orders: list[str] = []

    def play(heard: Heard) -> Draft:
        if "`final_paper`" in step_of(heard):
            orders.append(text_of(heard.messages[-1].content))
        elif step_of(heard).startswith("write"):
            name = step_of(heard).split("`")[1]
            text = " ".join(f"{name}{number}" for number in range(1_500))
            return Draft("", (call("write_artifact", name=name, content=text),))
        return dutiful(heard)

    long, short = await lab.play(play, budget="1"), await lab.play(play, budget="0.08")
    assert [written(lab, run)[-1] for run in (long, short)] == ["final_paper"] * 2
    assert len(orders[1]) < 0.7 * len(orders[0])
    for order in orders:
        assert "characters left out]" in order
        assert "## Material: artifacts" in order
        assert int(re.findall(r"at most (\d+) tokens in this reply", order)[0]) >= 256


@pytest.mark.parametrize("visibility", ["full", "team", "hidden"])
async def test_only_who_sees_the_pool_is_told_what_is_set_aside(lab: Lab, visibility: str) -> None:
    texts: dict[str, str] = {}

    def play(heard: Heard) -> Draft:
        texts.setdefault(agent_of(heard), "")
        texts[agent_of(heard)] += "\n".join(text_of(message.content) for message in heard.messages)
        return dutiful(heard)

    await lab.play(play, visibility=visibility)
    everything = "".join(texts.values())
    assert ("$0.0450 of it set aside for artifacts" in texts["data_lead"]) == (visibility == "full")
    assert ("set aside" in everything) == (visibility == "full")


async def test_with_a_reserve_of_zero_nothing_is_told_of_one(lab: Lab) -> None:
    texts: list[str] = []

    def play(heard: Heard) -> Draft:
        texts.extend(text_of(message.content) for message in heard.messages)
        return dutiful(heard)

    await lab.play(play, reserve="0")
    assert not [text for text in texts if "set aside" in text]


async def test_an_author_for_whom_money_is_set_aside_is_not_hurried(lab: Lab) -> None:
    orders: dict[str, str] = {}

    def play(heard: Heard) -> Draft:
        if step_of(heard).startswith("write"):
            orders[step_of(heard)] = text_of(heard.messages[-1].content)
        return greedy(heard)

    await lab.play(play, budget="0.09")
    assert len(orders) == 4
    assert not [order for order in orders.values() if "The pool is" in order]


@pytest.mark.parametrize(
    ("organisation", "budget"),
    [("pipeline", "0.02"), ("pipeline", "0.06"), ("independent", "0.009"), ("centralised", "0.03")],
)
async def test_a_small_pool_is_spent_alike_each_time_and_is_replayed_exactly(
    lab: Lab, organisation: str, budget: str
) -> None:
    first, again = [await lab.play(greedy, organisation=organisation, budget=budget) for _ in range(2)]
    assert story(lab.store, first.id) == story(lab.store, again.id)
    assert (await replay(lab.store, first)).differences == ()


@pytest.mark.parametrize(
    "dies_at",
    [8, *(pytest.param(other, marks=pytest.mark.slow("tests/workflows/science/test_reserve.py")) for other in (2, 15))],
)
async def test_a_stopped_run_goes_on_with_the_same_money_to_the_same_end(lab: Lab, dies_at: int) -> None:
    expected = await lab.play(greedy, budget="0.08")
    stop_signal, calls = StopSignal(), 0

    def stopping(heard: Heard) -> Draft:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            stop_signal.pull()
        return greedy(heard)

    with puppet(stopping) as model:
        words = {"task": "anomaly", "difficulty": "easy", "model": model, "budget": "0.08"}
        runs = new_runs(make_condition("science", words), seed=0, replicates=1, settings=SETTINGS)
        [stopped] = await Session(lab.store, SETTINGS, stop_signal=stop_signal).execute(runs)
        assert stopped.status == "interrupted"
        [ended] = await Session(lab.store, SETTINGS).execute([lab.store.run(stopped.id)])
    assert story(lab.store, ended.id) == story(lab.store, expected.id)
    assert (ended.budget, ended.status) == (expected.budget, expected.status)
