"""Mechanisms: what holds for each, what is shown to whom, and what designs are worth."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates.games.dilemmas import get_dilemma
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Blank, Mechanism, Negotiated, Played, Question, Sheet
from labmates.mechanisms.contract import Contract
from labmates.mechanisms.mediation import Mediation
from labmates.mechanisms.none import NoMechanism
from labmates.mechanisms.norms import Deed, Past, grim, standing, tit_for_tat
from labmates.mechanisms.registry import make_mechanisms
from labmates.mechanisms.repetition import Repetition
from labmates.mechanisms.reputation import Reputation
from labmates.mechanisms.theorem import best_design
from labmates.mechanisms.wording import Answer
from labmates_author.mechanisms import check_mechanism, fault_of, play_with, random_answer

PRISONERS = get_dilemma("prisoners").game()
GAMES = {name: get_dilemma(name).game() for name in ("prisoners", "trust")}
ALL = ("none", "repetition", "reputation", "mediation", "contract")
INSUFFICIENT = ("none", "cheap-talk", "stackelberg", "correlation", "gifting")


def is_good(deed: Deed) -> bool:
    return deed.action == "A0"


@pytest.mark.parametrize("name", sorted({*ALL, *INSUFFICIENT}))
def test_ours_are_as_they_should_be(name: str) -> None:
    [mechanism] = make_mechanisms(name)
    assert check_mechanism(mechanism, GAMES) == []


def test_reputation_of_order_3_and_in_fixed_seats_is_as_it_should_be() -> None:
    assert check_mechanism(Reputation(order=3, pairing="fixed-seats"), GAMES) == []


@pytest.mark.parametrize("game", ["public-goods", "travellers", "stag-hunt"])
def test_designs_are_as_they_should_be_in_the_other_games(game: str) -> None:
    for mechanism in (Mediation(ties="all"), Contract(proposals="once"), Contract(selection="choice")):
        assert check_mechanism(mechanism, {game: get_dilemma(game).game()}) == []


@pytest.mark.parametrize(
    "name",
    [
        "contract+repetition",
        "repetition+contract",
        "mediation+repetition",
        "cheap-talk+contract",
        "mediation+stackelberg",
        "reputation+stackelberg",
        "repetition+gifting",
    ],
)
def test_mechanisms_around_each_other_are_as_they_should_be(name: str) -> None:
    assert check_mechanism(make_mechanisms(name), {"prisoners": PRISONERS}) == []


@pytest.mark.parametrize("factor", [1, 1000, 10**7])
def test_contracts_that_make_cooperation_pay_can_be_proposed_whatever_a_game_pays(factor: int) -> None:
    game = NormalForm(PRISONERS.labels, PRISONERS.payoffs * factor, PRISONERS.cooperate, PRISONERS.defect)
    assert check_mechanism(Contract(), {"big": game}) == []


def test_a_theorem_whose_contract_has_no_room_in_the_form_is_told() -> None:
    [problem] = check_mechanism(Contract(most=2), {"prisoners": PRISONERS})
    assert "is not allowed: A0 can't be 4 (from -2 to 2)" in problem


@pytest.mark.parametrize(
    ("sheet", "answer", "said"),
    [
        (Sheet((Blank("a", range(3)),), {}), {"a": 3}, "a can't be 3 (from 0 to 2)"),
        (Sheet((Blank("a", ("x", "y")),), {}), {"a": "z"}, "a can't be 'z'"),
        (Sheet((Blank("a", None),), {}), {"a": 1}, "a can't be 1"),
        (Sheet((Blank("a", None),), {}), {"b": True}, "it must answer a, not b"),
        (Sheet((Blank("a", range(101)), Blank("b", range(101))), {}, 100), {"a": 50, "b": 49}, "add up to 99, not 100"),
    ],
)
def test_answers_that_a_form_does_not_allow_are_told(sheet: Sheet, answer: Answer, said: str) -> None:
    assert said in (fault_of(sheet, answer) or "")


class Gift(NoMechanism):
    """Makes points out of nothing."""

    name: ClassVar[str] = "gift"

    def play(self, game: NormalForm, seats: Any, then: Any) -> Any:
        return (yield from then(NormalForm(game.labels, game.payoffs + 1), seats))


class Tax(NoMechanism):
    """Divides half of all payoffs equally."""

    name: ClassVar[str] = "tax"

    def play(self, game: NormalForm, seats: Any, then: Any) -> Any:
        shared = game.payoffs.mean(axis=-1, keepdims=True)
        return (yield from then(NormalForm(game.labels, (game.payoffs + shared) / 2), seats))


class StatedTax(Tax):
    """Says that nobody can ignore it."""

    ignorable: ClassVar[bool] = False


class Mistaken(NoMechanism):
    """Claims the theorem for a mechanism under which everybody defects."""

    name: ClassVar[str] = "mistaken"
    is_theorem: ClassVar[bool] = True


class Naive(Repetition):
    """Tells a strategy that always cooperates."""

    name: ClassVar[str] = "naive"

    def follow(self, game: NormalForm, question: Question) -> Answer:
        return {"A0": 100, "A1": 0}


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (Gift(), "ignore the mechanism get"),
        (Mistaken(), "the theorem's strategy gets"),
        (Naive(), "a player gains by answering"),
    ],
)
def test_what_is_wrong_with_a_mechanism_is_told(mechanism: Mechanism, said: str) -> None:
    assert any(said in problem for problem in check_mechanism(mechanism, {"prisoners": PRISONERS}))


def test_a_mechanism_that_cannot_be_ignored_says_so() -> None:
    game = {"matching-pennies": get_dilemma("matching-pennies").game()}
    [problem] = check_mechanism(Tax(), game)
    assert "get (0.5, -0.5), but (1.0, -1.0) without it; set ignorable = False" in problem
    assert check_mechanism(StatedTax()) == []


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*ALL, "contract+repetition", "reputation+mediation"]), st.integers(0, 10_000))
def test_payments_and_delegation_neither_make_nor_lose_points(name: str, seed: int) -> None:
    from labmates.mechanisms.base import Seats
    from labmates.mechanisms.play import around

    mechanisms = make_mechanisms(name, {"rounds": 3} if "rep" in name else {})
    log: list[Played | Negotiated] = []
    agents = (0, 1, 2, 3) if mechanisms[0].seats_itself else (0, 1)
    play = around(mechanisms)(PRISONERS, Seats(agents, tuple(agent % 2 for agent in agents), seed, log=log))
    rng = random.Random(seed)
    questions = next(play)
    try:
        while True:
            questions = play.send([random_answer(question, rng) for question in questions])
    except StopIteration as end:
        result = end.value
    played = [one for one in log if isinstance(one, Played)]
    assert {round(sum(one.payoffs), 9) for one in played} <= {2.0, 3.0, 4.0}
    assert len(agents) <= sum(result.payoffs) + 1e-9
    assert sum(result.payoffs) <= 2 * len(agents) + 1e-9


def test_a_contract_moves_payments_to_whoever_acts() -> None:
    public = get_dilemma("public-goods").game()
    under = Contract().apply(public, {"A0": 4, "A1": 0})
    assert under.table[0, 1, 1].tolist() == [0.5 + 4, 1.5 - 2, 1.5 - 2]
    assert (under.payoffs.sum(axis=-1) == public.payoffs.sum(axis=-1)).all()


def test_a_mediator_acts_for_delegators_by_their_number() -> None:
    under = Mediation().apply(PRISONERS, {"1": "A1", "2": "A0"})
    assert under.labels[0] == ("A0", "A1", "delegate")
    assert under.table[2, 2].tolist() == [2, 2]
    assert under.table[2, 0].tolist() == [3, 0]
    assert under.table[2, 1].tolist() == [1, 1]
    assert under.cooperate == (2, 2)


@pytest.mark.parametrize(
    ("design", "stable"),
    [
        ({"1": "A1", "2": "A0"}, (True, True)),
        ({"1": "A0", "2": "A0"}, (False, False)),
        ({"1": "A1", "2": "A1"}, (False, False)),
    ],
)
def test_a_mediator_is_stable_if_it_protects_who_delegates_alone(
    design: dict[str, str], stable: tuple[bool, bool]
) -> None:
    assert Mediation().stability(PRISONERS, design) == stable


@pytest.mark.parametrize(
    ("design", "stable"),
    [
        ({"A0": 2, "A1": 0}, (True, True)),
        ({"A0": 1, "A1": 0}, (True, False)),  # as good as defecting, never better
        ({"A0": 0, "A1": 0}, (False, False)),
        ({"A0": 0, "A1": -2}, (True, True)),
    ],
)
def test_a_contract_is_stable_if_it_pays_more_than_defection_gains(
    design: dict[str, int], stable: tuple[bool, bool]
) -> None:
    assert Contract().stability(PRISONERS, design) == stable


@pytest.mark.parametrize("design", [{"1": one, "2": two} for one in ("A0", "A1") for two in ("A0", "A1")])
def test_cooperation_without_the_mediator_is_stable_where_it_is_so_in_the_game(design: dict[str, str]) -> None:
    assert Mediation().stability(get_dilemma("stag-hunt").game(), design) == (True, False)


@pytest.mark.parametrize("name", ["prisoners", "public-goods", "travellers", "trust", "stag-hunt"])
@pytest.mark.parametrize("mechanism", [Mediation(), Contract()])
def test_the_theorems_designs_are_stable_in_every_game(name: str, mechanism: Mediation | Contract) -> None:
    game = get_dilemma(name).game()
    nash, dominant = mechanism.stability(game, best_design(game.seen_by(0), mechanism.sheet(game)))
    assert nash
    assert dominant or isinstance(mechanism, Mediation)


def _run(mechanism: Mechanism, game: NormalForm, **answers: Any) -> tuple[Any, list[Any], list[Question]]:
    def respond(question: Question) -> Answer:
        answer = answers.get(question.stage)
        if callable(answer):
            return dict(answer(question))
        return dict(answer) if answer is not None else question.sheet.fallback

    return play_with(mechanism, game, respond)


def approve_all(question: Question) -> Answer:
    return dict.fromkeys(question.sheet.fallback, True)


def test_a_contract_that_one_does_not_sign_does_not_hold() -> None:
    result, log, _ = _run(
        Contract(),
        PRISONERS,
        propose={"A0": 5, "A1": 0},
        vote=approve_all,
        sign=lambda question: {"sign": question.seat == 0},
        choose={"A0": 100, "A1": 0},
    )
    assert result.payoffs == (2.0, 2.0)
    [agreement] = [one for one in log if isinstance(one, Negotiated)]
    assert agreement.signed == ((True, False),)


def test_without_any_proposal_nobody_votes_and_the_game_is_played_as_it_is() -> None:
    result, _, asked = _run(Mediation(), PRISONERS, propose={}, choose={"A0": 0, "A1": 100})
    assert result.payoffs == (1.0, 1.0)
    assert [question.stage for question in asked] == ["propose"] * 2 + ["choose"] * 2
    assert "Nobody made a valid proposal" in asked[-1].told[0]


@pytest.mark.parametrize("ties", ["random", "all"])
def test_a_proposal_that_nobody_approves_does_not_take_effect(ties: Any) -> None:
    result, log, asked = _run(Contract(ties=ties), PRISONERS, propose={"A0": 5, "A1": 0}, choose={"A0": 0, "A1": 100})
    assert result.payoffs == (1.0, 1.0)
    assert [question.stage for question in asked] == ["propose"] * 2 + ["vote"] * 2 + ["choose"] * 2
    [agreement] = [one for one in log if isinstance(one, Negotiated)]
    assert (agreement.winners, agreement.tied) == ((), 0)
    assert "Nobody approved; the game continues without a contract." in asked[-1].told[-1]


def test_all_tied_winners_are_played_and_averaged_each_design_once() -> None:
    def propose(question: Question) -> Answer:
        return {"A0": 5, "A1": 0} if question.seat < 2 else {"A0": 0, "A1": 6}

    public = get_dilemma("public-goods").game()
    result, log, asked = _run(
        Contract(ties="all"),
        public,
        propose=propose,
        vote=approve_all,
        sign={"sign": True},
        choose=lambda question: {"A0": 100, "A1": 0} if question.seat == 0 else {"A0": 0, "A1": 100},
    )
    played = [one for one in log if isinstance(one, Played)]
    assert [one.weight for one in played] == pytest.approx([2 / 3, 1 / 3])
    assert len([question for question in asked if question.stage == "choose"]) == 6
    expected = [2 / 3 * (0.5 + 5) + 1 / 3 * (0.5 - 6)]
    assert result.payoffs[0] == pytest.approx(expected[0])


def test_the_winner_has_the_most_approvals() -> None:
    def propose(question: Question) -> Answer:
        return {"1": "A1", "2": "A0" if question.seat else "A1"}

    _, log, _ = _run(Mediation(), PRISONERS, propose=propose, vote={"P1": False, "P2": True})
    [agreement] = [one for one in log if isinstance(one, Negotiated)]
    assert agreement.winners == (1,)
    assert agreement.votes == ((1,), (1,))
    assert agreement.stable == ((False, False), (True, True))


def told_last(asked: list[Question], stage: str, seat: int) -> str:
    return next(question.told[-1] for question in asked if question.stage == stage and question.seat == seat)


def test_a_proposal_keeps_the_number_of_its_proposer_when_another_one_fails() -> None:
    def propose(question: Question) -> Answer:
        return {} if question.seat == 0 else {"1": "A1", "2": "A0"}

    _, log, asked = _run(Mediation(), PRISONERS, propose=propose, vote={"P2": True})
    lines = told_last(asked, "vote", 0).splitlines()
    assert lines[1:] == [
        "- P1 (proposed by you): no valid proposal",
        "- P2 (proposed by player 2): A1 if 1 delegate, A0 if 2 delegate",
    ]
    assert "P2 (proposed by you)" in told_last(asked, "vote", 1)
    [vote] = [question for question in asked if question.stage == "vote" and question.seat == 0]
    assert [blank.name for blank in vote.sheet.blanks] == ["P2"]
    [agreement] = [one for one in log if isinstance(one, Negotiated)]
    assert (agreement.votes, agreement.winners) == (((1,), (1,)), (1,))
    assert told_last(asked, "choose", 0).splitlines()[1].startswith("P2 (proposed by player 2): A1 if 1")


def test_players_are_told_who_did_not_sign() -> None:
    public = get_dilemma("public-goods").game()

    def sign(question: Question) -> Answer:
        return {"sign": question.seat == 1}

    design = {"A0": 5, "A1": 0}
    vote = {"P1": True, "P2": False, "P3": False}
    _, _, asked = _run(Contract(), public, propose=design, vote=vote, sign=sign)
    assert "because you and player 3 did not sign: P1 (proposed by you)" in told_last(asked, "choose", 0)
    assert "because player 1 and player 3 did not sign: P1 (" in told_last(asked, "choose", 1)
    _, _, asked = _run(Contract(), public, propose=design, vote=vote, sign={"sign": True})
    assert told_last(asked, "choose", 2).splitlines()[1:] == [
        "P1 (proposed by player 1): 5 for A0, 0 for A1",
        "All players signed it.",
    ]


@pytest.mark.parametrize(
    ("mechanism", "said", "unsaid"),
    [
        (Mediation(), "one of them is drawn", "averaged"),
        (Mediation(ties="all"), "each of them is played, and points are averaged", "drawn"),
        (Reputation(), "Your position in the game is also drawn", "keeps its position"),
        (Reputation(pairing="fixed-seats"), "Every agent keeps its position", "also drawn"),
    ],
)
def test_rules_follow_the_parameters(mechanism: Mechanism, said: str, unsaid: str) -> None:
    assert said in mechanism.rules(PRISONERS)
    assert unsaid not in mechanism.rules(PRISONERS)
    if isinstance(mechanism, Reputation):  # Roles of trust differ, so everybody keeps one.
        assert "keeps its position" in mechanism.rules(GAMES["trust"])


def test_who_proposes_once_is_told_so() -> None:
    for proposals in ("once", "per-match"):
        _, _, asked = _run(Contract(proposals=proposals), PRISONERS)
        assert ("You propose only once" in asked[0].ask) == (proposals == "once")


def test_repetition_shows_the_last_rounds_newest_last() -> None:
    def choose(question: Question) -> Answer:
        return {"A0": 100, "A1": 0} if question.round != 3 or question.seat else {"A0": 0, "A1": 100}

    _, log, asked = _run(Repetition(rounds=5, memory=2), PRISONERS, choose=choose)
    told = [question.told[0] for question in asked if question.seat == 1]
    assert "first round" in told[0]
    assert told[3].splitlines()[1:] == [
        "- round 2: player 1: A0; you: A0",
        "- round 3: player 1: A1; you: A0",
        "Rounds played so far: 3.",
    ]
    assert sum(one.weight for one in log if isinstance(one, Played)) == pytest.approx(1)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.sampled_from([2, 3]), st.integers(0, 10_000), st.booleans())
def test_everybody_plays_once_a_round_and_all_meet_sooner_or_later(
    models: int, players: int, seed: int, fixed: bool
) -> None:
    from labmates.mechanisms.base import Seats
    from labmates.mechanisms.play import one_round

    game = get_dilemma("prisoners" if players == 2 else "public-goods").game()
    agents = tuple(range(models * players))
    log: list[Any] = []
    mechanism = Reputation(rounds=4, pairing="fixed-seats" if fixed else "uniform")
    play = mechanism.play(game, Seats(agents, tuple(a % players for a in agents), seed, log=log), one_round)
    rng = random.Random(seed)
    questions = next(play)
    with suppress(StopIteration):  # the mechanism has ended
        while True:
            assert sorted(question.agent for question in questions) == list(agents)
            questions = play.send([random_answer(question, rng) for question in questions])
    assert len(log) == 4 * models
    for one in log:
        if fixed:
            assert [agent % players for agent in one.agents] == list(range(players))


def _shown(order: Any) -> Iterator[str]:
    _, _, asked = _run(Reputation(order=order, rounds=3), PRISONERS)
    yield from (question.told[0] for question in asked if question.round == 3)


def test_higher_orders_show_more_matches() -> None:
    lines = {order: sum(text.count("- round ") for text in _shown(order)) for order in (1, 3)}
    assert lines[3] >= lines[1] > 0


def deeds(*pairs: tuple[int, str]) -> tuple[Deed, ...]:
    return tuple(Deed(agent, seat, action) for seat, (agent, action) in enumerate(pairs))


def test_norms_tell_who_deserves_cooperation() -> None:
    # Agent 2 failed agent 3, who was good; then agent 1 punished agent 2.
    punished = Past(9, (1,), ((deeds((1, "A1"), (2, "A0")),), (deeds((2, "A1"), (3, "A0")),)))
    assert standing(punished, is_good)
    assert not tit_for_tat(punished, is_good)
    assert not grim(punished, is_good)
    guilty = Past(9, (2,), punished.rounds)
    assert not standing(guilty, is_good)
    assert tit_for_tat(guilty, is_good)
    nobody = Past(9, (7,), ())
    assert standing(nobody, is_good)
    assert tit_for_tat(nobody, is_good)
    assert grim(nobody, is_good)


@pytest.mark.parametrize(
    ("name", "terms", "said"),
    [
        ("telepathy", {}, "unknown mechanism 'telepathy'"),
        ("repetition", {"order": 3}, "unknown parameter 'order'"),
        ("repetition", {"continuation": 1.0}, "continuation"),
        ("reputation", {"order": 2}, "order"),
        ("contract+reputation", {}, "goes first"),
        ("contract+contract", {}, "is repeated"),
    ],
)
def test_wrong_mechanisms_are_told(name: str, terms: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_mechanisms(name, terms)


def test_a_mechanism_that_does_not_fit_a_game_is_told() -> None:
    from labmates.games.payoff_table import read_table

    uneven = read_table(
        "{name: uneven, actions: [[a, b], [a, b, c]], payoffs: {a a: [1, 1], a b: [1, 1], a c: [1, 1], b a: [1, 1], "
        "b b: [1, 1], b c: [1, 1]}}",
        "here",
    ).game()
    for mechanism in (Mediation(), Contract()):
        with pytest.raises(UsageError, match="same number of actions"):
            mechanism.check(uneven)
    assert check_mechanism(Repetition(), {"uneven": uneven}) == []
