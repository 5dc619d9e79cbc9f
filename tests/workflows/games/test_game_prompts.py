"""What players of games, dilemmas and tournaments read is true of what is played, and shows the form of an answer."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.agents.decisions import numbers_form, read_decision
from labmates.budgets.tokens import text_of
from labmates.games.registry import GAMES, make_game
from labmates.models.objects import UnusableAnswerError
from labmates.models.scripted.base import Heard
from labmates.workflows.dilemmas.briefs import Briefing as DilemmaBriefing
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.games.briefs import Briefing, Round
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.games.players import read
from labmates.workflows.play.wordings import Wording
from tests.agents.test_decisions import reply
from tests.support.orders import check_rendered

OURS = ("weakest-link", "common-pool", "common-pool-sanctions", "collective-risk", "o-ring", "public-goods")


def briefing(game: str, **more: Any) -> Briefing:
    condition = GameCondition(game=game, model="scripted:random", **more)
    return Briefing(condition, condition.make_game())


def rounds_of(game: str, *decisions: Any, tokens: Any = None, **more: Any) -> list[Round]:
    """Return rounds with these decisions of each player, and a new one."""
    made = make_game(game, more)
    rounds = []
    for one in decisions:
        decided = np.array(one).reshape(made.groups, made.group_size, -1)
        payoffs = made.payoffs(decided)
        rounds.append(Round(decisions=decided, tokens=tokens, payoffs=payoffs))
    return [*rounds, Round()]


def test_the_rule_on_the_least_effort_is_true() -> None:
    rule = make_game("weakest-link").rules("standard").splitlines()[3]
    assert rule.endswith("L rises if and only if all who made the lowest effort make more.")
    for before, after in product(product(range(3), repeat=3), repeat=2):
        if any(new < old for old, new in zip(before, after, strict=True)):
            continue
        least_make_more = all(new > old for old, new in zip(before, after, strict=True) if old == min(before))
        assert (min(after) > min(before)) == least_make_more


@pytest.mark.parametrize("game", ["common-pool", "common-pool-sanctions"])
@pytest.mark.parametrize("framing", ["standard", "alternate"])
def test_an_overdrawn_pool_is_spoken_of_where_it_can_be(game: str, framing: Any) -> None:
    said = "If more than 100 units are taken, all keep what they took, and there is nothing to share."
    assert said not in make_game(game, {"group_size": 5}).rules(framing)
    for size in (8, 10):
        assert said in make_game(game, {"group_size": size}).rules(framing)
    all_of_it = np.full((2, 8, 1), 10)
    assert (make_game(game, {"group_size": 8}).payoffs(all_of_it) == 10).all()


def test_savings_are_no_payoff_and_are_added_up() -> None:
    players = briefing("collective-risk", group_size=2)
    rounds = rounds_of("collective-risk", [3, 3, 3, 3], [8, 3, 3, 3], group_size=2)
    system, order = (text_of(message.content) for message in players.decide("A1", rounds))
    assert "payoff" not in system + order
    assert ": you saved in this round: 7; your savings so far: 7\n" in order
    assert ": you saved in this round: 2; your savings so far: 9\n" in order


def test_payoffs_are_told_by_round_and_together() -> None:
    rounds = rounds_of("weakest-link", [3, 3, 3, 4], [5, 3, 3, 4], group_size=2)
    order = text_of(briefing("weakest-link", group_size=2).decide("A1", rounds)[1].content)
    assert ": your payoff in this round: 3; in all rounds so far: 3\n" in order
    assert ": your payoff in this round: 1; in all rounds so far: 4\n" in order


@pytest.mark.parametrize("game", OURS)
@pytest.mark.parametrize("framing", ["standard", "alternate"])
def test_the_form_of_an_answer_is_shown_and_favours_no_number(game: str, framing: str) -> None:
    made = GAMES.get(game)(group_size=2)
    players = briefing(game, framing=framing, group_size=2)
    asked = [players.decide("A1", [Round()])]
    if made.sanction_limit:
        asked.append(players.sanction("A1", rounds_of(game, [3, 3, 3, 3], group_size=2)[:1]))
    for messages, names in zip(asked, ([one.name for one in made.asked], ["A2"]), strict=False):
        order = text_of(messages[1].content)
        dots = ", ".join(f'"{name}": …' for name in names)
        assert order.endswith(f"Use this form, with your numbers in place of the dots: {{{dots}}}")
        # Who repeats the form has decided nothing.
        with pytest.raises(UnusableAnswerError, match="can't be read"):
            read_decision(reply(order), numbers_form(dict.fromkeys(names, (0, 10))))


@pytest.mark.parametrize("game", OURS)
@pytest.mark.parametrize("wording", get_args(Wording))
@settings(max_examples=30)
@given(data=st.data(), framing=st.sampled_from(["standard", "alternate"]), played=st.integers(0, 2))
def test_every_text_renders_all_facts_and_players_read_them(
    game: str, wording: Wording, data: st.DataObject, framing: str, played: int
) -> None:
    players, made = briefing(game, framing=framing, wording=wording, group_size=3), make_game(game, {"group_size": 3})
    decision = st.sampled_from(list(made.decisions()))
    rounds = [data.draw(st.lists(decision, min_size=6, max_size=6)) for _ in range(played)]
    known = rounds_of(game, *rounds, group_size=3)
    orders = [players.decide("B2", known), players.deliberate("B2", known)]
    if made.sanction_limit and played:
        orders.append(players.sanction("B2", known[:-1]))
    for messages in orders:
        check_rendered(messages)
        said = read(Heard(tuple(messages)))
        assert said is not None
        assert said.game == made
        assert (said.group, said.seat) == (1, 1)
        assert said.last == ({"B1": rounds[-1][3], "B3": rounds[-1][5]} if played else {})


@pytest.mark.parametrize(
    ("game", "said"),
    [
        ("weakest-link", "requires trust that nobody chooses less"),
        ("common-pool-sanctions", "The more is taken, the less is left to grow"),
        ("collective-risk", "contributed by all so far: 20 of 100 (20%)\n- still needed from all players together: 80"),
        (
            "collective-risk",
            "this is the last round: if the target is missed, all savings are lost with a probability of 0.5",
        ),
        ("o-ring", "Challenger"),
        ("public-goods", "# Rules of the game: Public goods"),
    ],
)
@pytest.mark.parametrize("wording", get_args(Wording))
def test_the_papers_wording_has_what_its_prompts_say_beside_the_rules(game: str, said: str, wording: Wording) -> None:
    made = make_game(game)
    decision = [5] if len(made.quantities) == 1 else list(made.default_decision)
    players = briefing(game, rounds=2, wording=wording, group_size=2)
    messages = players.decide("A1", rounds_of(game, [decision] * 4, group_size=2, rounds=2))
    assert (said in "\n".join(text_of(message.content) for message in messages)) is (wording == "paper")


def dilemma(mechanism: str) -> str:
    condition = DilemmaCondition(game="prisoners", mechanism=mechanism, entrants=["scripted:grim"])
    from labmates.mechanisms.base import Question, Sheet

    question = Question(0, 0, "choose", "s", 1, (), "?", Sheet((), {}))
    messages = DilemmaBriefing(condition.table, condition.mechanisms()).ask(question, "none")
    return text_of(messages[0].content)


def test_the_aim_in_a_dilemma_is_ones_own_total_and_nothing_more() -> None:
    aim = dilemma("none").partition("# Your aim\n")[2]
    assert aim == "Earn as many points as you can for yourself, in total."


def test_rules_around_each_other_say_what_takes_place_how_often() -> None:
    every_round, once = (
        "Everything below happens again in every round.",
        "The agreement applies to everything below",
    )
    outer = dilemma("repetition+contract")
    assert outer.index("round after round") < outer.index(every_round) < outer.index("a contract")
    inner = dilemma("contract+repetition")
    assert inner.index("a contract") < inner.index(once) < inner.index("round after round")
    for alone in ("repetition", "contract"):
        assert every_round not in dilemma(alone)
        assert once not in dilemma(alone)
