"""What a pool buys; `benchmarks/budget_lines.py` does the same with more pools, in all organisations."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from labmates.agents.organisation_files import BUILT_IN
from labmates.budgets.visibility import Visibility
from labmates.models.options import ModelOptions
from labmates.models.scripted import BASELINES
from labmates.records.events import ChargeEvent, LLMCallEvent, RequestEvent
from labmates.records.recorder import Recorder
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.pool import SandboxPool
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support.budget_lines import false_lines, idle_purchases
from tests.support.openai_server import Answer, Json, OpenAIServer, serve_model
from tests.support.pools import Bought, Remembering, buy, pools, smallest_paper


@pytest.fixture
async def sandbox_pool() -> AsyncIterator[SandboxPool]:
    backend = Remembering(choose_backend("unsafe-local", trusted_code=True).backend)
    yield SandboxPool(backend, 4)
    await backend.close()


async def bought(
    sandbox_pool: SandboxPool, folder: Path, model: str, dollars: str, reserve: str | None = None
) -> Bought:
    condition = ScienceCondition(
        task="anomaly", difficulty="easy", model=f"scripted:{model}", budget=dollars, reserve=reserve
    )
    return (await buy(condition, 1, sandbox_pool, Path(tempfile.mkdtemp(dir=folder))))[0]


async def check_pools(
    sandbox_pool: SandboxPool,
    folder: Path,
    organisation: str,
    amounts: list[int],
    model: str = "diligent",
    visibility: Visibility = "full",
) -> list[Recorder]:
    recorders = []
    for amount in amounts:
        condition = ScienceCondition(
            task="anomaly", difficulty="easy", model=f"scripted:{model}", organisation=organisation,
            budget=f"{amount / 1e6:.6f}", visibility=visibility,
        )  # fmt: skip
        one, recorder = await buy(condition, 0, sandbox_pool, Path(tempfile.mkdtemp(dir=folder)))
        assert one.paper, amount
        assert list(false_lines(recorder, amount)) == []
        assert list(idle_purchases(recorder)) == []
        recorders.append(recorder)
    return recorders


async def test_each_pool_buys_a_paper_and_nothing_without_effect_and_its_lines_are_true(
    sandbox_pool: SandboxPool, tmp_path: Path
) -> None:
    await check_pools(sandbox_pool, tmp_path, "centralised", [20_000, 60_000, 250_000])
    await check_pools(sandbox_pool, tmp_path, "independent", [4_000, 9_000])  # shares of three can pay nothing
    await check_pools(sandbox_pool, tmp_path, "hybrid", [93_823])  # its plan makes the paper longer to read
    await check_pools(sandbox_pool, tmp_path, "pipeline", [20_000])
    # Teams before the paper spend all; at $0.02 no plan can be paid, but work can.
    [_, recorder] = await check_pools(sandbox_pool, tmp_path, "pipeline", [12_000, 20_000], "talkative")
    assert sum(event.amount for event in recorder.events if isinstance(event, ChargeEvent)) >= 0.95 * 20_000


async def test_members_whose_shares_run_short_go_on_with_what_others_left(
    sandbox_pool: SandboxPool, tmp_path: Path
) -> None:
    [recorder] = await check_pools(sandbox_pool, tmp_path, "hybrid", [60_000])
    charges = [event for event in recorder.events if isinstance(event, ChargeEvent)]
    assert 60_000 - sum(charge.amount for charge in charges) < 0.06 * 60_000
    worked = Counter(charge.agent for charge in charges if "/work/" in charge.step)
    assert worked == {"member_1": 3, "member_2": 3, "member_3": 3}


@pytest.mark.parametrize(("visibility", "told"), [("team", True), ("hidden", False)])
async def test_lines_about_the_own_team_are_true_and_hidden_ones_are_not_there(
    sandbox_pool: SandboxPool, tmp_path: Path, visibility: Visibility, told: bool
) -> None:
    [recorder] = await check_pools(sandbox_pool, tmp_path, "pipeline", [60_000], visibility=visibility)
    prompts = [event.messages[-1] for event in recorder.events if isinstance(event, LLMCallEvent)]
    assert any("Budget: " in str(recorder.bodies[number]["content"]) for number in prompts) == told


async def test_a_request_is_bought_only_if_its_work_is(sandbox_pool: SandboxPool, tmp_path: Path) -> None:
    recorders = await check_pools(sandbox_pool, tmp_path, "pipeline", [150_000, 400_000], "wasteful")
    assert any(isinstance(event, RequestEvent) for recorder in recorders for event in recorder.events)


@pytest.mark.parametrize(
    ("organisation", "amount"), [("solo", 16_000), ("solo", 60_000), ("pipeline", 16_000), ("pipeline", 30_000)]
)
async def test_a_pool_behind_a_server_without_a_price_is_told_truly_and_buys_work(
    sandbox_pool: SandboxPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, organisation: str, amount: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    condition = ScienceCondition(
        task="anomaly", difficulty="easy", model="openai:m", organisation=organisation, budget=f"{amount / 1e6:.6f}"
    )
    with OpenAIServer(serve_model(BASELINES.get("talkative")(), latency=0)) as server:
        one, recorder = await buy(condition, 0, sandbox_pool, tmp_path, ModelOptions(base_url=server.base_url))
    assert list(false_lines(recorder, amount)) == []
    assert list(idle_purchases(recorder)) == []
    assert amount - one.spent <= 0.05 * amount


@pytest.mark.parametrize(("organisation", "amount"), [("solo", 20_000), ("pipeline", 50_000), ("independent", 50_000)])
async def test_no_pool_is_overdrawn_behind_a_server_that_reports_as_many_tokens_as_there_can_be(
    sandbox_pool: SandboxPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, organisation: str, amount: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    behave = serve_model(BASELINES.get("diligent")(), latency=0)

    async def expensive(request: Json, number: int) -> Answer:
        tokens = len(json.dumps([request["messages"], request.get("tools")], ensure_ascii=False).encode()) + 1_500
        usage = {"prompt_tokens": tokens, "completion_tokens": request["max_completion_tokens"], "total_tokens": 0}
        return replace(await behave(request, number), usage=usage)

    condition = ScienceCondition(
        task="anomaly", difficulty="easy", model="openai:m", organisation=organisation, budget=f"{amount / 1e6:.6f}"
    )
    with OpenAIServer(expensive) as server:
        _, recorder = await buy(condition, 0, sandbox_pool, tmp_path, ModelOptions(base_url=server.base_url))
    charges = [event for event in recorder.events if isinstance(event, ChargeEvent)]
    assert charges
    assert not any(charge.uncovered for charge in charges)


@pytest.mark.slow("tests/workflows/science/test_pools.py")
@pytest.mark.parametrize("organisation", BUILT_IN)
async def test_pools_from_too_little_to_enough_in_each_organisation(
    sandbox_pool: SandboxPool, tmp_path: Path, organisation: str
) -> None:
    await check_pools(sandbox_pool, tmp_path, organisation, pools(3))


@pytest.mark.slow("tests/workflows/science/test_pools.py")
@pytest.mark.parametrize("organisation", BUILT_IN)
async def test_a_model_that_writes_up_to_its_limit_leaves_nothing_of_a_pool_that_runs_dry(
    sandbox_pool: SandboxPool, tmp_path: Path, organisation: str
) -> None:
    for amount in (5_000, 12_000, 43_000):
        [recorder] = await check_pools(sandbox_pool, tmp_path, organisation, [amount], "talkative")
        charges = [event for event in recorder.events if isinstance(event, ChargeEvent)]
        assert amount - sum(charge.amount for charge in charges) <= 0.01 * amount


@pytest.mark.slow("tests/workflows/science/test_pools.py")
@pytest.mark.parametrize("model", ["diligent", "talkative"])
async def test_each_pool_of_a_sweep_ends_with_a_paper_that_is_no_worse_than_a_smaller_ones(
    sandbox_pool: SandboxPool, tmp_path: Path, model: str
) -> None:
    sweep = [await bought(sandbox_pool, tmp_path, model, d) for d in ("1", "0.25", "0.12", "0.05", "0.02")]
    assert all(one.paper and one.spent <= one.pool for one in sweep)
    # From the largest pool to the smallest one.
    assert all(smaller.accuracy - larger.accuracy <= 0.05 for larger, smaller in combinations(sweep, 2))
    assert sweep[0].accuracy > 0.5
    # Talk is cut at the limit of a reply whatever the pool is.
    assert (sweep[0].cut > 0) == (model == "talkative")


async def test_without_a_reserve_the_same_pool_ends_without_a_paper(sandbox_pool: SandboxPool, tmp_path: Path) -> None:
    with_reserve = await bought(sandbox_pool, tmp_path, "diligent", "0.12")
    without = await bought(sandbox_pool, tmp_path, "diligent", "0.12", "0")
    assert (with_reserve.paper, without.paper) == (True, False)
    assert with_reserve.accuracy >= without.accuracy == 0


async def test_a_pool_that_just_pays_for_the_smallest_paper_call_buys_one(
    sandbox_pool: SandboxPool, tmp_path: Path
) -> None:
    price = await smallest_paper("anomaly")
    assert 1_000 < price < 3_000
    for micro, paper in ((price - 100, False), (price + 100, True)):
        condition = ScienceCondition(task="anomaly", model="scripted:diligent", budget=f"{micro / 1e6:.6f}")
        one, recorder = await buy(condition, 0, sandbox_pool, Path(tempfile.mkdtemp(dir=tmp_path)))
        assert one.paper == paper
        assert sum(isinstance(event, LLMCallEvent) for event in recorder.events) == paper


def test_the_pools_go_from_two_cents_to_a_dollar() -> None:
    amounts = pools(25)
    assert (amounts[0], amounts[-1], len(set(amounts))) == (20_000, 1_000_000, 25)
