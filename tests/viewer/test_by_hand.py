"""Scores by people on the pages: kept from other sites, escaped, blind, and refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, ScoreEvent, WarningEvent
from labmates.records.store import Store
from tests.support.recorded import add
from tests.support.site import TOKEN, Answer, Site, served

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Six ended runs of a study with reports and scores of a judge; the viewer reads the store alone."""
    url = f"sqlite:///{tmp_path}/runs.db"
    with Store(url) as made:
        for at in range(6):
            bodies = Bodies()
            text = bodies.keep(f"Report {at}. {HOSTILE}")
            events: list[Event] = [
                ArtifactEvent(team="t", name="final_paper", version=1, content=text),
                ScoreEvent(judge="verified", version="1", metric="accuracy", value=at / 5, reason=""),
            ]
            add(made, "science", events, bodies, id=f"run{at}", key=str(at), study="pilot", models=["openai:secret"])
        add(made, "science", [WarningEvent(text="nothing")], Bodies(), id="empty", key="e", study="pilot")
    with Store(url, read_only=True) as store:
        yield store


@pytest.fixture
def site(store: Store) -> Iterator[Site]:
    with served(store) as site:
        yield site


def send(site: Site, path: str, form_token: str, **fields: str) -> Answer:
    body = urlencode({"form_token": form_token, **fields}).encode()
    return site.ask(path, "POST", body, Origin=site.url, Authorization=f"Bearer {TOKEN}")


def form_token(site: Site, path: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', site.get(path).text)
    assert found is not None
    return found[1]


def test_forms_of_others_change_nothing(site: Site, store: Store) -> None:
    fields = {"judge": "ada", "study": "pilot", "run": "run0", "value-accuracy": "1"}
    token = form_token(site, "/judging?study=pilot&judge=ada")
    assert send(site, "/judging", "guessed", **fields).status == 403
    body = urlencode({"form_token": token, **fields}).encode()
    assert site.ask("/judging", "POST", body, Origin="http://evil.example").status == 403
    assert site.ask("/judging", "POST", body, Authorization=f"Bearer {TOKEN}").status == 403
    assert [score.judge for score in store.scores("run0")] == ["verified"]


def test_a_person_scores_reports_blind_and_agreement_reads_it(site: Site, store: Store) -> None:
    token = form_token(site, "/judging?study=pilot&judge=ada")
    seen = []
    while run := re.search(r'name="run" value="([^"]+)"', page := site.get("/judging?study=pilot&judge=ada").text):
        assert "openai:secret" not in page
        assert "0.2" not in page
        assert HOSTILE not in page
        seen.append(run[1])
        fields = {"judge": "ada", "study": "pilot", "run": run[1], "value-accuracy": str(int(run[1][3:]) / 5)}
        assert send(site, "/judging", token, **fields, reason="I read it").status == 303
    assert sorted(seen) == [f"run{at}" for at in range(6)]
    assert "has scored all reports" in page
    assert store.scores("run3")[-1].model_dump(include={"judge", "value", "reason"}) == {
        "judge": "human:ada",
        "value": 0.6,
        "reason": "I read it",
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value-accuracy": "2"}, "is not a number from 0 to 1"),
        ({"value-accuracy": "nan"}, "is not a number from 0 to 1"),
        ({"value-accuracy": ""}, "give at least one score"),
        ({"value-accuracy": "1", "judge": " "}, "give your name"),
    ],
)
def test_a_wrong_score_is_told_and_not_taken(site: Site, store: Store, fields: dict[str, str], said: str) -> None:
    token = form_token(site, "/judging?study=pilot&judge=ada")
    refused = send(site, "/judging", token, **{"judge": "ada", "study": "pilot", "run": "run0", **fields})
    assert (refused.status, said in refused.text) == (400, True)
    assert [score.judge for score in store.scores("run0")] == ["verified"]
