from __future__ import annotations

import pytest

from labmates.tasks.base import accuracy
from labmates.tasks.registry import get_task
from labmates_author.tasks import check_task
from labmates_plugin_example.task import Inhibitor, InhibitorsFindings, InhibitorsTask


def test_the_task_conforms() -> None:
    assert check_task(InhibitorsTask()) == []


def test_labmates_finds_the_task_by_its_entry_point() -> None:
    assert isinstance(get_task("inhibitors"), InhibitorsTask)


@pytest.mark.parametrize(
    ("change", "share"),
    [({}, 1.0), ({"mechanism": "wrong"}, 0.3), ({"ki_um": None}, 0.5), ({"compound": "KX-1"}, 0.0)],
)
def test_each_part_of_an_inhibitor_earns_its_share(change: dict[str, str | None], share: float) -> None:
    task = InhibitorsTask()
    truth = task.generate(1, "easy").truth
    if "mechanism" in change:
        is_competitive = truth.inhibitors[0].mechanism == "competitive"
        change = {"mechanism": "uncompetitive" if is_competitive else "competitive"}
    stated = Inhibitor.model_validate({**truth.inhibitors[0].model_dump(), **change})
    credits = {one.finding: one for one in task.score(InhibitorsFindings(inhibitors=[stated]), truth)}
    right = InhibitorsFindings(inhibitors=truth.inhibitors[:1])
    best = {one.finding: one for one in task.score(right, truth)}
    assert credits["inhibitors"].credit == pytest.approx(share * best["inhibitors"].credit, abs=0.15)


def test_naming_every_compound_with_every_mechanism_earns_next_to_nothing() -> None:
    task = InhibitorsTask()
    data = task.generate(2)
    everything = [
        Inhibitor(compound=code, mechanism=mechanism)
        for code in data.frame["compound"].unique()
        for mechanism in ("competitive", "uncompetitive", "noncompetitive")
    ]
    assert accuracy(task.score(InhibitorsFindings(inhibitors=everything), data.truth)) < 0.15
