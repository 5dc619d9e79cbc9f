from __future__ import annotations

import httpx2
import pytest

from labmates.models.clients import proxy_of

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("variables", "url", "variable"),
    [
        ({"HTTP_PROXY": "p:1"}, "http://a", "HTTP_PROXY"),
        ({"HTTP_PROXY": "p:1"}, "https://a", None),
        ({"HTTP_PROXY": "p:1", "http_proxy": "q:1"}, "http://a", "http_proxy"),
        ({"HTTP_PROXY": "p:1", "http_proxy": ""}, "http://a", None),
        ({"HTTP_PROXY": " "}, "http://a", None),
        ({"ALL_PROXY": "p:1", "HTTPS_PROXY": "q:1"}, "https://a", "HTTPS_PROXY"),
        ({"ALL_PROXY": "p:1", "HTTPS_PROXY": "q:1"}, "http://a", "ALL_PROXY"),
    ],
)
def test_the_proxy_is_that_of_the_scheme_else_that_of_all(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str, variable: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    proxy = proxy_of(httpx2.URL(url))
    assert (proxy and proxy.variable) == variable


@pytest.mark.parametrize(
    ("exempt", "url", "goes_directly"),
    [
        ("*", "http://a.example", True),
        ("b.example, *", "http://a.example", True),
        ("a.example", "http://a.example:8000", True),
        ("A.Example", "http://a.example", True),
        ("example", "http://a.example", True),
        (".example", "http://a.example", True),
        ("*.example", "http://a.example", True),
        ("example", "http://notexample", False),
        ("a.example:8000", "http://a.example:8000", True),
        ("a.example:8000", "http://a.example:8001", False),
        ("a.example:80", "http://a.example", True),
        ("http://a.example", "http://a.example", True),
        ("10.0.0.0/8", "http://10.1.2.3", True),
        ("10.0.0.0/8", "http://11.1.2.3", False),
        ("10.1.2.3/8", "http://10.9.9.9", True),
        ("10.0.0.0/8", "http://ten.example", False),
        ("127.0.0.1", "http://127.0.0.1:8000", True),
        ("::1", "http://[::1]:8000", True),
        ("[::1]:8000", "http://[::1]:8000", True),
        ("[::1]:8000", "http://[::1]:9000", False),
        ("fe80::/10", "http://[fe80::1]", True),
        ("localhost 127.0.0.1", "http://127.0.0.1", True),
        ("[::,,/9,:,127.0.0.1/99", "http://127.0.0.1", False),
        ("", "http://a.example", False),
    ],
)
def test_exempt_servers_are_reached_directly_even_if_the_proxy_is_malformed(
    monkeypatch: pytest.MonkeyPatch, exempt: str, url: str, goes_directly: bool
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", exempt)
    assert (proxy_of(httpx2.URL(url)) is None) == goes_directly
    if goes_directly:
        monkeypatch.setenv("HTTP_PROXY", "ftp://[")
        assert proxy_of(httpx2.URL(url)) is None
