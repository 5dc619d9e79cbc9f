"""What the page on plug-ins shows works, and what it says of the rules is complete."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from types import ModuleType

import pytest
from langchain_core.messages import HumanMessage

from labmates.judges.base import Report
from labmates.judges.registry import JUDGES
from labmates.models.scripted import BASELINES
from labmates.tasks.conformance import check_task
from labmates.tasks.conformance.trial import TRIAL_RULES
from labmates.tasks.registry import TASKS
from labmates.tasks.report import oracle_report
from tests.support.lab_orders import with_facts
from tests.support.plugins import ROOT

PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Return the module that all Python on the page makes."""
    path = tmp_path_factory.mktemp("page") / "clocks.py"
    path.write_text("\n\n".join(blocks("python")), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("page_on_plugins", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_task_on_the_page_conforms(page: ModuleType) -> None:
    assert check_task(page.ClockTask()) == []


def test_the_judge_on_the_page_scores_a_report_and_leaves_a_missing_one_unscored(page: ModuleType) -> None:
    task = page.ClockTask()
    truth = task.generate(0).truth
    [score] = asyncio.run(page.BrevityJudge().score(Report(oracle_report(task, truth), task, truth)))
    assert score.value == 1.0
    [missing] = asyncio.run(page.BrevityJudge().score(Report(None, task, truth)))
    assert missing.value is None


def test_the_baseline_on_the_page_answers_every_step(page: ModuleType) -> None:
    model = page.Laconic()
    tools = [{"type": "function", "function": {"name": "run_code", "parameters": {}}}]
    plan = model.invoke(with_facts([HumanMessage("# Step: plan\nFor exactly these members:\n")]))
    assert plan.text.startswith("- Look.")
    for held, called in ((tools, "run_code"), ([], "mark_complete")):
        [made] = model.invoke(with_facts([HumanMessage("# Step: work\nYour task: look")]), tools=held).tool_calls
        assert made["name"] == called
    [written] = model.invoke(with_facts([HumanMessage("# Step: write the artifact `final_paper`\n")])).tool_calls
    assert written["args"]["name"] == "final_paper"
    assert model.invoke(with_facts([HumanMessage("What is this?")])).text == "I have nothing to add."


def test_the_entry_points_on_the_page_name_what_is_on_it_and_groups_that_there_are(page: ModuleType) -> None:
    [declared] = [tomllib.loads(block)["project"]["entry-points"] for block in blocks("toml")]
    assert set(declared) == {TASKS.group, JUDGES.group, BASELINES.group}
    for points in declared.values():
        for value in points.values():
            assert hasattr(page, value.partition(":")[2])


def test_the_page_explains_every_rule_of_the_check_in_its_order() -> None:
    rules = PAGE.partition("## The rules of conformance")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w ]+)` \|", rules, re.MULTILINE) == list(TRIAL_RULES)
