"""Behavioural games played by models: what is asked, what is seen, what counts, and what comes of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.api import arun
from labmates.budgets.tokens import text_of
from labmates.errors import LabmatesError, UsageError
from labmates.games.base import Array, Game, Quantity
from labmates.games.registry import GAMES, own_games
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard
from labmates.records.events import (
    ChargeEvent,
    DecisionEvent,
    LLMCallEvent,
    MessageEvent,
    PayoffEvent,
    WarningEvent,
)
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.runs import new_runs, stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.games.experiment import GAME
from labmates.workflows.games.outcome import _turned
from labmates.workflows.protocol.experiment import make_condition
from labmates_author.games import check_game
from tests.support.form_filler import FormFiller
from tests.support.openai_server import Answer, Json, OpenAIServer, fault, serve_model
from tests.support.puppet import puppet
from tests.support.story import story

KEY = re.compile(r'"(\w+)": …')


async def play(
    store: Store, game: str, model: str, *, settings: dict[str, Any] | None = None, **more: Any
) -> RunRecord:
    [run] = await arun("game", store=store.url, settings=settings or {}, game=game, model=model, **more)
    assert run.error is None
    return run


def player_of(heard: Heard) -> str:
    found = re.search(r"^You are player ([A-Z]\d+) ", text_of(heard.messages[1].content), re.MULTILINE)
    assert found
    return found[1]


def step_of(heard: Heard) -> str:
    return text_of(heard.messages[1].content).partition("# Step: ")[2].partition(",")[0]


def answering(**answers: int) -> Callable[[Heard], Draft]:
    """Give these numbers, and 0 for whatever else is asked for."""

    def answer(heard: Heard) -> Draft:
        keys = KEY.findall(text_of(heard.messages[1].content))
        return Draft(json.dumps({name: answers.get(name, 0) for name in keys}))

    return answer


@pytest.mark.parametrize("game", own_games())
@pytest.mark.parametrize("more", [{}, {"framing": "alternate", "reasoning": "tom", "group_size": 3, "groups": 3}])
async def test_the_best_play_has_cooperation_1_and_the_equilibrium_0(store: Store, game: str, more: Any) -> None:
    best = await play(store, game, "scripted:cooperate", **more)
    worst = await play(store, game, "scripted:defect", **more)
    for name in ("cooperation", "efficiency"):
        assert best.metrics[name] == pytest.approx(1, abs=1e-12)
        assert worst.metrics[name] == 0
    for run in (best, worst):
        assert run.metrics["pareto_proximity"] == 1 - run.metrics["cooperation"], "the paper's distance"
    assert best.metrics["action_gap"] == pytest.approx(0, abs=1e-12)
    assert best.metrics["failed_decision_rate"] == worst.metrics["failed_decision_rate"] == 0


@pytest.mark.parametrize(
    ("game", "more", "uneven", "safe", "cooperation"),
    [
        # Mean withdrawal 2.25 in both; the second group's product is 2 / 10 · 2 / 10, too little for the project.
        ("o-ring", {}, (3, 2, 2, 2), (3, 3, 3, 3), (0, 1)),
        ("weakest-link", {}, (10, 10, 10, 0), (4, 4, 4, 4), (0, 0.4)),
        # Missed by one, and met beyond need.
        ("collective-risk", {"rules": {"target": 12}}, (6, 5, 0, 0), (10, 10, 10, 10), (0, 1)),
    ],
)
async def test_cooperation_in_threshold_games_is_what_happened(
    store: Store, game: str, more: Any, uneven: Any, safe: Any, cooperation: Any
) -> None:
    found = []
    for played in (uneven, safe):
        by_player = dict(zip(("A1", "A2", "B1", "B2"), played, strict=True))

        def answer(heard: Heard, by_player: dict[str, int] = by_player) -> Draft:
            [key] = KEY.findall(text_of(heard.messages[1].content))
            return Draft(json.dumps({key: by_player[player_of(heard)]}))

        with puppet(answer) as model:
            found.append(await play(store, game, model, group_size=2, groups=2, rounds=1, **more))
    assert tuple(run.metrics["cooperation"] for run in found) == pytest.approx(cooperation)


async def test_what_is_given_to_any_pool_is_cooperation(store: Store) -> None:
    with puppet(answering(group=2, **{"global": 3})) as model:
        run = await play(store, "public-goods", model)
    assert run.metrics["level"] == 2
    assert run.metrics["cooperation"] == pytest.approx(0.5)


async def test_a_degenerate_game_says_why_it_has_no_cooperation(store: Store) -> None:
    said: list[str] = []
    condition = make_condition(
        "game", {"game": "collective-risk", "model": "scripted:defect", "group_size": 2, "rounds": 2}
    )
    runs = new_runs(condition, seed=0, replicates=1, settings=RunSettings())
    [run] = await Session(store, RunSettings(), notify=said.append).execute(runs)
    assert "cooperation" not in run.metrics
    told = [
        "collective-risk: the target is 100, but all players together have 80",
        "collective-risk: no play is better for all than the equilibrium, so cooperation and efficiency are undefined",
    ]
    assert said == told
    assert [event.text for event in store.events(run.id) if isinstance(event, WarningEvent)] == told


async def test_the_others_see_that_a_decision_was_substituted_and_what_was_said_before(store: Store) -> None:
    seen: list[str] = []

    def refuse(heard: Heard) -> Draft:
        order = text_of(heard.messages[1].content)
        if player_of(heard) == "A2":
            seen.append(order)
        if step_of(heard) == "deliberation":
            return Draft(f"{player_of(heard)} speaks in {re.findall('deliberation, (round [0-9])', order)[-1]}")
        if player_of(heard) == "A1":
            return Draft("no")
        return answering(extraction=3)(heard)

    with puppet(refuse) as model:
        rules: dict[str, Any] = {"group_size": 2, "rounds": 2, "repair_turns": 0, "deliberation": True}
        await play(store, "common-pool-sanctions", model, **rules)
    last = seen[-1]
    assert "- A1: no valid decision; played for it: extraction 10\n- A2: extraction 3\n" in last
    assert "- A1: no valid answer on tokens\n- nobody in your group spent a token" in last
    for round_ in (1, 2):
        assert last.count(f"A1 said: A1 speaks in round {round_}") == 1


@pytest.mark.parametrize("size", [3, 4, 5, 7, 8, 10])
async def test_the_fair_share_reaches_the_target_of_collective_risk(store: Store, size: int) -> None:
    run = await play(store, "collective-risk", "scripted:fair-share", group_size=size)
    assert run.metrics["target_reached"] == 1
    assert 100 <= run.metrics["level"] * 10 * 2 * size < 100 + 2 * size


@pytest.mark.parametrize("game", own_games())
async def test_random_and_conditional_players_play_every_game_without_a_fault(store: Store, game: str) -> None:
    more: dict[str, Any] = {"deliberation": True, "reasoning": "cot", "group_size": 3, "rounds": 2}
    run = await play(store, game, "scripted:random", model_for={"B": "scripted:conditional"}, **more)
    assert run.usage.failed_replies == 0
    assert run.models == ["scripted:random", "scripted:conditional"]
    assert run.usage.llm_calls == GAME.estimate(make_condition("game", run.condition)).calls  # type: ignore[misc]


async def test_payoffs_with_sanctions_are_those_computed_by_hand(store: Store) -> None:
    def punish(heard: Heard) -> Draft:
        if step_of(heard) == "decide":
            return Draft(json.dumps({"extraction": 8 if player_of(heard) == "A1" else 2}))
        keys = KEY.findall(text_of(heard.messages[1].content))
        return Draft(json.dumps({name: 3 if name == "A1" else 0 for name in keys}))

    with puppet(punish) as model:
        run = await play(store, "common-pool-sanctions", model, group_size=2, groups=2, rounds=1)
    # Taken: 8 + 2 + 2 + 2 = 14 of 100; 86 are left, a share is 3 · 86 / 4 = 64.5. A2 spends 3 tokens on A1.
    [payoff] = [e for e in store.events(run.id) if isinstance(e, PayoffEvent) and e.round == 1]
    assert payoff.payoffs == {"A1": 8 + 64.5 - 6, "A2": 2 + 64.5 - 3, "B1": 66.5, "B2": 66.5}
    assert run.metrics["sanctions"] == 3 / 4
    assert run.metrics["level"] == 14 / 4


async def test_what_is_lost_by_chance_is_lost_for_all_and_counts_as_expected_in_welfare(store: Store) -> None:
    runs = await arun("game", store=store.url, game="collective-risk", model="scripted:defect", replicates=12, rounds=2)
    assert {run.metrics["welfare"] for run in runs} == {10.0}  # half of 2 · 10
    assert {run.metrics["payoff"] for run in runs} == {0.0, 20.0}
    for run in runs:
        end = [event for event in store.events(run.id) if isinstance(event, PayoffEvent)][-1]
        assert end.details == {"kept_with_probability": 0.5, "kept": run.metrics["payoff"] == 20}
        assert set(end.payoffs.values()) == {run.metrics["payoff"]}


async def test_players_see_their_own_group_alone_and_only_rounds_that_are_over(store: Store) -> None:
    prompts: list[tuple[str, str, str]] = []

    def listen(heard: Heard) -> Draft:
        order = text_of(heard.messages[1].content)
        prompts.append((player_of(heard), step_of(heard), order))
        if step_of(heard) == "deliberation":
            return Draft(f"Secret of group {player_of(heard)[0]}: trust {player_of(heard)}.")
        keys = KEY.findall(order)
        return Draft(json.dumps({name: 7 if name == "extraction" else 1 for name in keys}))

    with puppet(listen) as model:
        await play(store, "common-pool-sanctions", model, group_size=3, rounds=2, deliberation=True)
    assert Counter(step for _, step, _ in prompts) == {"deliberation": 12, "decide": 12, "sanction": 12}
    for player, step, order in prompts:
        other = "B" if player[0] == "A" else "A"
        assert not re.search(rf"\b{other}[1-3]\b", order)
        assert f"group {other}" not in order
        in_first_round = "round 1 of" in order
        assert ("Round 1" in order) == (not in_first_round)
        if step == "decide":
            assert order.count("Secret of group") == (3 if in_first_round else 6), "what was said stays"
            assert f"trust {player}" in order
        if not in_first_round:
            assert "taken by all 6 players: 42 of 100; left: 58" in order
            assert "spent 1 on" in order
    # In deliberation each hears those who spoke before.
    talks = [order.count("Secret") for player, step, order in prompts if step == "deliberation" and player[0] == "A"]
    assert talks == [0, 1, 2, 3, 4, 5]


GOOD = '{"effort": 4}'
FAULTY = [
    "I think 4.",
    '{"effort": 4.5}',
    '{"effort": "4"}',
    '{"effort": -4}',
    '{"effort": 11}',
    '{"extraction": 4}',
    "",
    "{",
    "{'effort': 4}",
    '{"effort": 4 // mine}',
    '{"effort": 3}\nIf the others make less, I would play {"effort": 4}.',
]


@pytest.mark.parametrize("bad", FAULTY)
async def test_a_faulty_reply_is_sent_back_with_its_fault_and_repaired(store: Store, bad: str) -> None:
    def stumble(heard: Heard) -> Draft:
        return Draft(GOOD if "can't be used" in text_of(heard.messages[-1].content) else bad)

    with puppet(stumble) as model:
        run = await play(store, "weakest-link", model, group_size=2, rounds=1)
    assert run.metrics["failed_decision_rate"] == 0
    assert run.metrics["level"] == 4
    assert run.usage.llm_calls == 8
    assert run.usage.failed_replies == 4
    told = [event.reason for event in store.events(run.id) if event.type == "failed_reply"]
    assert len(told) == 4
    assert all(told)


@pytest.mark.parametrize(
    "clear", ['{"effort": 4, // as the others\n}', '{"effort": 4}\n{}', '{"why": "safe"}\n{"effort": 4}']
)
async def test_a_clear_reply_costs_no_repair(store: Store, clear: str) -> None:
    with puppet(lambda _heard: Draft(clear)) as model:
        run = await play(store, "weakest-link", model, group_size=2, rounds=1)
    assert (run.metrics["level"], run.usage.llm_calls, run.usage.failed_replies) == (4, 4, 0)


@pytest.mark.parametrize("bad", FAULTY)
async def test_a_decision_that_never_comes_is_counted_and_the_secure_play_stands_in_for_it(
    store: Store, bad: str
) -> None:
    def refuse(heard: Heard) -> Draft:
        return Draft(bad if player_of(heard) == "A1" else GOOD)

    with puppet(refuse) as model:
        run = await play(store, "weakest-link", model, group_size=2, rounds=2, repair_turns=1)
    assert run.status == "completed"
    assert run.metrics["failed_decision_rate"] == 2 / 8
    assert run.metrics["level"] == 4, "the fallback is no decision of the model"
    with puppet(lambda _heard: Draft(GOOD)) as model:
        whole = await play(store, "weakest-link", model, group_size=2, rounds=2)
    expected = {**whole.metrics, "failed_decision_rate": 2 / 8}
    assert run.metrics == pytest.approx(expected), "all are of the decisions that were made"
    failed = [event for event in store.events(run.id) if isinstance(event, DecisionEvent) and event.failed]
    assert [(event.agent, event.round, event.decision) for event in failed] == [
        ("A1", 1, {"effort": 0}),
        ("A1", 2, {"effort": 0}),
    ]
    assert run.usage.llm_calls == 6 + 2 * 2


async def test_the_fallback_does_not_enter_the_welfare_of_what_was_decided(store: Store) -> None:
    def split(heard: Heard) -> Draft:
        if player_of(heard) in ("A1", "B2"):
            return Draft("no")
        return Draft(json.dumps({"group": 10, "global": 0}))

    with puppet(split) as model:
        run = await play(store, "public-goods", model, group_size=4, rounds=2, repair_turns=0)
    assert run.metrics["failed_decision_rate"] == 2 / 8
    assert run.metrics["level"] == 10
    assert run.metrics["cooperation"] == run.metrics["efficiency"] == 1
    assert run.metrics["kept_share"] == 0


async def test_sanctions_that_failed_do_not_enter_the_welfare_of_what_was_decided(store: Store) -> None:
    def punish(heard: Heard) -> Draft:
        keys = KEY.findall(text_of(heard.messages[1].content))
        return Draft(json.dumps(dict.fromkeys(keys, 2 if step_of(heard) == "decide" else 1)))

    def some(heard: Heard) -> Draft:
        return Draft("no") if (player_of(heard), step_of(heard)) == ("A1", "sanction") else punish(heard)

    found = []
    for answer in (punish, some):
        with puppet(answer) as model:
            rules: dict[str, Any] = {"group_size": 3, "groups": 2, "rounds": 1, "repair_turns": 0}
            found.append(await play(store, "common-pool-sanctions", model, **rules))
    whole, broken = (run.metrics for run in found)
    assert (whole["failed_decision_rate"], broken["failed_decision_rate"]) == (0, 1 / 12)
    assert {**broken, "failed_decision_rate": 0} == pytest.approx(whole)


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_tokens_by_distance_come_back_and_own_ones_stay_first(size: int, seed: int) -> None:
    tokens = np.random.default_rng(seed).integers(0, 9, size=(2, 3, size, size))
    tokens[..., range(size), range(size)] = 0
    turned = _turned(tokens, 1)
    assert (turned[..., 0] == 0).all()
    assert (_turned(turned, -1) == tokens).all()


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ({"group": 5, "global": 6}, "add up to 10 at the most, not 11"),
        ({"keep": 0, "group": 5, "global": 5}, 'the key "keep" is not part of the form'),
        ({"group": 0}, 'the key "global" is missing'),
    ],
)
async def test_a_split_that_is_off_is_told_so(store: Store, split: dict[str, int], said: str) -> None:
    with puppet(lambda _heard: Draft(f"```json\n{json.dumps(split)}\n```")) as model:
        run = await play(store, "public-goods", model, group_size=2, rounds=1, repair_turns=1)
    assert run.metrics == {"failed_decision_rate": 1}
    sent = Counter(event.reason for event in store.events(run.id) if event.type == "failed_reply")
    [(reason, times)] = sent.items()
    assert said in reason
    assert times == 8


async def test_a_reply_that_was_cut_is_not_shown_again(store: Store) -> None:
    def ramble(heard: Heard) -> Draft:
        texts = [text_of(message.content) for message in heard.messages]
        told = [place for place, text in enumerate(texts) if "it was cut off at its length limit of 64" in text]
        assert told in ([], [1])
        return Draft('{"effort": 3}' if told else "I think of many things. " * 40)

    with puppet(ramble) as model:
        run = await play(store, "weakest-link", model, rounds=1, repair_turns=1, max_output_tokens=64)
    assert (run.metrics["failed_decision_rate"], run.metrics["level"]) == (0, 3)


async def test_what_players_put_nowhere_is_kept_and_recorded(store: Store) -> None:
    with puppet(lambda _heard: Draft('{"group": 2, "global": 3}')) as model:
        run = await play(store, "public-goods", model, group_size=2, rounds=2, repair_turns=0)
    decided = [event.decision for event in store.events(run.id) if event.type == "decision"]
    assert decided == [{"keep": 5, "group": 2, "global": 3}] * 8
    assert (run.metrics["kept_share"], run.metrics["failed_decision_rate"]) == (0.5, 0)


async def test_the_same_seed_gives_the_same_game_whatever_the_concurrency(store: Store) -> None:
    told = []
    for calls in (1, 64):
        settings = {"models": {"max_concurrent_calls": calls}}
        run = await play(store, "common-pool-sanctions", "scripted:random", settings=settings, deliberation=True)
        told.append((run.metrics, story(store, run.id)))
    assert told[0] == told[1]
    other = await play(store, "common-pool-sanctions", "scripted:random", seed=1, deliberation=True)
    assert other.metrics != told[0][0]


async def test_a_game_that_broke_off_goes_on_and_pays_nothing_twice(store: Store) -> None:
    whole = await play(store, "collective-risk", "scripted:random", group_size=3)
    broken = 0

    def breaks(heard: Heard) -> Draft:
        nonlocal broken
        broken += 1
        if broken == 40:
            raise LabmatesError("the model is gone")
        return BASELINES.get("random")().compose(heard)  # type: ignore[attr-defined,no-any-return]

    with puppet(breaks) as model:
        [run] = await arun("game", store=store.url, game="collective-risk", model=model, group_size=3)
        assert run.status == "failed"
        assert run.error == "the model is gone"
        [ended] = await Session(store, RunSettings()).execute([stopped_run(store, run.id)])
    assert ended.status == "completed"
    assert ended.metrics == whole.metrics
    assert broken == 61, "the other 59 calls were made once, the broken one twice"
    events = store.events(run.id)
    for kind in (LLMCallEvent, ChargeEvent, DecisionEvent, PayoffEvent):
        mine = [event.step for event in events if isinstance(event, kind)]
        assert len(mine) == len(set(mine)) == sum(isinstance(e, kind) for e in store.events(whole.id))


async def test_who_plays_for_a_group_or_a_seat_is_asked_for_it(store: Store) -> None:
    models = {"B": "scripted:cooperate", "A2": "scripted:cooperate"}
    run = await play(store, "weakest-link", "scripted:defect", model_for=models, group_size=2, rounds=1)
    decided = {e.agent: e.decision["effort"] for e in store.events(run.id) if isinstance(e, DecisionEvent)}
    assert decided == {"A1": 0, "A2": 10, "B1": 10, "B2": 10}
    asked = {e.agent: e.model for e in store.events(run.id) if isinstance(e, LLMCallEvent)}
    assert asked["A1"] == "scripted:defect"
    assert asked["B2"] == "scripted:cooperate"


async def test_a_game_needs_no_sandbox(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> None:
        raise AssertionError("a sandbox was asked for")

    monkeypatch.setattr("labmates.studies.session.choose_backend", none)
    with puppet(answering(effort=3)) as model:
        run = await play(store, "weakest-link", model, group_size=2, rounds=1)
    assert run.sandbox is None


async def test_what_is_said_in_deliberation_is_kept_short_and_must_be_something(store: Store) -> None:
    def talk(heard: Heard) -> Draft:
        if step_of(heard) == "deliberation":
            return Draft("" if player_of(heard) == "A1" else "word " * 1000)
        return answering(effort=1)(heard)

    with puppet(talk) as model:
        run = await play(store, "weakest-link", model, group_size=2, rounds=1, deliberation=True, repair_turns=1)
    said = [event for event in store.events(run.id) if isinstance(event, MessageEvent)]
    assert [event.agent for event in said] == ["A2", "B1", "B2"] or sorted(e.agent for e in said) == ["A2", "B1", "B2"]
    assert run.usage.failed_replies == 2


def test_conditions_that_mean_the_same_have_the_same_key() -> None:
    base = {"game": "o-ring", "model": "scripted:random"}
    same = make_condition("game", {**base, "rounds": 3, "rules": {"threshold": "50"}})
    assert same.key == make_condition("game", base).key
    assert same.model_dump()["rules"] == {
        "resource": 200,
        "most_withdrawal": 10,
        "scale": 1000,
        "threshold": 50,
        "reward": 200,
    }
    assert make_condition("game", {**base, "rules": {"threshold": 49}}).key != same.key
    again = make_condition("game", same.model_dump(mode="json"))
    assert again == same
    assert make_condition("game", {**base, "game": "collective-risk"}).model_dump()["rounds"] == 10


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"game": "chess"}, "unknown game 'chess'"),
        ({"rules": {"threshhold": 40}}, "unknown key 'threshhold'. Did you mean 'threshold'?"),
        ({"rules": {"threshold": "much"}}, "threshold: expected a whole number"),
        ({"rules": {"group_size": 4}}, "group_size: this is no rule but a parameter of the game (--group-size)"),
        ({"group_size": 1}, "group_size: must be at least 2"),
        ({"groups": 21}, "groups: must be at most 20"),
        ({"rounds": 0}, "rounds: must be at least 1"),
        ({"framing": "rude"}, "framing: expected 'standard' or 'alternate'"),
        ({"reasoning": "magic"}, "reasoning: expected 'none', 'cot' or 'tom'"),
        ({"model_for": {"C": "scripted:random"}}, "unknown group or player 'C'"),
        ({"model_for": {"A6": "scripted:random"}}, "unknown group or player 'A6'"),
        ({"model": "scripted:nobody"}, "unknown scripted baseline 'nobody'"),
        ({"model": "random"}, "has no provider"),
    ],
)
def test_a_wrong_condition_is_told_what_is_wrong(more: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        make_condition("game", {"game": "o-ring", "model": "scripted:random", **more}).check()


async def test_a_game_over_http_outlasts_faults_of_the_server(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789abcdef")
    model = serve_model(FormFiller(), latency=0)

    async def faulty(request: Json, n: int) -> Answer:
        if n in (3, 7):
            return fault(429, Retry_After="0.01")
        if n == 11:
            return fault(500)
        if n == 13:
            return Answer(cut="within")
        if n == 17:
            return Answer(text='{"effort": 3', finish="length")
        if n == 19:
            return Answer(text=None)
        answer = model(request, n)
        return answer if isinstance(answer, Answer) else await answer

    with OpenAIServer(faulty) as server:
        run = await play(
            store, "weakest-link", "openai:m", settings={"models": {"base_url": server.base_url}}, group_size=3
        )
    assert run.metrics["failed_decision_rate"] == 0
    assert run.usage.failed_replies == 2
    assert run.usage.llm_calls == 18 + 2
    assert len(server.requests) == 20 + 4


class Gifts(Game):
    """A game of another package: what is given to the others is worth three times as much to them."""

    name = "gifts"
    title = "Gifts"
    summary = "Each player may give; the others of the group share three times as much."
    formal = (
        "Each of the $group_size members of a group gives from 0 to $most_gift units.",
        "Three times what the others of your group give is shared out among them and you.",
    )
    prose = "You may give up to $most_gift units; gifts are worth three times as much to your $group_size members."
    primary = "gift"

    most_gift: int = 4

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The gift."""
        return (Quantity("gift", 0, self.most_gift, "what you give"),)

    @property
    def default_decision(self) -> tuple[int, ...]:
        """No gift."""
        return (0,)

    def payoffs(self, decisions: Array) -> Array:
        """Return three times the mean gift, less the own one."""
        gift = decisions[..., 0]
        return np.asarray(3 * gift.sum(axis=-1, keepdims=True) / self.group_size - gift)


async def test_a_game_of_another_package_is_checked_played_and_known_to_scripted_players(store: Store) -> None:
    GAMES.register("gifts", Gifts)
    assert check_game(Gifts()) == []
    best = await play(store, "gifts", "scripted:cooperate", rules={"most_gift": 6}, rounds=1)
    assert best.metrics["level"] == 6
    assert best.metrics["welfare"] == 12
    assert best.metrics["cooperation"] == 1
    own = await play(store, "gifts", "scripted:defect", rounds=1, framing="alternate")
    assert own.metrics["cooperation"] == 0
    for model in ("scripted:random", "scripted:conditional", "scripted:fair-share"):
        assert (await play(store, "gifts", model, rounds=2)).usage.failed_replies == 0
