"""Markdown by a model: what comes out holds nothing that runs, loads or leads elsewhere than the web."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.pages.markdown import MOST_CHARS, _parser, markdown
from labmates.pages.rendering import plain

ALLOWED = {"a": {"href", "title", "rel"}, "ol": {"start"}}
_TAGS = "a blockquote br code del em h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul"
ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x)",
    "[a](file:///etc/passwd)",
    "[a](//evil.example)",
    "<javascript:alert(1)>",
    "![a](http://evil.example/x.png)",
    "![a](data:image/svg+xml;base64,AAAA)",
    "<svg onload=alert(1)>",
    "<style>*{background:url(http://evil.example)}</style>",
    "<iframe src=http://evil.example>",
    '<a href="x" onclick="alert(1)">b</a>',
    "[a]: javascript:alert(1)\n\n[a]",
    "```html\n<script>alert(1)</script>\n```",
    "`<script>`",
    "<!-- --><meta http-equiv=refresh content=0>",
    '[x](http://a.example "onmouseover=alert(1)")',
)


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def check(html: str) -> None:
    seen = _Seen()
    seen.feed(html)
    for tag, attributes in seen.tags:
        assert tag in _TAGS.split(), html
        assert attributes.keys() <= ALLOWED.get(tag, set()), html
        if "href" in attributes:
            assert str(attributes["href"]).lower().startswith(("http://", "https://")), html
            assert "noopener" in str(attributes["rel"])


@pytest.mark.parametrize("text", ATTACKS)
def test_nothing_hostile_comes_through(text: str) -> None:
    check(markdown(text))


@pytest.mark.parametrize("text", ATTACKS)
def test_what_the_parser_lets_through_is_cleaned(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parser(), "validateLink", lambda _url: True)
    check(markdown(text))


@given(
    st.lists(
        st.sampled_from([*ATTACKS, "\n", "\n\n", "# ", "- ", "> ", "|", "*", "_", "`", "<", ">", '"', "&"]) | st.text()
    )
)
def test_no_text_at_all_gets_out(parts: list[str]) -> None:
    check(markdown("".join(parts)))


def test_what_reports_need_is_there() -> None:
    html = markdown(
        "# Results\n\n**Two** of *three*, see [it](https://a.example).\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n1. x"
    )
    for part in ("<h4>Results</h4>", "<strong>Two</strong>", "<em>three</em>", "<table>", "<td>2</td>", "<ol>"):
        assert part in html
    assert '<a href="https://a.example" rel="noopener noreferrer nofollow">it</a>' in html
    assert "picture, not loaded: a plot" in markdown("![a plot](http://a.example/x.png)")


def test_a_text_too_long_to_parse_is_shown_as_it_is() -> None:
    assert markdown("<b>" * MOST_CHARS).startswith("<pre>&lt;b&gt;")


def test_characters_that_turn_or_hide_text_are_shown_as_such() -> None:
    assert plain("a\u202eb\u0000c\u200fd\r\ne\tf") == "a\ufffdb\ufffdc\ufffdd\ne\tf"
    assert plain("\u200bx\u2060\ufeff\U000e0041\u00ad\ud800") == "\ufffdx" + "\ufffd" * 5
    assert plain("می\u200cخواهم 👩\u200d🔬") == "می\u200cخواهم 👩\u200d🔬"
    assert "\u202e" not in markdown("a &#x202e; [b](http://a.example/&#8238;)")


def test_what_the_parser_would_leave_out_is_shown_as_it_is() -> None:
    for mark in ("> ", "- ", "1. "):
        assert "far below" in markdown(mark * 100 + "far below")
        assert markdown(mark * 10 + "near").count("<pre>") == 0


@pytest.mark.parametrize("short", ["x\n", "|\n", "a|b|c\n-|-|-\n"])
def test_a_wide_table_of_short_rows_is_no_table(short: str) -> None:
    wide = "|" + "a|" * 1_000 + "\n|" + "-|" * 1_000 + "\n"
    assert markdown(wide).count("<th>") == 1_000
    sparse = markdown(wide + short * 5_000)
    assert "<td>" not in sparse
    assert len(sparse) < 200_000
    assert markdown("a | b\n--|--\n1 | 2\n3\n4").count("<td>") == 6
