"""What pages tell: of every kind of run, of what is not there, and of a store that is empty, away or hostile."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import tests.support.garbage  # noqa: F401 - registers a baseline
from labmates.api import arun
from labmates.records.bodies import Bodies
from labmates.records.events import (
    ArtifactEvent,
    ErrorEvent,
    Event,
    LLMCallEvent,
    PayoffEvent,
    PhaseEvent,
    ScoreEvent,
    WarningEvent,
)
from labmates.records.store import Store
from tests.support.recorded import Recorded, a_record, add, long_run, other_kinds
from tests.support.site import Site, served
from tests.support.steps import append

pytestmark = [pytest.mark.xdist_group("viewer")]  # one worker makes the runs

TOLD = {
    "science": "Time line|Findings and truth|Truth|never stated|"
    "Findings stated by each team|Artifacts|The team at work|"
    "share of credits spent on coordination|Findings and seats|In the end|"
    "Requests between teams|Figures|Budget|"
    "There is <strong>nothing</strong>|burning down|verified|>data/data_lead<",
    "game": "Rounds|Group A|Talk in round 1|sanction:|total|Mean decision of each group",
    "contract": "Prisoner&#39;s dilemma|What models earned|Who takes over|of 1000 steps; no changes afterwards|Signs|"
    "scripted:equilibrium|Deviation",
    "repetition": "Stag hunt|Round|Drawn|Expected",
    "tournament": 'Standings|Matches|class="mC"|Payoffs of a round|Cooperates',
    "plugin": "Time line|phase|Record",
    **{name: kind.told for name, kind in other_kinds().items()},
}
"""What the page of each kind tells, apart by bars."""


@pytest.mark.parametrize(("name", "result"), [("science", "Findings and truth"), ("contract", "What models earned")])
def test_results_stand_before_the_time_line(site: Site, recorded: Recorded, name: str, result: str) -> None:
    [first] = re.findall(rf"{result}</h2>|Time line</h2>", site.get(f"/runs/{recorded.ids[name]}").text)[:1]
    assert first.startswith(result)


@pytest.mark.parametrize("name", TOLD)
def test_each_kind_is_told_as_its_own_and_every_link_leads_somewhere(site: Site, recorded: Recorded, name: str) -> None:
    run = recorded.ids[name]
    page = site.get(f"/runs/{run}")
    assert page.status == 200
    assert "Parts of the record that this version can" not in page.text
    for part in TOLD[name].split("|"):
        assert part in page.text, part
    for link in sorted(set(_links(page.text)))[:12]:
        assert site.get(link).status == 200, link


def _links(text: str) -> list[str]:
    found = [part.partition('"')[0].partition("#")[0] for part in text.split('href="')[1:]]
    return [link.replace("&amp;", "&") for link in found if link.startswith("/runs/")]


def test_every_event_of_a_run_of_the_lab_has_a_page_of_its_own(site: Site, recorded: Recorded) -> None:
    run = recorded.ids["science"]
    events = recorded.store.events(run)
    for at, event in list(enumerate(events))[:: max(1, len(events) // 40)]:
        page = site.get(f"/runs/{run}/events/{at}")
        assert page.status == 200
        assert f"Event {at}" in page.text
        if event.type == "llm_call":
            assert "Request to the model" in page.text


def test_the_story_offers_the_types_teams_and_agents_that_there_are(site: Site, recorded: Recorded) -> None:
    story = f"/runs/{recorded.ids['science']}/story"
    page = site.get(story).text
    agents = re.findall(r'<option value="([^"]+)"></option>', page)
    assert {"data_lead", "data_engineer", "eval_lead"} <= set(agents)
    assert len(agents) == len(set(agents))
    counts = dict(re.findall(r'<option value="(\w+)">[\w ]+ \((\d+)\)</option>', page))
    for asked in ("type=phase", "team=data"):
        told = site.get(f"{story}?{asked}").text
        assert told.count('<li class="event') == int(counts[asked.partition("=")[2]])
    one = site.get(f"{story}?agent={agents[-1]}").text
    assert 0 < one.count('<li class="event') < page.count('<li class="event')


def test_versions_of_an_artifact_are_linked_and_compared(store: Store) -> None:
    bodies = Bodies()
    numbers = [bodies.keep("one\ntwo\n<three>"), bodies.keep("one\n2\n<three>")]
    events = [ArtifactEvent(team="t", name="notes", version=at + 1, content=body) for at, body in enumerate(numbers)]
    run = add(store, "science", events, bodies)
    with served(store) as site:
        page = site.get(f"/runs/{run}/events/1").text
        assert '<span class="del">-two' in page
        assert '<span class="add">+2' in page
        assert f'href="/runs/{run}/events/0">version 1' in page
        assert "&lt;three&gt;" in page
        assert "Changes since" not in site.get(f"/runs/{run}/events/0").text


def test_the_list_is_filtered_sorted_and_shared_by_its_address(site: Site, recorded: Recorded) -> None:
    page = site.get("/?kind=dilemma").text
    for name, run in recorded.ids.items():
        assert (run in page) == (name in ("contract", "repetition"))
    assert ">normalised<" in page  # the metrics of the kind
    assert re.search(rf"\b2 of {len(recorded.ids)} runs in", page)
    assert 'aria-sort="ascending"' in site.get("/?sort=kind").text
    started = r'<a href="[^"]*">Started(?: <span[^>]*>.</span>)?</a> <a class="word" href="#word-Started"'
    assert all(re.search(started, site.get(f"/?sort={name}").text) for name in ("kind", "started"))
    assert "No runs match these filters" in site.get("/?text=zzzz").text
    assert recorded.ids["tournament"] in site.get("/?model=random&kind=tournament").text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("kind=gmae", "unknown kind &#39;gmae&#39;. Did you mean &#39;game&#39;?"),
        ("status=done", "unknown status"),
        ("study=none", "unknown study"),
        ("sort=size", "unknown order"),
        ("order=up", "unknown direction"),
        ("page=99", "there is no page &#39;99&#39;"),
        ("kind=%3Cscript%3E", "&lt;script&gt;"),
    ],
)
def test_a_list_that_can_not_be_is_told(site: Site, query: str, said: str) -> None:
    page = site.get(f"/?{query}")
    assert page.status == 400
    assert said in page.text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/story?page=0", 400, "there is no page"),
        ("/story?page=99", 400, "there are 1 to"),
        ("/story?page=²", 400, "there is no page"),
        ("/story?type=thought", 400, "unknown type of event"),
        ("/story?team=none", 400, "unknown team"),
        ("/events/99999", 404, "has no event 99999"),
        ("/figures/1.png", 404, "has no picture 1"),
        (f"/events/{10**30}", 404, "There is no such page"),
        (f"/figures/{2**31}.png", 404, "There is no such page"),
        (f"/files/{10**30}/{10**30}", 404, "There is no such page"),
        ("/files/0/0", 404, "has no file"),
        ("/files/0/../../x", 404, "There is no such page"),
        ("/live?after=x", 400, "not an event number"),
        ("/nothing", 404, "There is no such page"),
    ],
)
def test_what_a_run_has_not_is_told(site: Site, recorded: Recorded, path: str, status: int, said: str) -> None:
    page = site.get(f"/runs/{recorded.ids['science']}{path}".replace("²", "%C2%B2"))
    assert page.status == status
    assert said in page.text


def test_an_unknown_run_is_told(site: Site) -> None:
    page = site.get("/runs/zzzzzz")
    assert page.status == 404
    assert "There is no such run" in page.text
    assert "&#39;zzzzzz&#39;" in page.text
    assert site.get("/compare?a=zz&b=zz").status == 404
    assert site.get("/compare?run=a").status == 404
    assert site.get("/compare?" + "&".join(["run=a"] * 7)).status == 400


def test_two_runs_stand_beside_each_other(site: Site, recorded: Recorded) -> None:
    one, other = recorded.ids["contract"], recorded.ids["repetition"]
    page = site.get(f"/compare?a={one}&b={other}").text
    for part in ("Parameters with differences", "mechanism", "stag-hunt", 'id="a-earned"', 'id="b-earned"'):
        assert part in page
    assert one in site.get(f"/compare?a={other}").text  # to choose from
    assert "The runs share condition and seed" in site.get(f"/compare?a={one}&b={one}").text


def test_compared_scores_that_are_metrics_are_shown_once(store: Store) -> None:
    def score(judge: str, metric: str, value: float | None) -> ScoreEvent:
        return ScoreEvent(judge=judge, version="2", metric=metric, value=value, reason="why")

    same, lower = [score("verified", "accuracy", 0.5), score("heuristic", "accuracy", 0.5)], {"accuracy": 0.25}
    runs = [add(store, "science", same, Bodies(), metrics={"accuracy": 0.5})]
    runs.append(add(store, "science", [score("verified", "accuracy", 0.25)], Bodies(), metrics=lower))
    runs.append(add(store, "science", [score("verified", "accuracy", None)], Bodies()))
    with served(store) as site:
        scored, unscored = (site.get(f"/compare?a={runs[0]}&b={other}").text for other in runs[1:])
    for page, is_repeated in ((scored, False), (unscored, True)):
        heads = re.findall(
            r'<tr><th scope="row">(.*?)</th>', page[page.index("<h2>Metrics") : page.index('id="texts"')]
        )
        assert [name for name in heads if "accuracy" in name] == [
            "accuracy",
            *(["verified: accuracy"] if is_repeated else []),
            "heuristic: accuracy",
        ]


def test_an_organisation_from_a_file_is_compared_with_another_by_its_name(store: Store) -> None:
    runs = [
        add(store, "science", [], Bodies(), condition={"organisation": organisation})
        for organisation in ("solo", {"name": "pair", "flow": [{"team": "pair"}]})
    ]
    with served(store) as site:
        page = site.get("/compare?" + "&".join(f"run={run}" for run in runs)).text
    assert re.findall(r'<tr><th scope="row">(.*?)</th>', page)[0] == "organisation"
    assert "pair</td>" in page
    assert "organisation.flow" not in page


def test_runs_are_compared_by_their_prompts_and_artifacts(store: Store) -> None:
    runs = []
    for name, end in (("first", "same"), ("second", "<b>other</b>"), ("third", "same")):
        bodies = Bodies()
        notes, prompt = bodies.keep(f"line\n{end}"), bodies.keep({"role": "system", "content": "Be brief."})
        reply = bodies.keep({"role": "assistant", "content": name})
        call = LLMCallEvent(
            agent="ada",
            model="m",
            messages=[prompt],
            reply=reply,
            finish="stop",
            input_tokens=1,
            output_tokens=1,
            seed=1,
        )
        runs.append(
            add(store, "science", [call, ArtifactEvent(team=name, name="notes", version=1, content=notes)], bodies)
        )
    with served(store) as site:
        page = site.get("/compare?" + "&".join(f"run={run}" for run in runs)).text
    assert page.count("<details><summary>notes") == 1
    assert '<span class="del">-same' in page
    assert '<span class="add">+&lt;b&gt;other&lt;/b&gt;' in page
    assert "1 is identical." in page


def test_files_are_for_saving_and_pictures_are_pictures(site: Site, recorded: Recorded) -> None:
    run = recorded.ids["science"]
    tools = [(at, event) for at, event in enumerate(recorded.store.events(run)) if event.type == "tool_call"]
    at, event = next((at, event) for at, event in tools if event.images)
    picture = site.get(f"/runs/{run}/figures/{event.images[0]}.png")
    assert picture.headers["content-type"] == "image/png"
    assert picture.body.startswith(b"\x89PNG")
    kept = site.get(f"/runs/{run}/files/{at}/1")
    assert kept.body == b"kept"
    assert kept.headers["content-type"] == "application/octet-stream"
    assert kept.headers["content-disposition"] == "attachment; filename*=UTF-8''notes.txt"
    assert site.get(f"/runs/{run}/files/{at}/2").status == 404


def test_an_empty_store_says_how_to_make_a_run(store: Store) -> None:
    with served(store) as site:
        page = site.get("/")
        assert page.status == 200
        assert "labmates demo" in page.text
        assert "no studies" in site.get("/studies").text


def test_a_run_that_goes_on_tells_what_is_new_and_nothing_twice(store: Store) -> None:
    bodies = Bodies()
    begun: list[Event] = [PhaseEvent(step="0", team="data", status="started", number=0)]
    run = a_record(status="running", attempt=1, worker="w")
    store.create(run, lease=60, events=begun, bodies=bodies.take_new())
    with served(store) as site:
        assert re.search(r"<text[^>]*>0.002 s</text>", site.get(f"/runs/{run.id}").text)  # an axis of one moment
        page = site.get(f"/runs/{run.id}/story").text
        assert f'data-live="/runs/{run.id}/live" data-last="0" data-mode="append"' in page
        none = site.get(f"/runs/{run.id}/live?after=0&mode=append").data
        assert none == {"html": "", "last": 0, "more": False, "ended": False}
        append(store, run, [(1, WarningEvent(text="slow")), (2, WarningEvent(text="slower"))], [])
        news = site.get(f"/runs/{run.id}/live?after=1&mode=append").data
        assert news["last"] == 2
        assert 'id="e2"' in news["html"]
        assert 'id="e1"' not in news["html"]
        assert site.get(f"/runs/{run.id}/live?after=0").data["html"] == ""


def test_a_record_that_can_not_be_read_hides_nothing_else(store: Store) -> None:
    broken: list[Event] = [
        PayoffEvent(payoffs={"1": 1.0}, match="1-1", details={"nonsense": True}),
        ErrorEvent(text="it broke"),
    ]
    run = add(store, "dilemma", broken, Bodies(), status="failed", error="it broke", condition={"game": "prisoners"})
    with served(store) as site:
        page = site.get(f"/runs/{run}")
        assert page.status == 200
        assert "Parts of the record that this version can" in page.text
        assert "it broke" in page.text
        assert site.get(f"/runs/{run}/story").status == 200


def test_a_score_without_a_value_is_told_as_such(store: Store) -> None:
    score = ScoreEvent(judge="verified", version="1", metric="accuracy", value=None, reason="no block")
    run = add(store, "science", [score], Bodies())
    with served(store) as site:
        assert '<span class="warn">unscored</span>' in site.get(f"/runs/{run}").text


def test_the_claims_of_a_paper_are_shown_by_status_and_as_text(store: Store) -> None:
    details = {
        "claims": {"computed": 1, "contradicted": 1, "not found": 0},
        "computed": [{"claim": "nugget_share: 0.31", "in": "nugget 0.31 <b>was</b> fitted"}],
        "contradicted": [{"claim": "range_m: 1184", "in": "range 900 m"}],
        "not_found": [],
    }
    score = ScoreEvent(
        judge="verified", version="2", metric="provenance", value=0.1, reason="1 of 2 claims", details=details
    )
    run = add(store, "science", [score], Bodies())
    silent = add(store, "science", [score.model_copy(update={"details": {"claims": {"computed": 0}}})], Bodies())
    with served(store) as site:
        page = site.get(f"/runs/{run}").text
        assert "Where the findings come from" in page
        assert page.index("Contradicted: 1") < page.index("Computed: 1")
        assert "<b>was</b>" not in page
        assert "Not found" not in page
        assert "findings come from" not in site.get(f"/runs/{silent}").text


def test_a_store_that_goes_away_is_told(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates.records.database.PATIENCE_SECONDS", 0.1)
    reader = Store(store.url, read_only=True)
    with served(reader) as site:
        assert site.get("/").status == 200
        reader.close()
        (tmp_path / "labmates.db").rename(tmp_path / "gone.db")
        page = site.get("/")
        assert page.status == 503
        assert "The store can&#39;t be read" in page.text


def test_a_store_in_postgresql_is_shown_as_one_in_sqlite(store_url: str) -> None:
    made = Store(store_url)
    run = long_run(made, 120)
    reader = Store(store_url, read_only=True)
    with served(reader) as site:
        for path in (
            "/?text=anomaly&sort=spent",
            f"/runs/{run}",
            f"/runs/{run}/story?page=1&team=data",
            f"/runs/{run}/events/3",
        ):
            assert site.get(path).status == 200
        assert run in site.get("/").text
    reader.close()
    made.close()


def test_an_invalid_run_is_marked_with_its_reason_and_who_failed_is_not_rated(store: Store) -> None:
    condition: dict[str, Any] = {"game": "prisoners", "entrants": "scripted:garbage,scripted:random"}
    [run] = asyncio.run(arun("dilemma", store=store.url, **condition))
    assert run.invalid
    with served(store) as site:
        listed, page = site.get("/").text, site.get(f"/runs/{run.id}").text
    assert ">normalised<" in listed  # all runs are of one kind: its metrics are shown
    for text in (listed, page):
        assert '<span class="status invalid">invalid</span>' in text
        assert "scripted:garbage: all of its" in text
    assert "<b>scripted:garbage</b> is left out: 100.0 % of its decisions failed, more than 20%." in page
    assert '<span class="bad">failed</span>' in page
    rated = page.partition('aria-label="Ratings"')[2].partition("</table>")[0]
    assert "scripted:random" in rated
    assert "scripted:garbage" not in rated
