"""Reports of real runs of self-play and evolution."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from labmates.api import run
from labmates.records.store import Store
from labmates.reports.report import render, store_report
from labmates.studies.settings import RunSettings
from tests.support.strategies import library

MODELS = {
    "kind": {"collective": "return C", "exploitative": "return D"},
    "moody": {"collective": "return C if history.round_number else D", "exploitative": "return D"},
}
ONE = RunSettings(processes=1)


def populations(folder: Path) -> str:
    """Make two runs each of both kinds, for two models, and return the store's URL."""
    url = f"sqlite:///{folder}/runs.db"
    more: dict[str, Any] = {
        "strategies": str(library(folder / "strategies", "public-goods", **MODELS)),
        "game": "public-goods",
    }
    done = [
        one
        for model in MODELS
        for one in run("selfplay", store=url, settings=ONE, replicates=2, model=model, rounds=3, samples=4, **more)
    ]
    evolution: dict[str, Any] = {"rounds": 3, "population": 16, "elite": 4, "generations": 4}
    done += run("evolution", store=url, settings=ONE, replicates=2, **evolution, **more)
    assert [one.status for one in done] == ["completed"] * 6, [one.error for one in done]
    return url


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return populations(tmp_path_factory.mktemp("populations"))


def text_of(url: str, kind: str) -> str:
    with closing(Store(url, read_only=True)) as store:
        page = render(store_report(store, kind=kind))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("</style>")[1]))


def test_a_report_of_self_play_tells_every_mixture_of_every_run_by_its_name(url: str) -> None:
    text = text_of(url, "selfplay")
    with closing(Store(url, read_only=True)) as store:
        runs = list(store.runs(kind="selfplay"))
    assert "2 conditions with 2 runs each." in text
    assert "Welfare by the share of selfish players" in text
    table = text.partition("Welfare by the share of selfish players")[2]
    for one in runs:
        assert one.id in table
    for share in ("0.0%", "25.0%", "50.0%", "75.0%", "100.0%"):
        assert table.count(f" {share} ") == len(runs)
    assert re.search(r"2\.000 \[1\.\d+, 2\.000\]", table), "all cooperate: each gets k = 2 times what it gives"
    assert re.search(r"1\.000 \[1\.000, 1\.\d+\]", table), "none does"
    assert "Means over the data sets of ended runs" in text


def test_a_report_of_evolution_tells_who_wins_how_often(url: str) -> None:
    text = text_of(url, "evolution")
    assert "1 condition with 2 runs each." in text
    table = text.partition("Which genes win")[2]
    wins = [int(count) for count in re.findall(r"(?:kind|moody)/(?:collective|exploitative) (?:wins )?(\d+) ", table)]
    assert sum(wins) == 2
    assert text.count("Shares of genes in public-goods") == 1


def test_the_files_of_a_report_make_the_same_conditions_again(url: str) -> None:
    import yaml

    from labmates.workflows.protocol.experiment import make_condition

    with closing(Store(url, read_only=True)) as store:
        page = render(store_report(store))
        keys = {one.key for one in store.runs()}
    files = [yaml.safe_load(one) for one in re.findall(r"<pre[^>]*><code>(name: .*?)</code>", page, re.DOTALL)]
    assert {make_condition(one["kind"], one["fixed"]).key for one in files} == keys
