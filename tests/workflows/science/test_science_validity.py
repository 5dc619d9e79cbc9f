from __future__ import annotations

import pytest

from labmates.agents.organisation_parts import REPORT
from labmates.workflows.science.run import LEAST_CHARS, MOST_FAILED_REPLIES, invalid_work

PAPER = "x" * LEAST_CHARS
GOOD, BAD = (10, 1), (10, 10)
MOSTLY_BAD = (100, int(100 * MOST_FAILED_REPLIES) + 1)


@pytest.mark.parametrize(
    ("artifacts", "replies", "exhausted", "reason"),
    [
        ({REPORT: PAPER}, GOOD, False, None),
        ({REPORT: PAPER}, MOSTLY_BAD, False, None),
        ({REPORT: PAPER[1:]}, GOOD, False, f"the paper has {LEAST_CHARS - 1} characters"),
        ({REPORT: "a" + " " * 1000 + "b"}, GOOD, False, "the paper has 3 characters"),
        ({REPORT: "noise"}, GOOD, True, "the paper has 5 characters"),
        ({}, GOOD, False, "no paper was written"),
        ({}, GOOD, True, None),
        ({}, MOSTLY_BAD, True, "51% of the replies"),
        ({"dataset_description": PAPER}, GOOD, True, None),
        ({"dataset_description": "noise", "evaluation": "more noise"}, GOOD, True, "the longest artifact has 10"),
        ({REPORT: PAPER}, BAD, False, "no reply could be used, of 10"),
    ],
)
def test_work_is_valid_if_replies_were_read_and_the_paper_has_substance_or_no_money(
    artifacts: dict[str, str], replies: tuple[int, int], exhausted: bool, reason: str | None
) -> None:
    found = invalid_work(artifacts, *replies, exhausted=exhausted)
    assert found is None if reason is None else found is not None and reason in found
