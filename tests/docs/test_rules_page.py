"""What the page on tasks says of the rules of conformance is complete, and plug-ins' groups exist."""

from __future__ import annotations

import re
import tomllib

from labmates.judges.registry import JUDGES
from labmates.models.scripted import BASELINES
from labmates.tasks.conformance.trial import TRIAL_RULES
from labmates.tasks.registry import TASKS
from tests.support.plugins import ROOT


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_page_explains_every_rule_of_the_check_in_its_order() -> None:
    rules = page("howto/new-task.md").partition("## The rules of conformance")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w ]+)` \|", rules, re.MULTILINE) == list(TRIAL_RULES)


def test_the_entry_points_on_the_page_name_groups_that_there_are() -> None:
    [block] = re.findall(r"^```toml\n(.*?)^```$", page("plugins.md"), re.MULTILINE | re.DOTALL)
    assert set(tomllib.loads(block)["project"]["entry-points"]) == {TASKS.group, JUDGES.group, BASELINES.group}
