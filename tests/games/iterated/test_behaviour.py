from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from labmates.games.iterated.behaviour import LIKE, TRAITS, Profile, profile
from labmates.games.iterated.match import Payoffs, Round, turned
from labmates.games.iterated.strategies import STRATEGIES, move_of

PAYOFFS = Payoffs()
ROUND: st.SearchStrategy[Round] = st.tuples(st.sampled_from(["C", "D"]), st.sampled_from(["C", "D"]))


def played(name: str, opponent: str, rounds: int = 12) -> list[Round]:
    match: list[Round] = []
    for _ in range(rounds):
        own = move_of(STRATEGIES[name], match, PAYOFFS, 0.5)
        match.append((own, move_of(STRATEGIES[opponent], turned(match), PAYOFFS, 0.5)))
    return match


def profile_of(matches: Sequence[Sequence[Round]]) -> Profile:
    return profile([(match, [own for own, _ in match]) for match in matches], PAYOFFS)


def test_tit_for_tat_is_nice_retaliatory_and_emulative_and_makes_no_trouble() -> None:
    found = profile_of([played("tit-for-tat", "alternator")])
    assert found.traits == {
        "nice": 1,
        "forgiving": 0,
        "retaliatory": 1,
        "troublemaking": 0,
        "emulative": 1,
    }
    assert found.affinity["tit-for-tat"] == 1


def test_who_always_defects_makes_trouble_and_forgives_nothing() -> None:
    found = profile_of([played("defect", "cooperate"), played("defect", "tit-for-tat")])
    assert found.traits["nice"] == 0
    assert found.traits["troublemaking"] == 1
    assert found.affinity["defect"] == 1
    assert found.affinity["cooperate"] == 0


def test_who_always_cooperates_forgives_all() -> None:
    found = profile_of([played("cooperate", "defect")])
    assert found.traits == {"nice": 1, "forgiving": 1, "retaliatory": 0, "troublemaking": 0, "emulative": 0}


def test_a_trait_without_occasion_has_no_number() -> None:
    found = profile_of([played("cooperate", "cooperate")])
    assert found.traits["forgiving"] is found.traits["retaliatory"] is None
    assert profile_of([[]]).affinity["grim"] is None


def test_matches_count_by_their_occasions() -> None:
    provoked, not_provoked = [("C", "D"), ("D", "D")], [("C", "D"), ("C", "C"), ("C", "C")]
    found = profile_of([provoked, not_provoked])  # type: ignore[list-item]
    assert found.traits["retaliatory"] == 0.5


@given(st.sampled_from(LIKE), st.sampled_from(sorted(STRATEGIES)))
def test_each_strategy_is_most_like_itself(name: str, opponent: str) -> None:
    found = profile_of([played(name, opponent)])
    assert found.affinity[name] == 1


@given(st.lists(st.lists(ROUND, max_size=10), max_size=4))
def test_all_shares_are_shares(matches: list[list[Round]]) -> None:
    found = profile_of(matches)
    assert set(found.traits) == set(TRAITS)
    assert set(found.affinity) == set(LIKE)
    assert all(value is None or 0 <= value <= 1 for value in (*found.traits.values(), *found.affinity.values()))
