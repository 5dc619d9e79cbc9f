"""Published data of CoopEval are rated beside the published ratings, and unreadable folders are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.published_ratings import main, published_tables, read_published
from tests.cli.test_ratings_verb import MATCHUPS


def published(folder: Path, run: str, mechanism: str = "NoMechanism", **files: object) -> Path:
    """Write a folder of CoopEval's published data, two agents in a prisoner's dilemma; other files as given."""
    agents = [{"llm": {"model": f"lab/{name}"}, "type": "CoTAgent"} for name in ("dove", "hawk")]
    profile = [
        {"players": [agents[seat] for seat in match["seats"]], "payoffs": [match["rounds"]]} for match in MATCHUPS
    ]
    by_agent = {
        name: dict(zip(("lab/dove(CoT)", "lab/hawk(CoT)"), values, strict=True))
        for name, values in {
            "agent_average_payoff": (1.0, 2.0),
            "deviation_ratings": (-1.0, 0.0),
        }.items()
    }
    data = {
        "config": {"game": {"type": "PrisonersDilemma"}, "mechanism": {"type": mechanism}},
        "matchup_payoffs": {"discount": 1.0, "profile": profile},
        **by_agent,
        **files,
    }
    place = folder / run / f"{mechanism}_prisoners"
    place.mkdir(parents=True)
    for name, value in data.items():
        if value is not None:
            (place / f"{name}.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return place


def test_published_data_are_rated_beside_the_published_ratings(tmp_path: Path) -> None:
    main_study = tmp_path / "data" / "main_study"
    published(main_study, "run1")
    published(main_study, "run2", deviation_ratings={"lab/dove(CoT)": 0.0, "lab/hawk(CoT)": 0.0})
    averages, cells = published_tables(*read_published(tmp_path))[1:]
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
    overall, averages, cells = published_tables(*read_published(tmp_path))
    assert [cell["mean_apart"] for cell in cells.rows[2:]] == [pytest.approx(0, abs=1e-12)] * 2
    assert [row["mean"] for row in averages.rows[2:]] == [pytest.approx(1.8), pytest.approx(2.1)]
    assert [(row["rating"], row["average"], row["lab/hawk(CoT)"]) for row in overall.rows] == [
        ("mean", "0.500", "1.000"),
        ("rank", "1.500", "1.000"),
        ("mean", "0.950", "1.100"),
    ]


def test_unreadable_folders_are_named_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path, "good")
    published(tmp_path, "lfs", matchup_payoffs="version https://git-lfs.github.com/spec/v1\n")
    published(tmp_path, "missing", matchup_payoffs=None)
    published(tmp_path, "odd", matchup_payoffs={"discount": 1.0, "profile": [{"players": 3}]})
    published(tmp_path, "other", "Voting")
    published(tmp_path, "partial", deviation_ratings={"lab/dove(CoT)": 0.0})
    assert main([str(tmp_path), "--summary"]) == 1
    printed = capsys.readouterr()
    assert "lab/dove(CoT)" in printed.out
    for said in (
        "lfs/NoMechanism_prisoners is left out: matchup_payoffs.json is a pointer of Git LFS",
        "missing/NoMechanism_prisoners is left out: matchup_payoffs.json is missing",
        "odd/NoMechanism_prisoners is left out: matchup_payoffs.json does not have the published form",
        "other/Voting_prisoners is left out: unknown mechanism 'Voting'",
        "partial/NoMechanism_prisoners is left out: deviation_ratings.json has no number for each of",
    ):
        assert said in printed.err
    with pytest.raises(SystemExit):
        main([str(tmp_path / "lfs")])
    assert "that can be rated; the first of 1 unreadable ones" in capsys.readouterr().err
