from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from labmates.games.iterated.match import Action, Match, Round
from labmates.games.iterated.questions import QUESTIONS
from labmates.games.iterated.schedule import schedule
from labmates.stats import domains, intervals
from labmates.stats.figures import save_figure
from labmates.stats.multiplicity import holm
from labmates.stats.ratings import rate
from labmates.stats.validity import Tally
from labmates.workflows.tournament import figures
from labmates.workflows.tournament.design import cell_of
from labmates.workflows.tournament.report import Group, compared, hypotheses_table, rate_of, rates_table, scores_table
from labmates.workflows.tournament.results import Tournament

TEAMS = {"A": ["P1", "P2", "P3"], "B": ["P4", "P5", "P6"]}
CONDITION: dict[str, Any] = {
    "model": "m",
    "rounds": 10,
    "temptation": 5,
    "reward": 3,
    "punishment": 0,
    "sucker": -1,
    "prices": {},
}


def simulated(
    structure: str,
    seed: int,
    level: Callable[[np.random.Generator], float],
    *,
    rounds: int = 10,
    models: dict[str, str] | None = None,
    **condition: Any,
) -> Tournament:
    """Return a tournament whose players cooperate by chance, at a rate that each draws by itself."""
    rng = np.random.default_rng([seed, len(structure), ord(structure[0])])
    team_of = {player: team for team, players in TEAMS.items() for player in players}
    rates = {player: level(rng) for player in team_of}

    def move(player: str) -> Action:
        return "C" if rng.random() < rates[player] else "D"

    matches = []
    plan = schedule(TEAMS, within_teams=structure != "gc", seed=seed)
    for number, (one, other) in enumerate((pair for pairs in plan for pair in pairs), start=1):
        both: list[Round] = [(move(one), move(other)) for _ in range(rounds)]
        matches.append(Match(number, (one, other), (team_of[one], team_of[other]), tuple(both), "length"))
    return Tournament(
        {**CONDITION, "structure": structure, **condition},
        models or dict.fromkeys(team_of, "m"),
        tuple(matches),
        (),
        {"m": Tally(100, 0)},
        f"{structure}{seed}",
        seed,
    )


def covers(found: intervals.Estimate, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def test_both_intervals_cover_independent_players_at_their_nominal_rate() -> None:
    rng = np.random.default_rng(0)
    players = tournaments = 0
    for _ in range(120):
        levels = rng.beta(3, 5, size=(5, 6))
        found = rate_of((rng.binomial(50, levels) / 50).tolist())
        assert found is not None
        players += covers(found.over_players, 3 / 8)
        tournaments += covers(found.over_tournaments, 3 / 8)
    assert 0.89 <= players / 120 <= 1
    assert 0.89 <= tournaments / 120 <= 1


def test_where_players_of_a_tournament_are_alike_only_its_own_interval_covers() -> None:
    rng = np.random.default_rng(3)
    hits = {"rounds": 0, "players": 0, "tournaments": 0}
    for _ in range(200):
        levels = rng.normal(0.4, 0.15, size=5).clip(0, 1)
        values = [list(rng.binomial(80, level, size=6) / 80) for level in levels]
        found = rate_of(values)
        assert found is not None
        share, n = float(np.mean(values)), 80 * 6 * 5
        error = float(np.sqrt(share * (1 - share) / n))
        hits["rounds"] += covers(intervals.interval(share, error, n - 1, domains.SHARE, n=n), 0.4)
        hits["players"] += covers(found.over_players, 0.4)
        hits["tournaments"] += covers(found.over_tournaments, 0.4)
    assert hits["rounds"] / 200 < 0.4
    assert hits["players"] / 200 < 0.8
    assert hits["tournaments"] / 200 == pytest.approx(0.95, abs=0.05)


def of(rates: dict[str, float], replicates: int = 4, **condition: Any) -> list[Tournament]:
    def known(value: float) -> Callable[[np.random.Generator], float]:
        return lambda rng: min(1.0, max(0.0, float(rng.normal(value, 0.05))))

    return [
        simulated(structure, seed, known(level), **condition)
        for structure, level in rates.items()
        for seed in range(replicates)
    ]


def grouped(tournaments: Sequence[Tournament]) -> list[Group]:
    return [group for groups in compared(tournaments) for group in groups]


def hypotheses(tournaments: Sequence[Tournament]) -> Sequence[dict[str, Any]]:
    return hypotheses_table(compared(tournaments)).rows


def test_hypotheses_hold_where_super_additive_tournaments_are_above_both_others() -> None:
    first, second = hypotheses(of({"ri": 0.2, "gc": 0.3, "sa": 0.6}))
    assert (first["hypothesis"], second["hypothesis"]) == ("H1 cooperation", "H2 one-shot cooperation")
    assert first["difference"] == pytest.approx(0.3, abs=0.06)
    assert first["p"] < 0.01
    assert second["p"] < 0.05
    assert hypotheses(of({"ri": 0.2, "gc": 0.6, "sa": 0.6}))[0]["p"] > 0.05


def test_p_values_of_one_table_are_adjusted_for_each_other() -> None:
    rows = hypotheses(of({"ri": 0.2, "gc": 0.3, "sa": 0.6}))
    assert [row["p_holm"] for row in rows] == pytest.approx(holm([row["p"] for row in rows]))
    assert max(row["p_holm"] - row["p"] for row in rows) > 0


def test_without_two_tournaments_of_each_structure_the_lack_of_a_test_is_explained() -> None:
    first, _ = hypotheses(of({"ri": 0.2, "sa": 0.6}))
    assert first["p"] is first["difference"] is None
    assert "too few of: gc" in first["reason"]
    assert {"RI", "GC", "SA"} & {*first} == {"RI", "SA"}


def test_tournaments_of_other_settings_are_not_thrown_together() -> None:
    some = [*of({"sa": 0.2}, replicates=2), *of({"sa": 0.8}, replicates=3, reward=4)]
    assert sorted(len(group.tournaments) for group in grouped(some)) == [2, 3]
    assert len(hypotheses([*of({"sa": 0.2}, rounds_per_player=40), *of({"gc": 0.2}, rounds_per_player=24)])) == 2


def test_tournaments_of_one_structure_with_other_budgets_are_told_apart() -> None:
    some = [*of({"sa": 0.2, "ri": 0.2}, replicates=2, rounds_per_player=20)]
    some += of({"sa": 0.8, "ri": 0.2}, replicates=3, rounds_per_player=40)
    groups = grouped(some)
    runs = {(group.structure, group.settings["rounds_per_player"]): len(group.tournaments) for group in groups}
    assert runs == {("sa", 20): 2, ("sa", 40): 3, ("ri", 20): 2, ("ri", 40): 3}
    rows = [*rates_table(groups).rows, *hypotheses(some)]
    assert {row["rounds_per_player"] for row in rows} == {20, 40}


def test_each_model_of_a_mixed_tournament_has_its_own_rates() -> None:
    models = {**dict.fromkeys(TEAMS["A"], "kind"), **dict.fromkeys(TEAMS["B"], "unkind")}
    rates = iter([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    groups = grouped([simulated("sa", 1, lambda rng: next(rates), models=models)])
    assert {group.model: group.rates["cooperation"].value for group in groups} == {"kind": 1, "unkind": 0}
    assert all(group.among == ("kind", "unkind") for group in groups)


def test_a_group_tells_curves_teams_and_behaviour() -> None:
    [group] = grouped(of({"sa": 0.5}, replicates=2))
    curve, cooperation = group.curve(Tournament.moves), group.rates["cooperation"].over_players
    assert len(curve) == 50
    assert [point.n for point in group.curve(Tournament.first_moves)] == [12] * 5
    assert (curve[-1].value, curve[-1].low, curve[-1].high) == pytest.approx(
        (cooperation.value, cooperation.low, cooperation.high)
    )
    assert group.rates.keys() >= {"within teams", "between teams"}
    assert len(group.profiles) == 12
    assert group.mean_profile["like cooperate"] == pytest.approx(cooperation.value)
    [alone] = grouped(of({"ri": 0.5}, replicates=2))
    assert not {"within teams", "between teams"} & {*alone.rates}


def test_a_single_tournament_has_means_and_no_interval_over_tournaments() -> None:
    [group] = grouped(of({"gc": 0.5}, replicates=1))
    assert group.rates["cooperation"].over_players.low is not None
    assert group.rates["cooperation"].over_tournaments.reason == intervals.ONE
    assert rate_of([[]]) is None


def test_answers_count_by_question_and_unreadable_ones_do_not() -> None:
    from dataclasses import replace

    row = {name: {"answer": 1, "truth": 1, "right": name != "total"} for name in QUESTIONS}
    nothing = {name: {"answer": None, "truth": 1, "right": None} for name in QUESTIONS}
    [one] = of({"sa": 0.5}, replicates=1)
    [group] = grouped([replace(one, answers=(("P1", row), ("P2", nothing), ("P2", row)))])
    assert group.rates["right answers"].value == pytest.approx(10 / 11)
    for name in QUESTIONS:
        assert group.rates[name.replace("_", " ")].value == float(name != "total")
    assert group.rates["total"].over_players.n == 2


def test_metrics_of_a_run_are_what_was_played() -> None:
    match = Match(1, ("P1", "P4"), ("A", "B"), (("C", "C"), ("C", "D")), "leave", ("P4",))
    off = Match(2, ("P1", "P2"), ("A", "A"), (), "not_played", ("P1",))
    one = Tournament({**CONDITION, "structure": "sa"}, {"P1": "m", "P4": "m"}, (match, off), (), {"m": Tally(8, 2)})
    assert one.metrics() == {
        "cooperation": 0.75,
        "one_shot_cooperation": 1.0,
        "between_team_cooperation": 0.75,
        "points_per_round": (3 + 3 - 1 + 5) / 4,
        "rounds": 2,
        "matches": 1,
        "matches_not_played": 1,
        "matches_left": 1,
        "matches_forfeited": 0,
        "failed_decision_rate": 0.25,
    }


@pytest.mark.parametrize("structures", [("ri", "gc", "sa"), ("ri",), ("sa",)])
def test_figures_are_drawn_of_whatever_there_is(tmp_path: Path, structures: Sequence[str]) -> None:
    groups = grouped(of(dict.fromkeys(structures, 0.5), replicates=2))
    for number, draw in enumerate((figures.cooperation_figure, figures.one_shot_figure, figures.teams_figure)):
        figure = draw(groups)
        if figure is None:
            assert "sa" not in structures
            continue
        save_figure(figure, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    assert figures.comprehension_figure(groups) is None
    ends = [
        np.asarray(line.get_ydata())[-1]
        for axes in figures.cooperation_figure(groups).axes
        for line in axes.lines
        if np.size(line.get_xdata()) > 2
    ]
    assert len(ends) == len(structures)
    assert fmean(ends) == pytest.approx(0.5, abs=0.1)


def test_scores_tell_who_won_and_which_team() -> None:
    rounds: dict[tuple[str, str], list[Round]] = {("P1", "P4"): [("C", "D"), ("D", "D")], ("P2", "P5"): [("C", "C")]}
    matches = [
        Match(number, pair, ("A", "B"), tuple(both), "length") for number, (pair, both) in enumerate(rounds.items(), 1)
    ]
    models = dict.fromkeys(("P1", "P2", "P4", "P5"), "m")
    found = Tournament({**CONDITION, "structure": "gc"}, models, tuple(matches), (), {}, run_id="r")
    rows = {row["player"]: row for row in scores_table([found]).rows}
    assert {player: (row["points"], row["wins"]) for player, row in rows.items()} == {
        "P1": (-1, False),
        "P2": (3, False),
        "P4": (5, True),
        "P5": (3, False),
    }
    assert {player: (row["team_points"], row["team_wins"]) for player, row in rows.items()} == {
        "P1": (2, False),
        "P2": (2, False),
        "P4": (8, True),
        "P5": (8, True),
    }
    alone = Tournament({**CONDITION, "structure": "ri"}, models, tuple(matches), (), {})
    assert {row["team_wins"] for row in scores_table([alone]).rows} == {None}


def played(models: dict[str, str], matches: list[tuple[str, str, list[Round]]], **failures: Tally) -> Tournament:
    made = [
        Match(number, (one, other), ("A", "B"), tuple(rounds), "length")
        for number, (one, other, rounds) in enumerate(matches, start=1)
    ]
    tallies = {model: failures.get(model, Tally(4, 0)) for model in models.values()}
    return Tournament({**CONDITION, "structure": "sa"}, models, tuple(made), (), tallies, "run")


MODELS = {"P1": "kind", "P2": "mean", "P3": "kind", "P4": "mean"}
MATCHES: list[tuple[str, str, list[Round]]] = [
    ("P1", "P2", [("C", "D"), ("D", "D"), ("D", "D")]),
    ("P4", "P3", [("D", "C")]),
    ("P1", "P3", [("C", "C")]),
    ("P2", "P4", [("D", "D")]),
]


def test_a_tournament_in_which_all_models_meet_is_a_metagame_of_rounds() -> None:
    cell = cell_of(played(MODELS, MATCHES), "SA")
    assert cell.models == ("kind", "mean")
    assert cell.payoffs.tolist() == [[3, -0.5], [2.5, 0]]  # longer matches weigh more
    assert cell.scale is not None
    assert cell.scale.normalise(cell.payoffs)[0, 0] == 1


def test_a_tournament_in_which_some_models_never_meet_has_means_alone() -> None:
    cell = cell_of(played(MODELS, MATCHES[:3]), "SA")
    assert cell.payoffs.tolist() == [pytest.approx(4 / 6), 2.5]
    never_played = cell_of(played(MODELS | {"P5": "late"}, MATCHES), "SA")
    assert np.isnan(never_played.payoffs).tolist() == [False, False, True]


def test_models_that_failed_too_often_are_not_rated_unless_kept() -> None:
    tournament = played(MODELS, MATCHES, mean=Tally(4, 1))
    cell = cell_of(tournament, "SA")
    assert (cell.models, cell.payoffs.tolist(), cell.left_out) == (("kind",), [[3]], {"mean": Tally(4, 1)})
    assert cell_of(tournament, "SA", keep_failed=True).models == ("kind", "mean")
    both = played(MODELS, MATCHES, mean=Tally(4, 4), kind=Tally(4, 4))
    assert rate(cell_of(both, "SA")).cell.models == ()
