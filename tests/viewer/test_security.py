"""Who is let in, and what every answer tells the browser."""

from __future__ import annotations

import re
from http.cookies import SimpleCookie

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.viewer.security import hosts_of
from tests.support.recorded import Recorded
from tests.support.site import TOKEN, Site

pytestmark = [pytest.mark.xdist_group("viewer")]  # one worker makes the runs

PATHS = ("/", "/studies", "/compare", "/static/viewer.css", "/static/viewer.js", "/runs/x/figures/1.png", "/nothing")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}])
def test_nothing_is_served_without_the_token(site: Site, path: str, headers: dict[str, str]) -> None:
    answer = site.ask(path, **headers)
    assert answer.status == 401
    assert "requires a token" in answer.text
    assert site.ask(f"{path}?token=wrong", Cookie=f"labmates-{site.port}=wrong").status == 401


def test_the_token_of_the_address_goes_into_a_cookie_and_out_of_the_address(site: Site) -> None:
    answer = site.ask(f"/?kind=game&token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/?kind=game")
    [cookie] = SimpleCookie(answer.headers["set-cookie"]).values()
    assert cookie["httponly"]
    assert cookie["samesite"] == "strict"
    assert site.ask("/?kind=game", Cookie=f"{cookie.key}={cookie.value}").status == 200
    assert site.ask("/", Cookie=f"labmates-1={TOKEN}").status == 401  # another viewer's


def test_a_token_for_a_started_browser_is_good_for_one_request(site: Site) -> None:
    assert site.ask(f"/?token={site.once}").status == 303
    assert site.ask(f"/?token={site.once}").status == 401
    assert site.ask(f"/?token={TOKEN}").status == 303


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example", "//evil.example/%2e%2e"])
def test_no_answer_leads_to_another_site(site: Site, path: str) -> None:
    answer = site.ask(f"{path}?token={TOKEN}")
    assert answer.status == 303
    assert answer.headers["location"].startswith("/")
    assert answer.headers["location"][1:2] not in ("/", "\\")
    assert 'href="//' not in site.ask(path).text


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "", "[::1]"]
)
def test_another_name_is_not_answered(site: Site, host: str) -> None:
    answer = site.ask("/", Host=host.format(port=site.port), Authorization=f"Bearer {TOKEN}")
    assert answer.status == 421
    assert "labmates" not in answer.text


def test_both_names_of_this_machine_are_answered(site: Site) -> None:
    for host in hosts_of(site.port):
        assert site.ask("/", Host=host, Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://localhost:{port}"]
)
def test_a_foreign_origin_is_refused(site: Site, origin: str) -> None:
    answer = site.ask("/", Origin=origin.format(port=site.port), Authorization=f"Bearer {TOKEN}")
    assert answer.status == 403
    assert site.ask("/", Origin=site.url, Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_there_is_nothing_but_reading(site: Site, method: str) -> None:
    answer = site.ask("/", method, Authorization=f"Bearer {TOKEN}", Content_Length="0")
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_form_needs_an_origin_a_token_and_the_token_of_the_form(site: Site, recorded: Recorded) -> None:
    path = f"/runs/{recorded.ids['science']}/approval"
    body, let_in = b"decision=yes&step=x", {"Authorization": f"Bearer {TOKEN}"}
    assert site.ask(path, "POST", body, **let_in).status == 403
    assert site.ask(path, "POST", body, Origin="http://evil.example", **let_in).status == 403
    assert site.ask(path, "POST", body, Origin=site.url).status == 401
    refused = site.ask(path, "POST", body, Origin=site.url, **let_in)
    assert (refused.status, "an earlier session of the viewer" in refused.text) == (403, True)
    form_token = re.findall(r'name="form_token" value="([^"]+)"', refused.text)
    assert not form_token, "no question waits, so there is no form"
    assert site.ask(path, "POST", b"x" * 70_000, Origin=site.url, **let_in).status == 400


def test_every_answer_shuts_the_browser_in(site: Site, recorded: Recorded) -> None:
    run = recorded.ids["science"]
    pages = [site.get(path) for path in (*PATHS, f"/runs/{run}", f"/runs/{run}/story", f"/runs/{run}/live")]
    for answer in (
        *pages,
        site.ask("/"),
        site.ask("/", Host="evil.example"),
        site.ask("/", "POST", Content_Length="0"),
    ):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


@given(st.text(max_size=60))
def test_no_guess_is_the_token(guess: str) -> None:
    from labmates.viewer.security import Gate

    gate = Gate(None, TOKEN, frozenset())  # type: ignore[arg-type]
    assert gate._is_right(guess) == (guess == TOKEN)
