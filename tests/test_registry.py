"""Entries are found by name, ours and those of other packages; a broken plug-in is named and breaks nothing else."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from labmates.agents.organisation_files import ORGANISATIONS
from labmates.agents.players.base import PLAYERS
from labmates.agents.steps import STEPS
from labmates.errors import UsageError
from labmates.games.dilemmas import DILEMMAS
from labmates.games.registry import GAMES
from labmates.judges.registry import JUDGES, MODEL_JUDGES
from labmates.mechanisms.registry import MECHANISMS
from labmates.models.scripted import BASELINES
from labmates.registry import CORE, PluginError, Registry, entry_points, look_up_plugins
from labmates.tasks.registry import TASKS
from labmates.workflows.protocol.analysis import ANALYSES
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates.workflows.protocol.verb import VERBS
from tests.support.plugins import install

GROUP = "labmates.things"
Add = Callable[..., None]
_NUMBERS = itertools.count()
REGISTRIES: list[Registry[Any]] = [
    ANALYSES,
    BASELINES,
    DILEMMAS,
    EXPERIMENTS,
    GAMES,
    JUDGES,
    MODEL_JUDGES,
    MECHANISMS,
    ORGANISATIONS,
    PLAYERS,
    STEPS,
    TASKS,
    VERBS,
]
MEMBERS = {"axelrod/": "TitForTat", "colleague/": "care=0.2"}


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Add:
    """Install a package with one module; in entry points ``M`` stands for the module's name, a new one each time."""

    def install_one(package: str, points: Mapping[str, str], code: str = "", group: str = GROUP) -> None:
        module = f"plugin_{next(_NUMBERS)}"
        values = {name: value.replace("M", module) for name, value in points.items()}
        monkeypatch.syspath_prepend(install(tmp_path / package, package, {group: values}, {module: code}))

    return install_one


def things() -> Registry[object]:
    return Registry("thing", GROUP)


@pytest.fixture(autouse=True)
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let labmates declare a thing; its real entries were looked up before."""
    look_up_plugins()
    points = {GROUP: {"ours": "labmates.errors:UsageError"}}
    monkeypatch.syspath_prepend(install(tmp_path / CORE, CORE, points, {}))


def test_our_entries_and_those_of_other_packages_are_found_by_name(add: Add) -> None:
    add("their-things", {"theirs": "M:thing"}, "thing = 'found'")
    found = things()
    assert list(found) == ["ours", "theirs"]
    assert found.get("theirs") == "found"
    assert found.get("ours") is UsageError
    assert (found.package("theirs"), found.package("ours")) == ("their-things 1.0", None)
    assert found.is_own("ours")
    assert not found.is_own("theirs")


def test_every_entry_that_labmates_declares_belongs_to_a_registry_and_loads() -> None:
    registries = {registry.group: registry for registry in REGISTRIES}
    declared = [
        (group, name)
        for group, names in entry_points(tuple(sys.path[1:])).items()  # the first is that of the fixture
        for name, points in names.items()
        if any(point.distribution == CORE for point in points)
    ]
    assert len(declared) > 80
    for group, name in declared:
        assert registries[group].is_own(name)
        assert registries[group].package(name) is None
        # Of a family, one member shows that what makes them is there.
        assert registries[group].get(f"{name}{MEMBERS[name]}" if name.endswith("/") else name)


def test_a_name_begins_a_family_if_it_ends_with_a_slash(add: Add) -> None:
    add("their-things", {"times/": "M:times"}, "def times(rest): return 'x' * int(rest)")
    found = things()
    assert list(found) == ["ours"]
    assert "times/3" in found
    assert found.in_family("times/3")
    assert found.get("times/3") == "xxx"
    assert not found.is_own("times/3")
    with pytest.raises(PluginError, match=r"the thing 'times/a' \(their-things 1.0, .*ValueError"):
        found.get("times/a")


def test_an_entry_of_a_package_of_ours_that_is_not_installed_is_told_with_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {GROUP: {"elsewhere": "labmates-somewhere", "all/": "labmates-somewhere"}}
    monkeypatch.setattr("labmates.registry.satellites", lambda: table)
    for name in ("elsewhere", "all/this"):
        with pytest.raises(UsageError, match=rf"'{name}' is in the package labmates-somewhere: pip install labmates-s"):
            things().get(name)
    assert things().missing() == {"labmates-somewhere"}


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
    found: Registry[Callable[[], object]] = Registry("thing", GROUP)
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
