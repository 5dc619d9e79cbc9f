"""Published data of CoopEval are rated beside the published ratings and shown; unreadable folders are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labmates.stats.ratings import Evolution, rate
from labmates.workflows.dilemmas.frames import outcomes_frame, responses_frame
from labmates_profiles.coopeval.records import published_plays, rate_published
from labmates_profiles.coopeval.tables import published_tables
from tests.profiles.published_coopeval import AGENTS, NAMES, PAYOFFS, SEATS, moves, published
from tests.support.command_line import Labmates


def test_published_data_are_rated_beside_the_published_ratings(tmp_path: Path) -> None:
    main_study = tmp_path / "data" / "main_study"
    published(main_study, "run1")
    published(main_study, "run2", deviation_ratings={"lab/dove(CoT)": 0.0, "lab/hawk(CoT)": 0.0})
    averages, cells = published_tables(rate_published(tmp_path, Evolution())[0])[1:]
    first, second = cells.rows
    assert (first["run"], first["mean_apart"], first["fitness_apart"]) == ("run1", 0, None)
    assert first["deviation_apart"] == pytest.approx(0, abs=1e-9)
    assert (first["ranks_differ"], first["published_ranks"], first["ranks"]) == (False, "2 1", "2 1")
    assert (second["ranks_differ"], second["published_ranks"], second["ranks"]) == (True, "1.5 1.5", "2 1")
    assert second["why"] == "frozen early"
    assert "Ranks differ in 1 of 2 cells" in cells.notes[0]
    assert [(row["model"], row["published_rank"], row["rank"]) for row in averages.rows] == [
        ("lab/dove(CoT)", 1.75, 2.0),
        ("lab/hawk(CoT)", 1.25, 1.0),
    ]


def test_reputation_has_means_of_agents_and_table_2_has_all_mechanisms(tmp_path: Path) -> None:
    """Full cooperation pays 2, full defection 1; the second of two rounds has the weight 0.8, the first 0.2."""
    points = {"dove": ([2, 2], [0, 2]), "hawk": ([3, 2], [2, 2])}
    profile = [
        {"player": {"llm": {"model": f"lab/{name}"}, "type": "CoTAgent"}, "points": rounds}
        for name, agents in points.items()
        for rounds in agents
    ]
    payoffs = {"discount": 0.8, "profile": profile}
    means = {"lab/dove(CoT)": 1.8, "lab/hawk(CoT)": 2.1}
    for name in ("run1", "run2"):
        published(tmp_path, name)
        files = {"matchup_payoffs": payoffs, "agent_average_payoff": means, "deviation_ratings": None}
        published(tmp_path, name, "ReputationFirstOrder", **files)
    overall, averages, cells = published_tables(rate_published(tmp_path, Evolution())[0])
    assert [cell["mean_apart"] for cell in cells.rows[2:]] == [pytest.approx(0, abs=1e-12)] * 2
    assert [row["mean"] for row in averages.rows[2:]] == [pytest.approx(1.8), pytest.approx(2.1)]
    assert [(row["rating"], row["average"], row["lab/hawk(CoT)"]) for row in overall.rows] == [
        ("mean", "0.500", "1.000"),
        ("rank", "1.500", "1.000"),
        ("mean", "0.950", "1.100"),
    ]


def test_unreadable_folders_are_named_and_left_out(labmates: Labmates, tmp_path: Path) -> None:
    published(tmp_path, "good")
    published(tmp_path, "lfs", matchup_payoffs="version https://git-lfs.github.com/spec/v1\n", records=None)
    published(tmp_path, "missing", matchup_payoffs=None)
    published(tmp_path, "odd", matchup_payoffs={"discount": 1.0, "profile": [{"players": 3}]}, records="[{}]")
    published(tmp_path, "other", "Voting")
    published(tmp_path, "partial", deviation_ratings={"lab/dove(CoT)": 0.0})
    rated = labmates("analyze", "coopeval", "ratings", "--folder", str(tmp_path), "--summary")
    assert rated.code == 1
    assert "lab/dove(CoT)" in rated.out
    for said in (
        "lfs/NoMechanism_prisoners is left out: matchup_payoffs.json is a pointer of Git LFS",
        "missing/NoMechanism_prisoners is left out: matchup_payoffs.json is missing",
        "odd/NoMechanism_prisoners is left out: matchup_payoffs.json does not have the published form",
        "other/Voting_prisoners is left out: unknown mechanism 'Voting'",
        "partial/NoMechanism_prisoners is left out: deviation_ratings.json has no number for each of",
    ):
        assert said in rated.err
    none = labmates("analyze", "coopeval", "ratings", "--folder", str(tmp_path / "lfs"))
    assert none.code == 2
    assert "that can be read; the first of 1 unreadable ones" in none.err
    shown = labmates("analyze", "coopeval", "choices", "--folder", str(tmp_path), "--table", "pooled", "--json")
    assert shown.code == 1
    assert "odd/NoMechanism_prisoners is left out: records.jsonl does not have the published form" in shown.err


def test_actions_of_published_records_are_those_that_were_played(labmates: Labmates, tmp_path: Path) -> None:
    """Doves cooperate and hawks don't, in half of the seats each; means follow from the records as from the payoffs."""
    published(tmp_path, "run1")
    [play], unread = published_plays(tmp_path)
    assert not unread
    assert rate(play.cell()).mean == pytest.approx(rate_published(tmp_path, Evolution())[0][0].rated.mean)
    rows = labmates("analyze", "coopeval", "choices", "--folder", str(tmp_path), "--table", "actions", "--json").records
    shares = {(row["model"], row["action"]): (row["share"], row["choices"]) for row in rows}
    assert shares == {
        (model, action): (float((action == "A0") == (model == NAMES[0])), 4)
        for model in NAMES
        for action in ("A0", "A1")
    }


def test_rounds_of_published_records_have_weights_and_answers(tmp_path: Path) -> None:
    game = "\n".join(json.dumps([moves(*match)] * 3) for match in zip(SEATS, PAYOFFS, strict=True))
    rounds = [[list(payoffs)] * 3 for payoffs in PAYOFFS]
    profile = [
        {"players": [AGENTS[seat] for seat in seats], "payoffs": [each]}
        for seats, each in zip(SEATS, rounds, strict=True)
    ]
    published(tmp_path, "run1", "Repetition", records=game, matchup_payoffs={"discount": 0.5, "profile": profile})
    [play], _ = published_plays(tmp_path)
    assert [(each.match, each.round, each.weight) for each in play.rounds[:3]] == [
        ("1", 0, 0.5),
        ("1", 1, 0.25),
        ("1", 2, 0.25),
    ]
    answers = responses_frame([play]).set_index(["model", "before", "action"])["share"]
    assert answers[NAMES[1], "A0", "A1"] == 1


def test_agents_under_published_reputation_keep_their_seats(tmp_path: Path) -> None:
    """Two models have two agents each: every round has two matches in one line."""
    line = [moves(SEATS[1], (0, 3)), moves(SEATS[2], (3, 0)), moves(SEATS[0], (2, 2)), moves(SEATS[3], (1, 1))]
    points = {"dove": ([0, 2], [0, 2]), "hawk": ([3, 1], [3, 1])}
    profile = [
        {"player": AGENTS[name == "hawk"], "points": rounds} for name, agents in points.items() for rounds in agents
    ]
    payoffs = {"discount": 0.8, "profile": profile}
    published(tmp_path, "run1", "Reputation", records=json.dumps(line), matchup_payoffs=payoffs)
    [play], _ = published_plays(tmp_path)
    assert (play.mechanism, play.has_metagame) == ("reputation+", False)
    assert [(each.agents, each.round) for each in play.rounds] == [((0, 3), 0), ((2, 1), 0), ((0, 1), 1), ((2, 3), 1)]
    assert play.cell().payoffs == pytest.approx([1.6, 1.4])


@pytest.mark.parametrize(("mechanism", "thing"), [("Mediation", "mediator"), ("Contracting", "contract")])
def test_votes_signatures_and_designs_are_read(tmp_path: Path, mechanism: str, thing: str) -> None:
    names = [f"PrisonersDilemmaAction.{action}" for action in ("COOPERATE", "DEFECT")]
    good: Any = [[1, names[1]], [2, names[0]]] if thing == "mediator" else {names[0]: 2, names[1]: 0}
    designs = {f"{NAMES[0]}#P1": {thing: good}, f"{NAMES[1]}#P2": {thing: None}}
    entry = {
        "votes": [{"votes": {"1": True, "2": False}}, {"votes": {"1": True, "2": True}}],
        f"selected_{thing}_index": 1,
        "moves": moves(SEATS[1], (2, 2), mediated=thing == "mediator"),
    }
    if thing == "contract":
        entry["signatures"] = {f"{NAMES[0]}#P1": {"agree": True}, f"{NAMES[1]}#P2": {"agree": False}}
    files = {f"{thing}_design": designs, "records": json.dumps([entry])}
    published(tmp_path, "run1", mechanism, **files)
    [play], _ = published_plays(tmp_path)
    [agreement] = play.agreements
    assert agreement.votes == ((0,), (0, 1))
    assert (agreement.winners, agreement.tied) == ((0,), 1)
    assert agreement.stable == ((True, True), None)
    assert agreement.signed == (((True, False),) if thing == "contract" else ())
    assert play.rounds[0].actions == (("delegate", "delegate") if thing == "mediator" else ("A0", "A1"))
    [outcome] = outcomes_frame([play]).to_dict("records")
    assert (outcome["unanimous"], outcome["adopted"]) == (1, thing == "mediator")
