"""No regular expression takes more than linear work: texts of servers, programs and models are hostile."""

from __future__ import annotations

import pytest

from tests.support.patterns import Found, growth, patterns

MOST = 2.6
"""Growth of the steps when a text doubles; 4 for quadratic work."""


@pytest.mark.parametrize("pattern", [r"[\w.-]*\*{3,}", r"\s+$", r"(a|b)*c+d", r"x*y", r"(?:a+)+b"])
def test_work_beyond_the_length_of_a_text_is_seen(pattern: str) -> None:
    assert growth(Found("", pattern, 0, searches=True), 60)[0] > MOST


@pytest.mark.parametrize(
    "pattern", [r"(?<![\w.-])[\w.-]*+\*{3,}", r"\bBearer\s+[^\s]+", r"^a*$", r"a{0,80}b", r"[ab]c"]
)
def test_linear_work_is_not_refused(pattern: str) -> None:
    assert growth(Found("", pattern, 0, searches=True), 400)[0] < MOST


def test_all_patterns_of_the_package_are_linear() -> None:
    slow = []
    for found in patterns():
        ratio, unit = growth(found, 24)
        if ratio > MOST and (ratio := growth(found, 240, [unit])[0]) > MOST:  # bounded repeats need longer texts
            slow.append(
                f"{found.place}: {found.pattern!r} on {unit!r}…: {ratio:.1f} times the steps for twice the text"
            )
    assert not slow, "\n".join(slow)
