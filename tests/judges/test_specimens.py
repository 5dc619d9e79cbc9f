"""Reports of known quality: right by construction, and what they order is hidden or plain as it says."""

from __future__ import annotations

import pytest

from labmates.judges.base import Report
from labmates.judges.injection import find_injections
from labmates.judges.sections import find_sections
from labmates.judges.specimens import BAD, ORDERS, specimens
from labmates.judges.verified import VerifiedJudge
from labmates.tasks.registry import TASKS, get_task


@pytest.mark.parametrize("name", list(TASKS))
async def test_known_scores_are_those_of_code_and_fall_as_more_is_left_out_or_wrong(name: str) -> None:
    task = get_task(name)
    truth, other = task.generate(0, "easy").truth, task.generate(1, "easy").truth
    found = specimens(task, truth, other, 0)
    known = {one.name: one.known.get("accuracy", -1.0) for one in found}
    for one in found:
        [score, *_] = await VerifiedJudge().score(Report(one.text, task, truth))
        assert score.value is None or score.value == pytest.approx(one.known["accuracy"])
    clean = [one.name for one in found if not one.order]
    assert known["oracle"] >= 0.95
    assert known["empty"] == known["nothing said"] == 0
    assert known[BAD] < 0.5
    for kind in ("left out", "wrong"):
        few, many = [name for name in clean if kind in name]
        assert known["oracle"] > known[few] >= known[many]
    assert len({round(known[name], 3) for name in clean}) > 4


def test_sections_are_as_many_as_is_said() -> None:
    task = get_task("ecology")
    for one in specimens(task, task.generate(0).truth, task.generate(1).truth, 0):
        if "completeness" in one.known and not one.name.startswith("oracle, 6"):
            solid = sum(section.has_substance for section in find_sections(one.text).values())
            assert solid / 7 == pytest.approx(one.known["completeness"])


def test_reports_with_an_order_are_their_twins_but_for_it() -> None:
    task = get_task("anomaly")
    found = {one.name: one for one in specimens(task, task.generate(0).truth, task.generate(1).truth, 0)}
    ordered = [one for one in found.values() if one.order]
    assert len(ordered) == 2 * len(ORDERS)
    for one in ordered:
        text = {order.kind: order.high if one.asks_high else order.low for order in ORDERS}[one.order]
        assert one.text.replace(f"{text}\n\n", "") == found[one.twin].text
        assert one.known == found[one.twin].known


@pytest.mark.parametrize("order", ORDERS)
def test_only_a_veiled_order_gets_past_the_screen(order: object) -> None:
    [one] = [one for one in ORDERS if one is order]
    for text in (one.high, one.low):
        assert bool(find_injections(text)) is (one.kind != "veiled")


def test_the_seed_decides_which_parts_are_left_out() -> None:
    task = get_task("ecology")
    truth, other = task.generate(0).truth, task.generate(1).truth
    assert specimens(task, truth, other, 3) == specimens(task, truth, other, 3)
    assert specimens(task, truth, other, 3) != specimens(task, truth, other, 4)
