"""The cross-play of social dilemmas: the theorem, numbers of calls, records, resume, failed replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from labmates.agents.decisions import read_decision
from labmates.api import arun
from labmates.budgets.tokens import Usage
from labmates.errors import UsageError
from labmates.mechanisms.base import Blank, Sheet
from labmates.mechanisms.play import mixture
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Fault, Reply
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.records.bodies import Bodies
from labmates.records.events import DecisionEvent, LLMCallEvent, PayoffEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.stats.domains import ANY, Domain
from labmates.workflows.dilemmas.briefs import form_of
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.dilemmas.experiment import estimate
from labmates.workflows.dilemmas.frames import actions_frame
from labmates.workflows.dilemmas.records import cross_plays, normalised_in, payoffs_in, read_cross_play
from labmates.workflows.protocol.analysis import Runs
from labmates.workflows.protocol.experiment import flat_condition, make_condition

DILEMMAS = ("prisoners", "public-goods", "travellers", "trust")
MIX = form_of(mixture(("A0", "A1")))
MEDIATOR = form_of(Sheet((Blank("1", ("A0", "A1")), Blank("2", ("A0", "A1"))), {}))
CONTRACT = form_of(Sheet((Blank("A0", range(-10, 11)), Blank("A1", range(-10, 11))), {}))
VOTE = form_of(Sheet((Blank("P1", None), Blank("P2", None)), {}))


NUMBERED = {"name": "n", "actions": ["1", "2"], "payoffs": {f"{a} {b}": [a, b] for a in (1, 2) for b in (1, 2)}}
"""A game whose actions are called as players are counted."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/runs.db"


def play(url: str, **condition: Any) -> RunRecord:
    [run] = asyncio.run(arun("dilemma", store=url, **condition))
    assert run.status == "completed", run.error
    return run


@pytest.mark.parametrize("game", DILEMMAS)
@pytest.mark.parametrize(
    ("mechanism", "terms"),
    [("repetition", {}), ("reputation", {"order": 3}), ("mediation", {}), ("contract", {"proposals": "once"})],
)
def test_copies_of_the_equilibrium_reach_the_cooperative_payoff(
    url: str, game: str, mechanism: str, terms: dict[str, Any]
) -> None:
    # Six copies in the one game that takes longest would be thousands of calls of the same: two say as much.
    run = play(url, game=game, mechanism=mechanism, terms=terms, entrants=["scripted:equilibrium"] * 2)
    assert run.metrics["normalised"] == pytest.approx(1)
    assert run.metrics["normalised_sampled"] == pytest.approx(1)
    assert run.metrics["failed_decision_rate"] == 0


def _sent(store: Store, run: RunRecord) -> str:
    """All that was sent to models in a run."""
    bodies = Bodies(store.bodies(run.id))
    calls = [event for event in store.events(run.id) if isinstance(event, LLMCallEvent)]
    return " ".join(str(bodies[number]) for number in sorted({number for call in calls for number in call.messages}))


@pytest.mark.parametrize(
    ("words", "mechanism", "label"),
    [
        ({"wording": "paper"}, "mediation", "A2"),
        ({"ablation": "real-words"}, "repetition(rounds=4)", "cooperate"),
        ({"ablation": "neutral", "wording": "paper"}, "contract", "schedule"),
        ({"ablation": "neutral"}, "mediation", "hand over"),
    ],
)
def test_other_words_change_prompts_and_keys_but_not_play_nor_records(
    url: str, words: dict[str, str], mechanism: str, label: str
) -> None:
    condition = {"game": "prisoners", "mechanism": mechanism, "entrants": ["scripted:equilibrium", "scripted:random"]}
    runs = [play(url, **condition), play(url, **condition, **words)]
    assert len({run.key for run in runs}) == 2
    with Store(url) as store:
        decided = [
            {event.step: event.decision for event in store.events(run.id) if isinstance(event, DecisionEvent)}
            for run in runs
        ]
        texts = [_sent(store, run) for run in runs]
    assert decided[0] == decided[1]
    assert runs[0].metrics == runs[1].metrics
    assert label in texts[1]
    assert label not in texts[0]


def _seeded(url: str, seed: int, **condition: Any) -> tuple[RunRecord, str, list[Any]]:
    [run] = asyncio.run(arun("dilemma", store=url, seed=seed, **condition))
    with Store(url) as store:
        decided = [event.decision for event in store.events(run.id) if isinstance(event, DecisionEvent)]
        return run, _sent(store, run), decided


@pytest.mark.parametrize(
    ("game", "mechanism", "words"),
    [
        ("prisoners", "contract", {}),
        ("travellers", "mediation", {"wording": "paper"}),
        ("public-goods", "repetition(rounds=2)", {"wording": "paper"}),
        ("prisoners", "none", {"ablation": "real-words"}),
    ],
)
def test_runs_of_odd_seeds_list_actions_in_reverse_under_other_names(
    url: str, game: str, mechanism: str, words: dict[str, str]
) -> None:
    condition = {"game": game, "mechanism": mechanism, "entrants": ["scripted:equilibrium"], **words}
    fixed = _seeded(url, 3, **condition, option_order="fixed")
    turned = _seeded(url, 3, **condition)
    even = _seeded(url, 2, **condition)
    assert (fixed[0].metrics, fixed[2]) == (turned[0].metrics, turned[2]), "the record keeps the game's names"
    assert fixed[1] != turned[1]
    assert even[1] == _seeded(url, 2, **condition, option_order="fixed")[1]


def test_the_reversed_table_is_the_same_game(url: str) -> None:
    _, text, _ = _seeded(url, 1, game="prisoners", mechanism="none", entrants=["scripted:cooperate"])
    rows = ["| A0 | A0 | 1 | 1 |", "| A0 | A1 | 3 | 0 |", "| A1 | A0 | 0 | 3 |", "| A1 | A1 | 2 | 2 |"]
    assert "\\n".join(rows) in text
    assert "Your actions: A0, A1" in text


def test_one_model_under_reputation_is_told_that_co_players_never_change() -> None:
    condition = make_condition("dilemma", {"game": "prisoners", "mechanism": "reputation", "entrants": "scripted:grim"})
    assert "co-players never change" in condition.doubts()[0]
    several = make_condition(
        "dilemma", {"game": "prisoners", "mechanism": "reputation", "entrants": "scripted:grim,scripted:grim"}
    )
    assert not several.doubts()


def test_entrants_are_shown_as_they_are_given() -> None:
    given = "scripted:grim,openai:m?temperature=0.5&reasoning=cot"
    condition = make_condition("dilemma", {"game": "prisoners", "entrants": given})
    assert flat_condition("dilemma", condition.model_dump(mode="json"))["entrants"] == given


def test_a_game_without_named_plays_tells_which_metrics_it_lacks() -> None:
    condition = make_condition("dilemma", {"game": "matching-pennies", "entrants": "scripted:defect"})
    [doubt] = condition.doubts()
    assert "names no plays as cooperate and defect, so normalised payoffs and cooperation are undefined" in doubt


def test_cooperation_is_weighted_as_payoffs_are(url: str) -> None:
    # Grim against a defector cooperates in the first of three rounds, which weigh .2, .16 and .64.
    run = play(url, game="prisoners", mechanism="repetition(rounds=3)", entrants=["scripted:grim", "scripted:defect"])
    grim_with_itself, grim, defects = 1.0, 0.2, 0.0
    rate = (2 * grim_with_itself + 2 * (grim + defects) + 2 * defects) / 8
    assert run.metrics["cooperation_rate"] == pytest.approx(rate)
    [row] = [
        row
        for row in actions_frame(cross_plays(Runs(url))).to_dict("records")
        if (row["model"], row["action"]) == ("scripted:grim", "A0")
    ]
    assert row["share"] == pytest.approx((2 * grim_with_itself + 2 * grim) / 4)


def test_six_copies_of_the_equilibrium_cooperate_as_well(url: str) -> None:
    for mechanism in ("reputation", "mediation", "contract"):
        terms = {"order": 3} if mechanism == "reputation" else {}
        run = play(url, game="trust", mechanism=mechanism, terms=terms, entrants=["scripted:equilibrium"] * 6)
        assert run.metrics["normalised"] == pytest.approx(1)


@pytest.mark.parametrize("game", DILEMMAS)
def test_if_all_defect_the_normalised_payoff_is_0(url: str, game: str) -> None:
    for mechanism in ("none", "mediation", "contract"):
        run = play(url, game=game, mechanism=mechanism, entrants=["scripted:defect", "scripted:defect"])
        assert run.metrics["normalised"] == pytest.approx(0)
    run = play(url, game=game, entrants=["scripted:cooperate"])
    assert run.metrics["normalised"] == pytest.approx(1)


CALLS: list[tuple[str, dict[str, Any], Callable[[int, int], int]]] = [
    ("none", {}, lambda n, m: n * m**n),
    ("repetition", {"rounds": 3}, lambda n, m: 3 * n * m**n),
    ("reputation", {"rounds": 3}, lambda n, m: 3 * n * m),
    ("reputation", {"rounds": 3, "order": 3, "pairing": "fixed-seats"}, lambda n, m: 3 * n * m),
    ("mediation", {"proposals": "once"}, lambda n, m: m * n + 2 * n * m**n),
    ("mediation", {}, lambda n, m: 3 * n * m**n),
    ("contract", {"proposals": "once"}, lambda n, m: m * n + 3 * n * m**n),
    ("contract", {}, lambda n, m: 4 * n * m**n),
    ("contract+repetition", {"rounds": 2, "proposals": "once"}, lambda n, m: m * n + 4 * n * m**n),
    ("repetition+mediation", {"rounds": 2, "proposals": "once"}, lambda n, m: m * n + 4 * n * m**n),
    ("reputation+contract", {"rounds": 2}, lambda n, m: 8 * n * m),
]
"""Mechanism, its terms, and the number of calls of so many players and models."""


@pytest.mark.parametrize(("mechanism", "terms", "formula"), CALLS)
@pytest.mark.parametrize(("game", "players"), [("prisoners", 2), ("public-goods", 3), ("trust", 2)])
def test_the_number_of_calls_is_known_before(
    mechanism: str, terms: dict[str, Any], formula: Callable[[int, int], int], game: str, players: int
) -> None:
    for models in (["scripted:random"], ["scripted:random", "scripted:grim"]):
        condition = {"game": game, "mechanism": mechanism, "terms": terms, "entrants": models}
        assert estimate(DilemmaCondition.model_validate(condition)).calls == formula(players, len(models))


@pytest.mark.parametrize(("mechanism", "terms"), [(mechanism, terms) for mechanism, terms, _ in CALLS])
def test_as_many_calls_are_made_as_planned(url: str, mechanism: str, terms: dict[str, Any]) -> None:
    models = ["scripted:random", "scripted:grim"]
    condition = {"game": "prisoners", "mechanism": mechanism, "terms": terms, "entrants": models}
    assert play(url, **condition).usage.llm_calls == estimate(DilemmaCondition.model_validate(condition)).calls


def test_as_many_calls_are_made_as_planned_of_three_players(url: str) -> None:
    condition = {"game": "public-goods", "mechanism": "contract", "entrants": ["scripted:random", "scripted:grim"]}
    assert play(url, **condition).usage.llm_calls == estimate(DilemmaCondition.model_validate(condition)).calls


@pytest.mark.parametrize("mechanism", ["mediation+contract", "contract+mediation"])
def test_designs_of_two_kinds_are_each_proposed_once(url: str, mechanism: str) -> None:
    models = ["scripted:random", "scripted:grim"]
    condition = {"game": "prisoners", "mechanism": mechanism, "terms": {"proposals": "once"}, "entrants": models}
    planned = estimate(DilemmaCondition.model_validate(condition)).calls
    assert planned == 2 * 2 * 2 + 4 * 2 * 2**2
    assert play(url, **condition).usage.llm_calls == planned


def test_the_plan_holds_for_three_models_multisets_and_the_other_games(url: str) -> None:
    three = ["scripted:random", "scripted:tit-for-tat", "scripted:standing"]
    for game, seating in (
        ("prisoners", "multisets"),
        ("public-goods", "multisets"),
        ("travellers", "all"),
        ("stag-hunt", "all"),
        ("matching-pennies", "all"),
    ):
        condition = {"game": game, "mechanism": "contract", "entrants": three, "seating": seating}
        planned = estimate(DilemmaCondition.model_validate(condition)).calls
        assert play(url, **condition).usage.llm_calls == planned


def test_the_record_tells_distributions_draws_and_both_payoffs(url: str) -> None:
    run = play(url, game="trust", entrants=["scripted:random", "scripted:cooperate"])
    events = Store(url).events(run.id)
    rounds = [event for event in events if isinstance(event, PayoffEvent)]
    assert sorted(event.match for event in rounds) == ["1-1", "1-2", "2-1", "2-2"]
    [mixed] = [event for event in rounds if event.match == "1-2"]
    [own] = [event for event in events if isinstance(event, DecisionEvent) and event.step == "1-2/choose/1"]
    trusts = own.decision["A0"] / 100
    assert mixed.details["mixes"][0] == list(own.decision.values())
    assert mixed.details["expected"] == pytest.approx([10 * trusts + 6 * (1 - trusts), 10 * trusts + 2 * (1 - trusts)])
    assert list(mixed.payoffs.values()) in ([10, 10], [6, 2])
    found = read_cross_play(run.id, run.condition, ["scripted:random", "scripted:cooperate"], events)
    assert found.cell("expected").payoffs.shape == (2, 2)
    assert found.cell("expected").payoffs[1, 1] == 10


@pytest.mark.parametrize(
    ("mechanism", "terms"),
    [
        ("mediation+repetition", {"rounds": 2, "ties": "all"}),
        ("repetition+mediation", {"rounds": 2, "ties": "all"}),
    ],
)
def test_delegating_is_as_cooperative_as_what_the_mediator_does(
    url: str, mechanism: str, terms: dict[str, Any]
) -> None:
    models = ["scripted:random", "scripted:grim"]
    run = play(url, game="public-goods", mechanism=mechanism, terms=terms, entrants=models, seating="multisets")
    with Store(url) as store:
        found = read_cross_play(run.id, run.condition, models, list(store.events(run.id)))
    likely = [found.cooperation(one) for one in found.rounds]
    # Each cooperation is worth half a point to the group, whoever acts.
    assert [3 + sum(each) / 2 for each in likely] == pytest.approx([sum(one.expected) for one in found.rounds])
    assert run.metrics["cooperation_rate"] == pytest.approx(
        sum(one.weight * sum(each) for one, each in zip(found.rounds, likely, strict=True))
        / (3 * sum(one.weight for one in found.rounds))
    )


def test_the_range_of_payoffs_is_that_of_the_game_but_for_payments_between_players() -> None:
    assert payoffs_in({"game": "prisoners", "mechanism": "none"}) == Domain(0, 3)
    assert normalised_in({"game": "prisoners", "mechanism": "reputation+mediation"}) == Domain(-1, 2)
    for unknown in ({"game": "prisoners", "mechanism": "contract"}, {"game": "nope", "mechanism": "none"}):
        assert normalised_in(unknown) == ANY


def test_terms_in_brackets_are_those_that_are_given_apart() -> None:
    one = {"game": "trust", "entrants": "scripted:grim", "mechanism": "reputation(order=3, rounds=4)"}
    other = {**one, "mechanism": "reputation", "terms": {"order": 3, "rounds": "4"}}
    assert DilemmaCondition.model_validate(one).key == DilemmaCondition.model_validate(other).key


def test_runs_repeat_exactly_whatever_is_at_the_same_time(url: str) -> None:
    condition = {"game": "travellers", "mechanism": "contract", "entrants": ["scripted:random", "scripted:grim"]}
    first = play(url, **condition)
    second = play(url, **condition, settings={"models": {"max_concurrent_calls": 1}})
    assert first.metrics == second.metrics
    told = [
        sorted(
            (event.step, event.model_dump_json(exclude={"at"}))
            for event in Store(url).events(run.id)
            if isinstance(event, DecisionEvent | PayoffEvent)
        )
        for run in (first, second)
    ]
    assert told[0] == told[1]


def test_a_model_may_play_twice_with_different_settings(url: str) -> None:
    run = play(url, game="prisoners", entrants="scripted:grim,scripted:grim?reasoning=none&temperature=0,scripted:grim")
    condition = DilemmaCondition.model_validate(run.condition)
    assert condition.names() == ["scripted:grim #1", "scripted:grim?temperature=0.0&reasoning=none", "scripted:grim #2"]
    assert run.models == ["scripted:grim"]
    store = Store(url)
    bodies = Bodies(store.bodies(run.id))
    calls = [event for event in store.events(run.id) if isinstance(event, LLMCallEvent)]
    plain = [call for call in calls if "nothing else" in str(bodies[call.messages[1]])]
    assert {call.agent for call in plain} == {"scripted:grim?temperature=0.0&reasoning=none"}


@contextmanager
def puppet(compose: Callable[[Heard], str]) -> Iterator[str]:
    class Puppet(ScriptedModel):
        baseline = "dilemma-puppet"
        description = "Plays what a test says."

        def compose(self, heard: Heard) -> Draft:
            return Draft(compose(heard))

    BASELINES.register("dilemma-puppet", Puppet)
    try:
        yield "scripted:dilemma-puppet"
    finally:
        BASELINES._loaded.pop("dilemma-puppet")


def test_who_gives_no_usable_answer_plays_the_fallback_and_is_counted(url: str) -> None:
    with puppet(lambda heard: "I would rather not.") as model:
        run = play(url, game="prisoners", mechanism="contract", entrants=[model], repair_turns=1)
    assert run.metrics["failed_decision_rate"] == 1
    decided = [event for event in Store(url).events(run.id) if isinstance(event, DecisionEvent) and event.failed]
    assert {event.stage: event.decision for event in decided} == {"propose": {}, "choose": {"A0": 50, "A1": 50}}
    assert run.usage.llm_calls == 8
    assert run.metrics["payoff"] == pytest.approx(1.5)


def test_a_run_that_fails_goes_on_without_paying_twice(url: str) -> None:
    from labmates.studies.session import Session
    from labmates.studies.settings import RunSettings

    calls = {"made": 0, "most": 20}

    def compose(heard: Heard) -> str:
        calls["made"] += 1
        if calls["made"] > calls["most"]:
            raise ConnectionError("the model is gone")
        return '{"A0": 60, "A1": 40}'

    condition: dict[str, Any] = {"game": "prisoners", "mechanism": "repetition", "terms": {"rounds": 6}}
    with puppet(compose) as model:
        [run] = asyncio.run(arun("dilemma", store=url, entrants=[model, "scripted:grim"], **condition))
        assert run.status == "failed"
        recorded = run.usage.llm_calls
        assert recorded < 48
        calls.update(made=0, most=1000)
        store = Store(url)
        [again] = asyncio.run(Session(store, RunSettings()).execute([store.run(run.id)]))
        assert again.status == "completed", again.error
        assert again.usage.llm_calls == 48
        steps = [event.step for event in store.events(run.id) if isinstance(event, LLMCallEvent)]
        assert len(set(steps)) == len(steps)
        fresh = play(url, entrants=[model, "scripted:grim"], **condition)
    assert fresh.metrics == again.metrics


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ({"game": "chess"}, "unknown dilemma 'chess'"),
        ({"game": "none.yaml"}, "can't be read"),
        ({"mechanism": "telepathy"}, "unknown mechanism"),
        ({"terms": {"order": 3}}, "unknown parameter 'order'"),
        ({"mechanism": "reputation(3)"}, "brackets hold NAME=VALUE"),
        ({"mechanism": "reputation(order=3"}, "is not a mechanism"),
        ({"entrants": []}, "entrants"),
        ({"entrants": "scripted:grim?heat=3"}, "heat"),
        ({"entrants": "scripted:grim?temperature"}, "MODEL[?]NAME=VALUE"),
        ({"entrants": "scripted:grim?temperature=9"}, "temperature"),
        ({"entrants": "scripted:nobody"}, "nobody"),
        ({"game": "trust", "seating": "multisets"}, "symmetric game"),
        ({"wording": "theirs"}, "wording"),
        ({"ablation": "loud"}, "ablation"),
        ({"game": NUMBERED, "ablation": "real-words"}, "give it 'words'"),
    ],
)
def test_wrong_conditions_are_told(url: str, condition: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        play(url, **{"game": "prisoners", "entrants": ["scripted:grim"], **condition})


def reply(text: str, *faults: Fault) -> Reply:
    return Reply(text, (), faults, AIMessage(text), "stop", Usage(1, 1))


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"A0": 30, "A1": 70}\n```',
        '{"A0": 30, "A1": 70}',
        'The other will surely take A1, so mostly do I.\n\n{"A0": 30, "A1": 70}',
        '```\n{"A0": 30, "A1": 70}\n```\nWith this I stay hard to predict.',
        'At first I thought of {"A0": 100}; but no: {"A0": 30, "A1": 70}',
        '$$\\boxed{\\{ "A0": 30, "A1": 70 \\}}$$',
        '\\[\n\\{ "A0": 30,\n  "A1": 70 \\}\n\\]',
        '{"why": {"A0": "trust", "A1": "fear"}}\n{"A0": 30, "A1": 70}',
    ],
)
def test_replies_of_every_shape_are_read(text: str) -> None:
    assert read_decision(reply(text), MIX).values == {"A0": 30, "A1": 70}


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        (MIX, '{"A0": 30}', 'the key "A1" is missing'),
        (MIX, '{"A0": 30, "A1": 71}', "add up to 100, not 101"),
        (MIX, '{"A0": 30.5, "A1": 69.5}', "whole number"),
        (MIX, '{"A0": 30.0, "A1": 70.0}', "whole number"),
        (MIX, '{"A0": "30", "A1": "70"}', "whole number"),
        (MIX, '{"A0": -1, "A1": 101}', "the least is 0"),
        (MIX, '{"A0": 1e400, "A1": 0}', "whole number"),
        (MIX, '{"A0": true, "A1": 99}', "whole number"),
        (MIX, '{"a0": 30, "A1": 70}', 'the key has to be "A0", not "a0"'),
        (MIX, '{"blank_0": 30, "blank_1": 70}', 'the key "A0" is missing'),
        (MIX, "", "no text"),
        (MIX, '{"A0": 30, "A1":', "no closing brace"),
        (MIX, 'At first {"A0": 100, "A1": 0}; but no: {"A0": 30, "A1": 70}', "two answers that differ"),
        (MIX, "and so on and on " * 10_000, "no whole JSON"),
        (MEDIATOR, '{"1": "A2", "2": "A0"}', '"1" is "A2", but it has to be "A0" or "A1"'),
        (MEDIATOR, '{"1": "A1"}', 'the key "2" is missing'),
        (CONTRACT, '{"A0": 2.7, "A1": 0}', "whole number"),
        (CONTRACT, '{"A0": 11, "A1": 0}', '"A0" is 11, but the most is 10'),
        (CONTRACT, '{"A0": 0, "A1": -11}', '"A1" is -11, but the least is -10'),
        (VOTE, '{"P1": "yes", "P2": false}', "true or false"),
        (VOTE, '{"P1": 1, "P2": false}', "true or false"),
        (VOTE, '{"P1": true, "P2": false, "P3": true}', 'key "P3" is not part of the form'),
    ],
)
def test_values_are_taken_strictly(form: Any, text: str, said: str) -> None:
    with pytest.raises(UnusableAnswerError, match=said):
        read_decision(reply(text), form)


def test_a_cut_reply_is_refused_whatever_stands_in_it() -> None:
    with pytest.raises(UnusableAnswerError, match="cut off"):
        read_decision(reply('{"A0": 30, "A1": 70}', "cut"), MIX)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["A0", "A1", "P1", "1"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["A0", "A1", "P1", "1", "2"]), inner),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([MIX, MEDIATOR, CONTRACT, VOTE]),
    JSON.map(json.dumps) | st.lists(st.sampled_from('{}[]":,\\ 0123A.e-\n'), max_size=60).map("".join) | st.text(),
    st.text(max_size=20),
)
def test_any_reply_is_a_decision_or_the_documented_error(form: Any, text: str, around: str) -> None:
    try:
        found = read_decision(reply(around + text + around), form)
    except UnusableAnswerError:
        return
    assert found.values.keys() == {field.alias for field in form.model_fields.values()}
