"""Entries are found by name, ours and those of other packages; a broken plug-in is named and breaks nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from labmates import workflows
from labmates.agents.players.base import PLAYERS
from labmates.errors import UsageError
from labmates.judges.registry import JUDGES
from labmates.models.scripted import BASELINES
from labmates.registry import PluginError, Registry
from labmates.tasks.registry import TASKS
from labmates.workflows.protocol.analysis import ANALYSES
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates.workflows.protocol.verb import VERBS
from tests.support.plugins import install

GROUP = "labmates.things"
Add = Callable[..., None]
_NUMBERS = itertools.count()


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Add:
    """Install a package with one module; in entry points ``M`` stands for the module's name, a new one each time."""

    def install_one(package: str, points: Mapping[str, str], code: str = "", group: str = GROUP) -> None:
        module = f"plugin_{next(_NUMBERS)}"
        values = {name: value.replace("M", module) for name, value in points.items()}
        monkeypatch.syspath_prepend(install(tmp_path / package, package, {group: values}, {module: code}))

    return install_one


def things() -> Registry[object]:
    return Registry("thing", GROUP, {"ours": "labmates.errors:UsageError"})


def test_our_entries_and_those_of_other_packages_are_found_by_name(add: Add) -> None:
    add("their-things", {"theirs": "M:thing"}, "thing = 'found'")
    found = things()
    assert list(found) == ["ours", "theirs"]
    assert found.get("theirs") == "found"
    assert found.get("ours") is UsageError
    assert (found.package("theirs"), found.package("ours")) == ("their-things 1.0", None)
    assert found.is_own("ours")
    assert not found.is_own("theirs")


def test_every_entry_that_an_experiment_declares_belongs_to_a_registry_and_loads(tmp_path: Path) -> None:
    strategy = tmp_path / "strategy.py"
    strategy.write_text("class Strategy:\n    pass\n")
    registries = {registry.group: registry for registry in (EXPERIMENTS, ANALYSES, PLAYERS, BASELINES, VERBS)}
    packages = [
        import_module(f"labmates.workflows.{module.name}")
        for module in iter_modules(workflows.__path__)
        if module.ispkg
    ]
    declared = [
        (group, name)
        for package in packages
        for group, names in getattr(package, "ENTRIES", {}).items()
        for name in names
    ]
    assert len(declared) == len(set(declared)) > 30
    for group, name in declared:
        assert registries[group].is_own(name)
        # Of a family, one member shows that what makes them is there.
        assert registries[group].get(f"{name}{strategy}:Strategy" if name.endswith("/") else name)


def test_an_unknown_name_is_told_with_the_nearest_one(add: Add) -> None:
    add("their-things", {"theirs": "M:thing"})
    with pytest.raises(UsageError, match=r"unknown thing 'their'.*Did you mean 'theirs'.*Known: ours, theirs"):
        things().get("their")


@pytest.mark.parametrize(
    ("value", "code", "why"),
    [
        ("M:thing", "raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("M:thing", "import sys; sys.exit(3)", "SystemExit: 3"),
        ("M:thing", "def broken(:", "SyntaxError: "),
        ("M:thing", "", "AttributeError: "),
        ("M:thing", "from labmates.errors import UsageError\nraise UsageError('not today')", "imported: not today"),
        ("nowhere_at_all:thing", "", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("no value at all!", "", "Error: "),  # which one depends on what else is imported here
    ],
)
def test_a_plug_in_that_can_not_be_imported_is_named_with_package_and_entry_point(
    add: Add, value: str, code: str, why: str
) -> None:
    add("bad-things", {"bad": value, "good": "labmates.errors:explain"}, code)
    found = things()
    with pytest.raises(PluginError) as error:
        found.get("bad")
    assert "the thing 'bad' (bad-things 1.0, entry point labmates.things: bad = " in str(error.value)
    assert why in str(error.value)
    assert callable(found.get("good"))
    assert list(found) == ["bad", "good", "ours"]


def test_whatever_a_plug_in_raises_later_is_told_in_the_same_way(add: Add) -> None:
    add("bad-things", {"bad": "M:thing"}, "def thing(): raise KeyError('x')")
    found: Registry[Callable[[], object]] = Registry("thing", GROUP, {})
    with (
        pytest.raises(PluginError, match=r"'bad' \(bad-things 1.0, .*\) can't be made: KeyError: 'x'"),
        found.guarded("bad", "can't be made"),
    ):
        found.get("bad")()


def test_errors_of_our_own_and_of_registered_entries_stay_as_they_are() -> None:
    found = things()
    found.register("new", 1)
    for name in ("ours", "new", "unknown"):
        with pytest.raises(KeyError), found.guarded(name, "can't be made"):
            raise KeyError(name)


def test_a_plug_in_can_not_take_the_name_of_ours_and_is_told_to_be_ignored(add: Add) -> None:
    add("sly-things", {"ours": "M:thing"}, "thing = 'sly'")
    found = things()
    assert found.get("ours") is UsageError
    assert found.is_own("ours")
    assert found.shadowed() == ["the thing 'ours' is labmates' own; that of sly-things 1.0 is ignored"]


def test_a_name_that_two_packages_declare_is_used_from_neither(add: Add) -> None:
    add("a-things", {"same": "M:thing"}, "thing = 'a'")
    add("b-things", {"same": "M:thing", "other": "M:thing"}, "thing = 'b'")
    found = things()
    with pytest.raises(PluginError, match=r"several packages declare the thing 'same': (a|b)-things 1.0 and"):
        found.get("same")
    assert found.get("other") == "b"


def test_what_is_registered_for_this_process_comes_before_all_others(add: Add) -> None:
    add("their-things", {"theirs": "M:thing"}, "thing = 'found'")
    found = things()
    found.register("theirs", "mine")
    assert found.get("theirs") == "mine"
    assert found.package("theirs") is None


@pytest.mark.parametrize("registry", [TASKS, JUDGES, BASELINES])
def test_tasks_judges_and_baselines_of_other_packages_are_found(
    registry: Registry[object], add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_plugins", None)
    monkeypatch.setattr(registry, "_loaded", {})
    add("their-things", {"theirs": "M:thing", "broken": "M:nothing"}, "thing = 'found'", group=registry.group)
    assert registry.get("theirs") == "found"
    assert not registry.is_own("theirs")
    with pytest.raises(PluginError, match=rf"{registry.group}: broken = plugin_\d+:nothing"):
        registry.get("broken")
