"""What a hostile model can write, in a real browser: nothing of it runs, and no request leaves the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from labmates.records.bodies import Bodies
from labmates.records.events import (
    ArtifactEvent,
    DecisionEvent,
    ErrorEvent,
    FailedReplyEvent,
    FindingsEvent,
    LLMCallEvent,
    MessageEvent,
    PayoffEvent,
    PhaseEvent,
    RequestEvent,
    ScoreEvent,
    ToolCallEvent,
    WarningEvent,
)
from labmates.records.store import Store
from labmates.viewer.export import export_pages
from tests.support.browser import page_of
from tests.support.recorded import add
from tests.support.site import TOKEN, Site, served

pytestmark = [pytest.mark.needs("browser"), pytest.mark.xdist_group("viewer")]

EVIL = "http://127.0.0.1:9/evil"
HOSTILE = "\n\n".join(
    [
        "<script>window.canary = 1</script>",
        f"<img src='{EVIL}' onerror='window.canary = 2'>",
        "<svg onload='window.canary = 3'><script>window.canary = 4</script></svg>",
        "[click](javascript:window.canary=5)",
        "[click](data:text/html,<script>window.canary=6</script>)",
        f"![see]({EVIL}.png)",
        f"<style>body {{ background: url({EVIL}) }}</style>",
        f"<link rel=stylesheet href={EVIL}.css><iframe src={EVIL}></iframe><object data={EVIL}></object>",
        f"<meta http-equiv=refresh content='0;url={EVIL}'><base href={EVIL}>",
        "\"'></textarea></title></pre></details><script>window.canary = 7</script>",
        "{{ 7 * 7 }}{% raw %}",
        "<form action='http://127.0.0.1:9'><button id=stolen>go</button></form>",
        "</script><script>window.canary = 8</script>",
        "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=window.canary=13&gt;'>",
        '[click](http://a.example/" onmouseover=window.canary=14 x=")',
        "\x1b[31mred\x1b]0;title\x07 \u202eright to left\u202c \u200bhidden\U000e0041\ufeff",
        "&#x202e;&#8203;&Tab;&NewLine;",
        "[\u202emoc.elpmaxe](http://a.example/\u202e&#x2066;)",
    ]
)
UNSEEN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\U000e0000-\U000e007f]"
NAME = "../../<script>window.canary=9</script>\"'/\u202e\x1b[2Jx"
PNG = b"\x89PNG\r\n\x1a\n" + b"<script>window.canary = 10</script>"


def hostile_events(bodies: Bodies) -> list[Any]:
    who: dict[str, Any] = {"team": NAME[:80], "agent": NAME[:80]}
    text = bodies.keep(HOSTILE)
    message = bodies.keep(
        {"role": "assistant", "content": HOSTILE, "tool_calls": [{"name": HOSTILE, "args": {NAME: HOSTILE}}]}
    )
    tool = bodies.keep({"code": HOSTILE, NAME: HOSTILE})
    files = {f"{NAME}.html": bodies.keep(HOSTILE.encode()), "../../../etc/passwd": bodies.keep(b"<script>1</script>")}
    credits = [{"finding": HOSTILE, "credit": 0.5, "weight": 1, "reason": HOSTILE}]
    details: dict[str, Any] = {"credits": credits, "truth": {HOSTILE: HOSTILE}, "injections": [HOSTILE]}
    details["teams"] = {NAME: {"findings": {HOSTILE: HOSTILE}, "accuracy": 0.5, "credits": {HOSTILE: 0.5}}}
    stated = bodies.keep({HOSTILE: [{HOSTILE: HOSTILE}]})
    report = bodies.keep(HOSTILE + '\n```findings\n{"' + "x" + '": "<script>window.canary=11</script>"}\n```\n')
    call: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1, "seed": 1, "finish": HOSTILE, "faults": [HOSTILE]}
    ran: dict[str, Any] = {"images": [bodies.keep(PNG)], "files": files}
    return [
        PhaseEvent(**who, status="started", number=0),
        LLMCallEvent(**who, **call, model=HOSTILE, messages=[message, text], reply=message),
        ToolCallEvent(**who, **ran, tool=HOSTILE, arguments=tool, result=text, ok=False, status=HOSTILE),
        MessageEvent(**who, to=HOSTILE, text=text),
        RequestEvent(**who, to=HOSTILE, kind="redo", request=HOSTILE, justification=HOSTILE),
        ArtifactEvent(**who, name=NAME, version=1, content=text, description=HOSTILE),
        ArtifactEvent(**who, name="final_paper", version=1, content=report),
        ArtifactEvent(**who, name="final_paper", version=2, content=bodies.keep(HOSTILE * 2)),
        FindingsEvent(**who, findings=stated, version=1, repaired=[{"what": HOSTILE, "where": HOSTILE}]),
        DecisionEvent(**who, stage=HOSTILE, round=1, decision={HOSTILE: HOSTILE}),
        PayoffEvent(round=1, payoffs={NAME[:80]: 1.0, HOSTILE: 2.0}, details={HOSTILE: HOSTILE}),
        FailedReplyEvent(**who, reason=HOSTILE),
        ScoreEvent(judge="verified", version=HOSTILE, metric=HOSTILE, value=0.5, reason=HOSTILE, details=details),
        WarningEvent(text=HOSTILE),
        ErrorEvent(text=HOSTILE),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path_factory.mktemp('hostile')}/runs.db")
    for kind in ("science", "game", "strategies", "unheard-of"):
        bodies = Bodies()
        events = hostile_events(bodies)
        hostile: dict[str, Any] = {"error": HOSTILE, "models": [HOSTILE], "study": "<script>window.canary=12</script>"}
        condition = {"task": HOSTILE, "game": HOSTILE, HOSTILE: {HOSTILE: HOSTILE}}
        add(
            made,
            kind,
            events,
            bodies,
            status="failed",
            key=kind,
            condition=condition,
            settings={HOSTILE: HOSTILE},
            **hostile,
        )
    yield made
    made.close()


@pytest.fixture(scope="module")
def site(store: Store) -> Iterator[Site]:
    with served(store) as found:
        yield found


def check(page: Any, seen: Any, own: str) -> None:
    """Check that nothing ran, nothing was asked of anybody else, and that no trap was set up in the page."""
    assert page.evaluate("window.canary === undefined")
    assert [url for url in seen.requests if not url.startswith(own)] == []
    assert re.findall(UNSEEN, page.content()) == []
    counts = page.evaluate(
        "[...document.querySelectorAll('iframe, object, embed, base, style, [style], main script, [id=stolen]')]"
        ".map(one => one.outerHTML.slice(0, 200))"
    )
    assert counts == []
    traps = page.evaluate(
        "[...document.querySelectorAll('*')].filter(one => [...one.attributes].some(a => a.name.startsWith('on')"
        " || (['href', 'src', 'action'].includes(a.name) && /^\\s*(javascript|data|vbscript):/i.test(a.value))))"
        ".map(one => one.outerHTML.slice(0, 200))"
    )
    assert traps == []


def test_no_page_of_a_hostile_run_runs_or_loads_anything(browser: Browser, site: Site, store: Store) -> None:
    runs = list(store.runs())
    paths = [
        "/",
        "/studies",
        f"/compare?a={runs[0].id}&b={runs[1].id}",
        "/?study=%3Cscript%3Ewindow.canary%3D12%3C/script%3E",
    ]
    for run in runs:
        paths += [f"/runs/{run.id}", f"/runs/{run.id}/story"]
    paths += [f"/runs/{runs[0].id}/events/{number}" for number in range(len(store.events(runs[0].id)))]
    with page_of(browser, site.url) as (page, seen):
        for path in paths:
            answer = page.goto(site.url + path)
            assert answer is not None
            assert answer.status == 200, path
            assert "canary" in page.content() or path == "/studies"
            check(page, seen, site.url)
        # A policy that had to stop something would say so; only the picture that is none may fail.
        assert [said for said in seen.errors if "Content Security Policy" in said] == []


def test_what_is_new_in_a_hostile_run_runs_nothing_either(browser: Browser, site: Site, store: Store) -> None:
    [run, *_] = store.runs()
    with page_of(browser, site.url) as (page, seen):
        page.goto(f"{site.url}/runs/{run.id}/story")
        page.evaluate(
            "async (url) => { const news = await (await fetch(url)).json();"
            " document.getElementById('story').insertAdjacentHTML('beforeend', news.html); }",
            f"/runs/{run.id}/live?after=-1&mode=append",
        )
        page.wait_for_timeout(200)
        assert page.locator("#story > li").count() > 14
        check(page, seen, site.url)


@pytest.mark.parametrize(
    "pages", ["story-1.html", pytest.param("*.html", marks=pytest.mark.slow("tests/viewer/test_attacks.py"))]
)
def test_pages_of_an_export_run_and_load_nothing_from_elsewhere(
    browser: Browser, store: Store, tmp_path: Path, pages: str
) -> None:
    whole, brief = tmp_path / "whole", tmp_path / "brief"
    export_pages(store, whole, limit=1)
    export_pages(store, brief, run_ids=[run.id for run in store.runs()][1:], events=False)
    written = [path for folder in (whole, brief) for path in folder.rglob("*") if path.is_file()]
    assert all(path.resolve().is_relative_to(tmp_path) for path in written)
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "brief"}
    assert {path.suffix for path in written} <= {".html", ".css", ".js", ".svg", ".png", ".txt", ".bin", ""}
    with page_of(browser, "", token="") as (page, seen):
        for path in sorted(tmp_path.rglob(pages)):
            page.goto(path.as_uri())
            check(page, seen, "file://")
        assert page.evaluate("getComputedStyle(document.querySelector('.top')).position") == "sticky"


def test_a_file_of_a_hostile_name_is_saved_under_a_plain_one(site: Site, store: Store) -> None:
    [run, *_] = store.runs()
    for place in (1, 2):
        answer = site.get(f"/runs/{run.id}/files/2/{place}")
        assert answer.headers["content-type"] == "application/octet-stream"
        name = answer.headers["content-disposition"].removeprefix("attachment; filename*=UTF-8''")
        assert not set(name) & set("/\\<>\"' ;\r\n")
        assert not name.startswith(".")
    artifact = site.get(f"/runs/{run.id}/files/5/0")
    assert artifact.headers["content-type"] == "text/plain; charset=utf-8"
    assert artifact.headers["content-disposition"].startswith("attachment;")


def test_a_picture_of_few_bytes_and_many_pixels_is_kept_from_the_browser(tmp_path: Path) -> None:
    size = (60_000).to_bytes(4, "big")
    bodies = Bodies()
    pictures = [bodies.keep(PNG[:8] + b"\0\0\0\rIHDR" + wide + size) for wide in (size, (8).to_bytes(4, "big"))]
    code = bodies.keep({"code": "draw()"})
    call = ToolCallEvent(tool="run_code", arguments=code, result=code, images=[*pictures, code], ok=True, status="ok")
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    run = add(store, "science", [call], bodies)
    with served(store) as site:
        answer = site.get(f"/runs/{run}/figures/{pictures[0]}.png")
        assert answer.status == 404
        assert "60,000 by 60,000 pixels" in answer.text
        assert site.get(f"/runs/{run}/figures/{pictures[1]}.png").status == 200
    export_pages(store, tmp_path / "pages")
    assert len(list((tmp_path / "pages").rglob("*.png"))) == 1
    store.close()


def test_who_follows_a_link_tells_nobody_where_it_stood(browser: Browser, site: Site, store: Store) -> None:
    [run, *_] = store.runs()
    there = {"body": "<title>there</title>", "content_type": "text/html"}
    with page_of(browser, site.url) as (page, _):
        page.context.route("http://a.example/**", lambda route: route.fulfill(**there))
        page.goto(f"{site.url}/runs/{run.id}/events/3?token={TOKEN}")
        assert "token" not in page.url
        page.locator("a[href^='http://a.example']").first.click()
        page.wait_for_url("http://a.example/**")
        assert page.title() == "there"
        assert page.evaluate("document.referrer") == ""


@pytest.mark.parametrize(
    "how",
    [
        *("fetch", "frame"),
        *(pytest.param(how, marks=pytest.mark.slow("tests/viewer/test_attacks.py")) for how in ("image", "script")),
    ],
)
def test_a_foreign_page_gets_nothing_even_with_the_cookie_in_the_browser(
    browser: Browser, site: Site, store: Store, how: str
) -> None:
    with page_of(browser, site.url) as (page, _), served(store) as other:
        # Another origin on this machine, with a page that may do anything: what it asks for must fail.
        page.route(f"{other.url}/trap", lambda route: route.fulfill(body="<body>", content_type="text/html"))
        page.goto(f"{other.url}/trap")
        target = f"{site.url}/static/viewer.js"
        tried = {
            "fetch": "async (url) => { try { return (await fetch(url)).status } catch { return 'refused' } }",
            "image": "(url) => new Promise(d => { const i = new Image(); i.onload = () => d('got');"
            " i.onerror = () => d('refused'); i.src = url.replace('viewer.js', 'icon.svg') })",
            "script": "(url) => new Promise(d => { const s = document.createElement('script');"
            " s.onload = () => d('got'); s.onerror = () => d('refused'); s.src = url; document.head.append(s) })",
            "frame": "(url) => new Promise(d => { const f = document.createElement('iframe'); f.src = url;"
            " f.onload = () => d('refused'); document.body.append(f) })",
        }
        assert page.evaluate(tried[how], target) == "refused"
        if how == "frame":  # it is loaded, but with the browser's own page of an error
            assert page.frames[-1].url.startswith("chrome-error:")


def test_a_page_by_another_name_shows_nothing(browser: Browser, site: Site) -> None:
    with page_of(browser, site.url) as (page, _):
        answer = page.goto(f"http://rebound.localhost:{site.port}/?token={TOKEN}")
        assert answer is not None
        assert answer.status == 421
        assert "Runs" not in page.content()
