"""Which judges score, by what names; and that a judge of another package breaks nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.budgets.prices import PriceList
from labmates.errors import UsageError
from labmates.judges.base import Judge, Report, Score
from labmates.judges.panel import ALWAYS, DEFAULT_PANEL, SafeJudge, make_panel, open_judge, partial_judges
from labmates.judges.registry import JUDGES
from labmates.judges.rubric import RubricJudge
from labmates.judges.verified import VerifiedJudge
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.registry import Registry
from labmates.workflows.calls.assessing import JudgeCaller
from tests.judges.conftest import report_of


class Style:
    """A judge as another package may write one."""

    name = "style"
    version = "0.1"
    metrics = ("style",)

    async def score(self, report: Report) -> list[Score]:
        return [Score("style", self.version, "style", 0.5, "plain")]


class Raises(Style):
    async def score(self, report: Report) -> list[Score]:
        raise RuntimeError("no\nink left")


class Returns(Style):
    def __init__(self, what: object) -> None:
        self.what = what

    async def score(self, report: Report) -> list[Score]:
        return self.what() if callable(self.what) else self.what  # type: ignore[return-value]


class Leaves(Style):
    async def score(self, report: Report) -> list[Score]:
        raise SystemExit(3)


def refuses() -> Judge:
    raise ValueError("a licence is needed")


def style(value: Any = 0.5, reason: Any = "plain", **details: Any) -> Score:
    return Score("style", "0.1", "style", value, reason, details)


def opened(name: str, extractor: str | None = None) -> SafeJudge:
    panel = make_panel([name], extractor, always=())
    caller = JudgeCaller(ModelHub(ModelOptions()), seed=0, ledger=Ledger(UNLIMITED), prices=PriceList())
    return open_judge(panel.names[0], panel, caller.ask)


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> Registry[Callable[[], Judge]]:
    """A registry of our own judges, to which a test adds."""
    fresh: Registry[Callable[[], Judge]] = Registry("judge", JUDGES.group)
    for module in ("panel", "registry"):
        monkeypatch.setattr(f"labmates.judges.{module}.JUDGES", fresh)
    return fresh


def test_heuristic_and_verified_always_score_and_need_no_model() -> None:
    assert make_panel([]) == DEFAULT_PANEL
    assert DEFAULT_PANEL.names == ALWAYS == ("heuristic", "verified")
    assert DEFAULT_PANEL.models == ()


def test_models_and_registered_judges_are_named_once_each_in_order() -> None:
    panel = make_panel(["scripted:referee", "rubric:scripted:referee", "verified", "scripted:gullible"])
    assert panel.names == ("heuristic", "verified", "rubric:scripted:referee", "rubric:scripted:gullible")
    assert panel.models == ("scripted:referee", "scripted:gullible")
    assert panel.extractor == "scripted:referee"


def test_an_extractor_is_asked_only_where_verified_judges() -> None:
    assert make_panel(["verified"], "scripted:silent", always=()).models == ("scripted:silent",)
    assert make_panel(["heuristic"], "scripted:silent", always=()).models == ()


def test_a_model_that_judges_its_own_work_is_told() -> None:
    panel = make_panel(["scripted:referee"])
    assert partial_judges(panel, {"scripted:diligent"}) is None
    assert "scripted:referee" in str(partial_judges(panel, {"scripted:referee", "scripted:diligent"}))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("heuristics", "unknown judge 'heuristics'. Did you mean 'heuristic'?"),
        ("gpt-5.4-mini", "A model judges by rubrics as provider:name"),
        ("rubric", "name the model"),
        ("rubric:", "name the model|unknown judge"),
        ("scripted:refere", "Did you mean 'referee'"),
        ("nobody:gpt", "unknown model provider"),
        ("openai:", "no usable name"),
        ("", "unknown judge ''"),
    ],
)
def test_a_wrong_name_is_refused_with_what_is_allowed(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_panel([name])


def test_judges_are_made_by_name() -> None:
    assert isinstance(opened("scripted:referee")._judge, RubricJudge)
    assert opened("scripted:referee").name == "rubric:scripted:referee"
    assert isinstance(opened("verified")._judge, VerifiedJudge)
    assert opened("verified").version == VerifiedJudge.version
    assert opened("verified", "scripted:silent").version.startswith(f"{VerifiedJudge.version}+scripted:silent@")


async def test_a_judge_of_an_installed_package_scores(
    judges: Registry[Callable[[], Judge]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stylepack.py").write_text("from tests.judges.test_panel import Style\n")
    info = tmp_path / "stylepack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stylepack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[labmates.judges]\nstyle = stylepack:Style\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "style" in judges.names()
    [score] = await opened("style").score(report_of())
    assert (score.judge, score.version, score.metric, score.value) == ("style", "0.1", "style", 0.5)
    monkeypatch.setattr(Style, "score", Raises.score)
    [failed] = await opened("style").score(report_of())
    assert failed.failed
    assert "stylepack 1.0, entry point labmates.judges: style = stylepack:Style" in failed.reason
    assert "RuntimeError: no ink left" in failed.reason


@pytest.mark.parametrize(
    ("entry", "metric", "says"),
    [
        (Raises, "style", "RuntimeError: no ink left"),
        (Leaves, "style", "SystemExit: 3"),
        (refuses, "all", "ValueError: a licence is needed"),
        (lambda: None, "all", "its version must be a text"),
        (lambda: object(), "all", "its version must be a text"),
        ("not a factory", "all", "TypeError"),
        (lambda: Returns(None), "style", "returned NoneType"),
        (lambda: Returns(0.5), "style", "returned float"),
        (lambda: Returns([0.5]), "style", "returned list"),
        (lambda: Returns([]), "style", "returned no score"),
        (lambda: Returns(lambda: [style(value=7)]), "style", "must lie in"),
        (lambda: Returns(lambda: [style(value=float("nan"))]), "style", "must lie in"),
        (lambda: Returns(lambda: [style(value="high")]), "style", "TypeError"),
        (lambda: Returns(lambda: [style(reason=None)]), "style", "TypeError"),
        (lambda: Returns(lambda: [style(what=object())]), "style", "TypeError"),
        (lambda: Returns(lambda: [style(share=float("inf"))]), "style", "ValueError"),
    ],
)
async def test_a_judge_that_fails_is_unscored_with_the_reason(
    judges: Registry[Callable[[], Judge]], entry: Any, metric: str, says: str
) -> None:
    judges.register("style", entry)
    [score] = await opened("style").score(report_of())
    assert (score.judge, score.metric, score.value, score.failed) == ("style", metric, None, True)
    assert says in score.reason
    assert "\n" not in score.reason


async def test_a_judge_can_not_sign_for_another_one_or_store_unsafe_text(
    judges: Registry[Callable[[], Judge]],
) -> None:
    signed = Score("verified", "1", "accuracy", True, "\x00\ud800 fine", {"says": "\x1b[2J", "parts": (1, 2)})
    judges.register("style", lambda: Returns([signed]))
    [score] = await opened("style").score(report_of())
    assert score.judge == "style"
    assert type(score.value) is float
    assert "\x00" not in score.reason
    assert score.details == {"says": "\ufffd[2J", "parts": [1, 2]}


def test_a_judge_of_a_package_that_is_not_installed_is_told_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"labmates.model_judges": {"essay": "labmates-essays"}}
    monkeypatch.setattr("labmates.registry.satellites", lambda: table)
    with pytest.raises(UsageError, match="the judge model 'essay' is in the package labmates-essays: pip install"):
        make_panel(["essay:scripted:referee"])
