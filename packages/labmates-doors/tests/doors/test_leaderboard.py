from __future__ import annotations

import re
import shutil
from pathlib import Path
from statistics import fmean

import pytest

from labmates.records.store import Store
from tests.doors.test_bundles import GAME, made, rewritten
from tests.support.command_line import Labmates

MODELS = ("scripted:random", "scripted:fair-share")
TOURNAMENT = {
    "name": "teams",
    "kind": "tournament",
    "models": ["scripted:defect", "scripted:tit-for-tat"],
    "fixed": {"structure": "sa", "teams": 2, "team_size": 1, "rounds": 2},
}


@pytest.fixture(scope="module")
def labmates(tmp_path_factory: pytest.TempPathFactory) -> Labmates:
    """A folder with bundles: of a study of two models, another of one of them, a tournament, and an edited one."""
    labmates = Labmates(tmp_path_factory.mktemp("leaderboard"))
    folder = labmates.folder / "bundles"
    folder.mkdir()
    first = made(labmates, {**GAME, "replicates": 2})
    second = made(labmates, {**GAME, "name": "again", "models": [MODELS[0]], "seed": 50})
    for path in (first, second, made(labmates, TOURNAMENT)):
        shutil.copy(path, folder / path.name)
    shutil.copy(second, folder / "b<i>twice.zip")
    rewritten(first, folder / "edited.zip", lambda m, t, r: t[0]["rows"][0].update(models="<script>x</script>"))
    shutil.rmtree(folder / "members")
    return labmates


def test_the_page_ranks_models_by_the_runs_of_verified_bundles(labmates: Labmates) -> None:
    done = labmates("leaderboard", "bundles", "-o", "site", "--json")
    assert done.code == 0, done.err
    [told] = done.records
    assert sorted(told["verified"]) == ["again.zip", "b<i>twice.zip", "sharing.zip", "teams.zip"]
    assert told["refused"]["edited.zip"].startswith("refused: table game-")
    page = (labmates.folder / "site" / "index.html").read_text()
    board = page.partition("Leaderboard: game</h2>")[2].partition("</table>")[0]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr><td.*?</tr>", board)]
    with Store(f"sqlite:///{labmates.folder}/labmates.db") as store:
        runs = list(store.runs())
    means = {model: fmean(run.metrics["cooperation"] for run in runs if run.models == [model]) for model in MODELS}
    best = sorted(MODELS, key=lambda model: -means[model])
    assert [row[:2] for row in rows] == [["1", best[0]], ["2", best[1]]]
    assert [row[2].split()[0] for row in rows] == [f"{means[model]:.3f}" for model in best]
    assert {row[1]: row[-3] for row in rows} == {"scripted:random": "3", "scripted:fair-share": "2"}  # data sets
    assert all(digest in page for digest in told["verified"].values())


def test_a_kind_whose_primary_metric_has_no_better_direction_has_no_ranks(labmates: Labmates) -> None:
    labmates("leaderboard", "bundles", "-o", "unranked")
    page = (labmates.folder / "unranked" / "index.html").read_text()
    board = page.partition("Leaderboard: tournament</h2>")[2].partition("</table>")[0]
    assert "By cooperation, which has no better direction" in board
    assert ">rank<" not in board


def test_names_and_reasons_of_hostile_bundles_are_escaped(labmates: Labmates) -> None:
    labmates("leaderboard", "bundles", "-o", "hostile")
    page = (labmates.folder / "hostile" / "index.html").read_text()
    assert "<script" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;x" in page
    assert "b&lt;i&gt;twice.zip" in page


def test_a_leaderboard_needs_a_verified_bundle(labmates: Labmates, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"nothing")
    done = labmates("leaderboard", str(tmp_path), "-o", str(tmp_path / "site"))
    assert done.code == 1
    assert "x.zip: refused: it is not a zip archive" in done.err
    (tmp_path / "x.zip").unlink()
    done = labmates("leaderboard", str(tmp_path), "-o", str(tmp_path / "site"))
    assert (done.code, "holds no bundle" in done.err) == (2, True)
