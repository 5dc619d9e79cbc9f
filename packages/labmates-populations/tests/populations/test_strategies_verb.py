from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent
from labmates.records.store import Store
from tests.support.command_line import Labmates
from tests.support.strategies import library, strategy, write

KNOWN = {"collective": "return C", "exploitative": "return D"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of verdicts, empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "labmates" / "verdicts"


def test_a_game_is_played_and_told_as_json(labmates: Labmates) -> None:
    write(labmates.folder, strategy("return C if history.round_number != 17 else 1 / 0", name="Strategy_SELFISH_1"))
    bad = "model.py:Strategy_SELFISH_1"
    words = ["--players", bad, "reference:cooperate", "reference:defect", "--json"]
    done = labmates("strategies", "play", "--game", "public-goods", "--rounds", "20", "--k", "2", *words)
    [told] = done.records
    assert done.code == 0
    assert told["actions"][:2] == [["C", "C", "D"]] * 2
    assert told["actions"][17] == ["D", "C", "D"]
    assert told["total_payoffs"] == pytest.approx([19 * 4 / 3 + 5 / 3, 19 * 4 / 3 + 2 / 3, 19 * 7 / 3 + 5 / 3])
    assert list(told["errors"]) == [bad]
    assert (told["errors"][bad]["round"], told["errors"][bad]["count"]) == (17, 1)
    shown = labmates(
        "strategies", "play", "--game", "common-pool", "--players", "reference:cooperate", "reference:grim"
    )
    assert shown.out.splitlines()[0].endswith("reference:cooperate")
    assert "C" * 20 in shown.out


def test_a_strategy_that_would_reach_out_is_told_and_does_not(labmates: Labmates) -> None:
    made = labmates.folder / "made"
    write(labmates.folder, strategy(f"import os\nos.mkdir({str(made)!r})\nreturn C", name="Strategy_SELFISH_1"))
    words = ["--players", "model.py:Strategy_SELFISH_1", "reference:cc-1", "--json"]
    [told] = labmates("strategies", "play", "--game", "collective-risk", "--rounds", "3", *words).records
    assert "imports 'os'" in told["errors"]["model.py:Strategy_SELFISH_1"]["what"]
    assert not made.exists()
    checked = labmates("strategies", "check", "model.py", "--game", "public-goods")
    assert checked.code == 1
    assert "Strategy_SELFISH_1: line 18: imports 'os'" in checked.out


def test_an_analysis_tells_what_strategies_failed_to_decide(labmates: Labmates) -> None:
    collective, selfish = strategy("return C", name="Strategy_COLLECTIVE_1"), strategy("return 1")
    write(labmates.folder, collective, selfish)
    words = ["model.py", "--game", "public-goods", "--rounds", "2"]
    shown = labmates("analyze", "diversity", *words)
    assert "model:Strategy_SELFISH_1 failed in 8 decisions and fell back" in shown.out
    assert "Strategy_COLLECTIVE_1 failed" not in shown.out
    told = labmates("analyze", "invasion", *words, "--samples", "2", "--json").records
    assert {one["resident"]: one["errors"] for one in told} == {
        "model/collective": 2 * 2,  # one invader in each of two groups
        "model/selfish": 2 * 2 * 4 + 2 * 2 * 3,
    }


def test_a_library_is_imported_checked_and_analysed(labmates: Labmates, tmp_path: Path) -> None:
    library(tmp_path / "downloads", "public_goods", gpt=KNOWN)
    [told] = labmates("strategies", "import", "downloads", "--json").records
    assert told == {
        "file": "strategies/public-goods/gpt.py",
        "game": "public-goods",
        "model": "gpt",
        "strategies": 16,
        "refused": 0,
        "ways": told["ways"],
        "whys": {},
        "microseconds": told["microseconds"],
    }
    assert told["microseconds"].keys() == told["ways"].keys()
    assert sum(told["ways"].values()) == 16
    assert "16 strategies, none with problems" in labmates("strategies", "check", "strategies").out
    found = labmates("analyze", "diversity", "strategies", "--game", "public-goods", "--rounds", "3", "--json").records
    assert [(one["attitude"], one["cooperation"], one["mean_pairwise_distance"]) for one in found] == [
        ("collective", 1, 0),
        ("exploitative", 0, 0),
    ]
    assert found[0]["cohens_d"] == {"exploitative": None}
    words = ["--game", "public-goods", "--rounds", "2"]
    drawn = labmates("analyze", "diversity", "strategies", *words, "--plot", "map.png")
    assert drawn.code == 0
    assert (tmp_path / "map.png").stat().st_size > 10_000
    told_pairs = labmates("analyze", "invasion", "strategies", *words, "--samples", "5", "--json").records
    assert [(one["invader"], one["invades"]) for one in told_pairs] == [
        ("gpt/exploitative", True),
        ("gpt/collective", False),
    ]


def test_a_file_is_not_checked_twice_and_its_verdicts_are_imported(labmates: Labmates, cache: Path) -> None:
    late = strategy("return C if history.round_number < 19 else 1 / 0", name="Strategy_SELFISH_1")
    path = write(labmates.folder / "downloads" / "public_goods", late, strategy("return D", name="Strategy_SELFISH_2"))
    first, second = labmates("strategies", "check", "downloads"), labmates("strategies", "check", "downloads")
    assert (first.code, second.code) == (1, 1)
    assert "2 strategies, 1 with problems." in first.out
    assert second.out == first.out.replace("problems.", "problems; 2 verdicts are of earlier checks.")
    told = [labmates("strategies", "check", "downloads", "--json").records for _ in range(2)]
    assert told[0] == told[1], "also the times of decisions are those of the first check"
    [imported] = labmates("strategies", "import", "downloads", "--json").records
    assert (imported["strategies"], imported["refused"], imported["problems"]) == (2, 0, 1)
    provenance = (labmates.folder / imported["file"]).with_suffix(".jsonl").read_text()
    lines = [json.loads(line) for line in provenance.splitlines()]
    assert ["ZeroDivisionError" in str(line["problems"]) for line in lines] == [True, False]
    [kept] = cache.iterdir()
    _assert_faulty(labmates, str(path))
    kept.rename(kept.with_suffix(".old"))
    _assert_faulty(labmates, imported["file"])
    kept.with_suffix(".old").rename(kept)
    kept.write_text("[{}]")
    again = labmates("strategies", "check", "downloads").out.splitlines()
    assert again[:-1] == first.out.splitlines()[:-1], "what can't be read is checked again"
    assert again[-1].startswith("Played 2 ")
    path.write_text(path.read_text().replace("< 19", "< 99"))
    assert "2 strategies, none with problems." in labmates("strategies", "check", "downloads").out
    words = ["--game", "collective-risk", "--sandbox", "unsafe-local"]
    assert "earlier" not in labmates("strategies", "check", "downloads", *words).out
    assert len(list(cache.iterdir())) == 2, "one for each text; what was not confined is not kept"


def test_the_files_of_a_check_are_in_order_for_any_number_of_processes(labmates: Labmates) -> None:
    folder = labmates.folder / "downloads" / "public_goods"
    for name, body in (("a", "return C"), ("b", "return 1 / 0"), ("c", "import os")):
        write(folder, strategy(body), file=f"{name}.py")
    (folder / "d.py").write_text("x = (\n")
    write(folder, strategy("return D"), file="e.py")
    for processes in ("1", "2", "8"):
        done = labmates("strategies", "check", "downloads", "--sandbox", "unsafe-local", "--processes", processes)
        assert done.code == 2, "a file can't be read"
        assert "d.py can't be read as Python (line 1)" in done.err
        found = [*dict.fromkeys(re.findall(r"(\w\.py):", done.out))]
        assert found == ["b.py", "c.py"], "problems of the files before it are shown"
    done = labmates("strategies", "import", "downloads")
    assert done.code == 2
    assert re.findall(r"(\w\.py):", done.out) == ["a.py", "b.py", "c.py"]
    assert "1 refused by the static checks" in done.out


def _assert_faulty(labmates: Labmates, file: str) -> None:
    """Assert that a game of the two strategies of a file warns of the first one alone."""
    players = [f"{file}:Strategy_SELFISH_{number}" for number in (1, 2)]
    words = ["--rounds", "2", "--players", *players, players[1]]
    played = labmates("strategies", "play", "--game", "public-goods", *words)
    assert played.code == 0
    warning = f"{players[0]} has problems by an earlier check: ZeroDivisionError"
    assert warning in " ".join(played.err.split())
    assert f"{players[1]} has problems" not in played.err


def test_runs_of_self_play_and_evolution_are_shown_and_drawn(labmates: Labmates, tmp_path: Path) -> None:
    library(tmp_path / "strategies", "public-goods", gpt=KNOWN)
    words = ["--game", "public-goods", "--strategies", "strategies", "--rounds", "3", "--json"]
    [run] = labmates("run", "selfplay", *words, "--samples", "4").records
    assert run["metrics"]["efficiency"] == pytest.approx(0.5)
    found = labmates("run", "evolution", *words, "--population", "16", "--elite", "2", "--replicates", "2").records
    assert [one["status"] for one in found] == ["completed"] * 2
    [shown] = labmates("analyze", "selfplay", "--json").records
    assert [point["welfare"] for point in shown["mixtures"]] == pytest.approx([2, 1.75, 1.5, 1.25, 1])
    [won] = labmates("analyze", "evolution", "--json").records
    assert won["runs"] == 2
    assert sum(won["winners"].values()) == 2
    for verb in ("selfplay", "evolution"):
        assert labmates("analyze", verb, "--plot", f"{verb}.png").code == 0
        assert (tmp_path / f"{verb}.png").stat().st_size > 10_000


def test_every_place_tells_how_a_strategy_is_played_why_and_what_it_costs(labmates: Labmates, tmp_path: Path) -> None:
    library(tmp_path / "strategies", "public-goods", gpt={**KNOWN, "selfish": "return C if f'{1}' == '1' else D"})
    why, name = "an f-string", "Strategy_SELFISH_3"
    file = "strategies/public-goods/gpt.py"
    [imported] = labmates("strategies", "import", "strategies", "--to", "copy", "--json").records
    assert (imported["ways"]["process"], why in imported["whys"][name]) == (8, True)
    assert imported["microseconds"].keys() == {"compiled", "process"}
    checked = {one["class"]: one for one in labmates("strategies", "check", file, "--json").records}[name]
    assert (checked["way"], why in checked["why"], checked["microseconds"] > 0) == ("process", True, True)
    words, player = ["--game", "public-goods", "--rounds", "3"], f"{file}:{name}"
    players = [player, "reference:cc-1", "reference:defect"]
    [played] = labmates("strategies", "play", *words, "--players", *players, "--json").records
    assert played["ways"] == dict(zip(players, ("process", "compiled", "compiled"), strict=True))
    assert why in played["whys"][player]
    assert played["microseconds"].keys() == {"compiled", "process"}
    own = [*words, "--strategies", "strategies", "--json", "--population", "16", "--elite", "2"]
    [estimated] = labmates("strategies", "estimate", *own, "--seconds", "0.1").records
    assert (estimated["ways"][f"gpt:{name}"], why in estimated["whys"][f"gpt:{name}"]) == ("process", True)
    [run] = labmates("run", "evolution", *own, "--generations", "2").records
    with Store(f"sqlite:///{tmp_path}/labmates.db") as store:
        [event] = [one for one in store.events(run["id"]) if isinstance(one, ArtifactEvent)]
        recorded = Bodies(store.bodies(run["id"]))[event.content]
    assert (recorded["ways"][f"gpt:{name}"], why in recorded["whys"][f"gpt:{name}"]) == ("process", True)
    assert min(recorded["seconds"].values()) > 0
    assert labmates("replay", run["id"]).code == 0


def test_results_under_different_conditions_are_told_apart(labmates: Labmates, tmp_path: Path) -> None:
    library(tmp_path / "strategies", "public-goods", gpt=KNOWN)
    file = tmp_path / "strategies" / "public-goods" / "gpt.py"
    names = re.findall(r"^class (Strategy_\w+)", file.read_text(), re.MULTILINE)
    told = [
        {"class": name, "prompt": "brief" if "COLLECTIVE" in name and i % 2 else "standard"}
        for i, name in enumerate(names)
    ]
    file.with_suffix(".jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in told))
    words = ["--game", "public-goods", "--rounds", "2"]

    figures = ["--plots", "figures", "--format", "svg"]
    sets = labmates("analyze", "diversity", "strategies", *words, "--json", *figures).records
    assert [(one["set"], one["strategies"]) for one in sets] == [
        ("collective[prompt=standard]", 4),
        ("collective[prompt=brief]", 4),
        ("exploitative", 8),
    ]
    assert set(sets[0]["cohens_d"]) == {"collective[prompt=brief]", "exploitative"}
    variants = (tmp_path / "figures" / "variants.svg").read_text()
    assert "gpt, collective" in variants
    assert "gpt, exploitative" not in variants, "it was written in one way"
    own = ["--strategies", "strategies", *words]
    unclear = labmates("run", "selfplay", *own, "--samples", "2")
    assert (unclear.code, "'collective[prompt=standard]' or 'collective[prompt=brief]'" in unclear.err) == (2, True)
    for k in ("2", "3"):
        one_set = ["--collective", "collective[prompt=brief]", "--samples", "2", "--rule", f"k={k}", "--step", "4"]
        assert labmates("run", "selfplay", *own, *one_set).code == 0
        evolving = ["--population", "8", "--elite", "2", "--generations", "1"]
        assert labmates("run", "evolution", *own, *evolving, "--mutation", f"0.{k}").code == 0
    shown = labmates("analyze", "selfplay", "--out", "s.csv", "--plot", "s.svg")
    assert shown.out.index("k=2") < shown.out.index("k=3")
    drawn = (tmp_path / "s.svg").read_text()
    assert all(f"groups of 4, k={k}" in drawn for k in (2, 3))
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    assert {row["rules"] for row in rows} == {"k=2", "k=3"}
    labmates("analyze", "evolution", "--out", "e.csv")
    rows = list(csv.DictReader((tmp_path / "e-winners.csv").read_text().splitlines()))
    assert {(row["mutation"], row["runs"]) for row in rows} == {("0.2", "1"), ("0.3", "1")}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("play", "--game", "chess", "--players", "reference:cooperate"), "'chess' is not one of"),
        (("play", "--game", "public-goods", "--players", "reference:cooperate"), "--players: needs at least 2"),
        (
            ("play", "--game", "public-goods", "--k", "9", "--players", *["reference:defect"] * 3),
            "k must be more than 1",
        ),
        (("play", "--game", "public-goods", "--m", "2", "--players", *["reference:defect"] * 3), "no parameter 'm'"),
        (("play", "--game", "public-goods", "--players", *["nobody"] * 3), "a player is FILE.py:CLASS"),
        (("play", "--game", "public-goods", "--players", *["no.py:X"] * 3), "no.py can't be read"),
        (("play", "--game", "public-goods", "--players", *["reference:x"] * 3), "unknown reference strategy 'x'"),
        (("check", "nowhere"), "there is no file or folder nowhere"),
        (("check", "."), "holds no strategies"),
        (("import", "nowhere"), "there is no file or folder nowhere"),
    ],
)
def test_wrong_input_exits_with_2(labmates: Labmates, arguments: tuple[str, ...], said: str) -> None:
    done = labmates("strategies", *arguments)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "evolution", "--game", "public-goods", "--strategies", "nowhere"), "--strategies: there is no file"),
        (
            ("run", "evolution", "--game", "public-goods", "--strategies", "s", "--population", "30"),
            "--population: must be",
        ),
        (("run", "evolution", "--game", "public-goods", "--strategies", "s", "--elite", "600"), "--elite: must be"),
        (("run", "selfplay", "--game", "public-goods", "--strategies", "s", "--rule", "k=7"), "--rule: k must be"),
        (
            ("run", "selfplay", "--game", "public-goods", "--strategies", "s", "--group-size", "12"),
            "gpt has 8 strategies with the attitude 'collective'; mixtures of 12 players need 12",
        ),
        (
            ("run", "selfplay", "--game", "public-goods", "--strategies", "s", "--selfish", "greedy"),
            "there are no strategies with the attitude 'greedy'",
        ),
        (("run", "selfplay", "--game", "common-pool", "--strategies", "s"), "holds no strategies for common-pool"),
        (("analyze", "diversity", "s", "--game", "public-goods", "--rounds", "12"), "use fewer rounds"),
        (("analyze", "diversity", "s", "--game", "public-goods", "--plot", "map.bmp"), "a figure's file ends in"),
        (("analyze", "invasion", "s", "--game", "public-goods", "--attitude", "collective"), "an invasion needs two"),
    ],
)
def test_what_can_not_be_run_or_analysed_is_said(labmates: Labmates, arguments: tuple[str, ...], said: str) -> None:
    library(labmates.folder / "s", "public-goods", gpt=KNOWN)
    done = labmates(*arguments)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


@pytest.mark.parametrize("line", ['{"class": 3', "[]", '{"class": "Strategy_COLLECTIVE_1", "problems": 3}'])
def test_a_damaged_provenance_is_told_where_it_stands(labmates: Labmates, line: str) -> None:
    folder = library(labmates.folder / "s", "public-goods", gpt=KNOWN) / "public-goods"
    (folder / "gpt.jsonl").write_text(f"{line}\n")
    done = labmates("analyze", "diversity", "s", "--game", "public-goods")
    assert done.code == 2
    assert "gpt.jsonl, line 1: not the provenance of a strategy" in done.err


def test_a_library_that_can_not_be_written_is_told(labmates: Labmates) -> None:
    library(labmates.folder / "s", "public-goods", gpt=KNOWN)
    words = ["--model", "scripted:author", "--game", "public-goods", "--attitude", "selfish", "-n", "1"]
    for arguments in (["import", "s"], ["write", *words]):
        done = labmates("strategies", *arguments, "--to", "/proc/none")
        assert done.err.splitlines()[-1] == "labmates: can't write to '/proc/none': No such file or directory"
        assert done.code == 2


def test_a_self_play_of_two_sets_is_refused_before_it_is_a_run(labmates: Labmates) -> None:
    folder = library(labmates.folder / "s", "public-goods", gpt=KNOWN) / "public-goods"
    names = [f"Strategy_{attitude.upper()}_{number}" for attitude in KNOWN for number in range(1, 9)]
    lines = [{"class": name, "prompt": "brief" if number % 2 else "standard"} for number, name in enumerate(names)]
    (folder / "gpt.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    words = ["run", "selfplay", "--game", "public-goods", "--strategies", "s"]
    refused = labmates(*words)
    assert refused.code == 2
    assert "form several sets: choose one, 'collective[prompt=standard]' or 'collective[prompt=brief]'" in refused.err
    assert refused.out == ""


def test_matches_of_a_run_are_exported_as_csv_and_json(labmates: Labmates, tmp_path: Path) -> None:
    library(tmp_path, "public-goods", one=KNOWN)
    words = ["--game", "public-goods", "--strategies", str(tmp_path), "--rounds", "2", "--generations", "2"]
    assert labmates("run", "evolution", *words, "--population", "8", "--elite", "2", "--games", "1").code == 0
    done = labmates("strategies", "match", "last", "--group", "1", "--out", "match.csv", "--json")
    [told] = done.records
    assert (done.code, told["step"], told["group"], len(told["players"])) == (0, 0, 1, 4)
    rows = list(csv.DictReader((labmates.folder / "match.csv").read_text().splitlines()))
    assert [row["move"] for row in rows] == [move for actions in told["actions"] for move in actions]
    assert [float(row["payoff"]) for row in rows] == [payoff for payoffs in told["payoffs"] for payoff in payoffs]
    assert [float(row["total"]) for row in rows[-4:]] == told["total_payoffs"]
    shown = labmates("strategies", "match", "last", "--step", "1")
    assert "generation 1, group 0" in shown.out
    assert "generation 1, group 1" in shown.out
    refused = labmates("strategies", "match", "last", "--step", "9")
    assert refused.code == 2
    assert "has no generation 9; it has 0 to 1" in refused.err
