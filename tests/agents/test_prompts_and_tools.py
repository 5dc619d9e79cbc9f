from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.agents.prompts import Prompts, render
from labmates.agents.sections import excerpt, excerpts
from labmates.agents.tools import ARGUMENTS, RunCode, ToolError, check_arguments, tool_schema
from labmates.agents.workspace import Workspace
from tests.support.plugins import ROOT
from tests.support.teams import PIPELINE, TEAMS

TEMPLATES = sorted(
    (".".join(path.relative_to(ROOT).parts[:-2]), path.stem)
    for path in (ROOT / "labmates").rglob("prompts/*.md")
    if "organisations" not in path.parts
)
"""Packages and names of the prompts."""


NEEDS_NO_DESCRIPTION = {"code", "name", "heading", "content", "to_team", "target_team"}
"""Parameters that their tool's description and their own names explain; each word goes with every call of a run."""


@pytest.mark.parametrize(("package", "name"), TEMPLATES)
def test_a_template_takes_all_its_values_and_leaves_none_open(package: str, name: str) -> None:
    prompts = Prompts(package)
    names = set(prompts.template(name).get_identifiers())
    filled = prompts.render(name, **{key: f"<{key}>" for key in names})
    assert all(f"<{key}>" in filled for key in names)
    assert "$" not in filled
    if names:
        with pytest.raises(KeyError):
            prompts.render(name)


def test_what_is_filled_in_is_never_read_as_a_template() -> None:
    assert "$gone {x} $$" in render("repair", problem="$gone {x} $$", form="")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_tool_schema_is_one_that_strict_servers_take(name: str) -> None:
    function = tool_schema(name)["function"]
    assert function["name"] == name
    assert function["description"]
    parameters = function["parameters"]
    assert parameters["type"] == "object"
    assert set(parameters["required"]) <= set(parameters["properties"])
    told = {key for key, value in parameters["properties"].items() if value.get("description")}
    assert set(parameters["properties"]) - told <= NEEDS_NO_DESCRIPTION


def test_only_the_writing_team_has_no_code() -> None:
    assert {name: "run_code" in team.tools() for name, team in TEAMS.items()} == {
        "data": True, "model": True, "eval": True, "writing": False,
    }  # fmt: skip


def test_wrong_arguments_are_told_with_what_is_allowed() -> None:
    held = TEAMS["data"].tools()
    with pytest.raises(ToolError, match=r"It takes: code, description \(optional\)"):
        check_arguments("run_code", {"cod": "1"}, held)
    with pytest.raises(ToolError, match="It takes: nothing"):
        check_arguments("list_artifacts", {"all": True}, held)
    assert check_arguments("run_code", {"code": "1"}, held).model_dump() == {"code": "1", "description": ""}


@pytest.mark.parametrize(
    ("sent", "run"),
    [
        ("```python\nx = 1\nprint(x)\n```", "x = 1\nprint(x)\n"),
        ("\n```\nprint('```')\n```\n", "print('```')\n"),
        ("```py\nprint(1)", "print(1)"),
        (r"x = 1\nif x:\n\tprint(\"a\\nb\")", 'x = 1\nif x:\n\tprint("a\\nb")'),
        (r"print('a\nb')", r"print('a\nb')"),
        (r"x = 1\nif x", r"x = 1\nif x"),
        (r"%matplotlib inline", r"%matplotlib inline"),
        ("x = (1\nprint(x)", "x = (1\nprint(x)"),
        ("(" * 5_000, "(" * 5_000),
    ],
)
def test_code_is_run_without_its_fence_or_second_escapes(sent: str, run: str) -> None:
    arguments = check_arguments("run_code", {"code": sent}, ["run_code"])
    assert isinstance(arguments, RunCode)
    assert arguments.code == run


def test_a_message_or_request_that_says_nothing_is_refused() -> None:
    workspace = Workspace(PIPELINE, "eval", {}, {"data": 2}, ["writing"])
    with pytest.raises(ToolError, match="the message is empty"):
        workspace.send("writing", " \n")
    with pytest.raises(ToolError, match="the request is empty"):
        workspace.ask("data", "redo", "", "because")
    assert (workspace.sent, workspace.requests) == ([], [])


def test_a_request_is_refused_if_nobody_could_be_paid_for_it() -> None:
    workspace = Workspace(PIPELINE, "eval", {}, {"data": 2}, pays=lambda _team, _kind: False)
    with pytest.raises(ToolError, match="nobody of the data team could be paid for the work"):
        workspace.ask("data", "additional", "more")
    assert workspace.requests == []


def test_each_team_hands_over_an_artifact_of_its_own_and_roles_are_unique() -> None:
    assert [team.artifact for team in TEAMS.values()] == [
        "dataset_description", "model_architecture", "evaluation_report", "final_paper",
    ]  # fmt: skip
    ids = [role.id for team in TEAMS.values() for role in team.members]
    assert len(ids) == len(set(ids)) == 12
    assert len(TEAMS["writing"].sections) == 7


def test_a_message_is_taken_only_for_a_team_that_will_read_it() -> None:
    workspace = Workspace(PIPELINE, "eval", {}, {"data": 2}, ["writing"])
    with pytest.raises(ToolError, match=r"data team has no phase left.* still read one: writing"):
        workspace.send("data", "hello")
    with pytest.raises(ToolError, match=r"'moon' is not another team.* still read a message: writing"):
        workspace.send("moon", "hello")
    workspace.ask("data", "additional", "more")
    assert "reads your message" in workspace.send("data", "hello")
    with pytest.raises(ToolError, match="still read one: none"):
        Workspace(PIPELINE, "writing", {}, {}).send("model", "hello")


def test_a_long_message_is_cut_and_its_sender_told() -> None:
    workspace = Workspace(PIPELINE, "data", {}, {}, ["model"])
    assert "cut to its first 2,000 characters" in workspace.send("model", "x" * 2_500)
    assert workspace.sent[0].content.endswith("[500 characters left out]")
    assert "cut" not in workspace.send("model", "short")


def test_every_character_of_an_artifact_can_be_read_page_by_page() -> None:
    text = "".join(f"line {number}\n" for number in range(4_000))
    workspace = Workspace(PIPELINE, "eval", {"notes": text, "empty": ""}, {})
    pages, offset = [], 0
    while True:
        shown = workspace.read("notes", offset)
        more = re.search(r"\n\[characters \d+ to (\d+) of \d+; to read on, give offset=(\d+)\]$", shown)
        pages.append(shown[: more.start()] if more else shown)
        if more is None:
            break
        offset = int(more[2])
    assert "".join(pages) == text
    assert len(pages) == 4
    with pytest.raises(ToolError, match=f"'notes' has {len(text)} characters"):
        workspace.read("notes", len(text))
    assert workspace.read("empty") == "[this artifact is empty]"


@given(text=st.text(max_size=60), most=st.integers(1, 40))
def test_an_excerpt_keeps_both_ends_and_says_what_is_left_out(text: str, most: int) -> None:
    shown = excerpt(text, most)
    if len(text) <= most:
        assert shown == text
        return
    head, tail = text[: most - most // 2], text[len(text) - most // 2 :]
    assert shown == f"{head}\n[{len(text) - most} characters left out]\n{tail}"
    assert excerpt(text, most, "first") == f"{text[:most]}\n[{len(text) - most} characters left out]"


@given(texts=st.lists(st.text("ab", max_size=50), max_size=6), most=st.integers(1, 120))
def test_long_texts_share_what_short_ones_leave(texts: list[str], most: int) -> None:
    shown = excerpts(texts * 2, most)
    texts = list(dict.fromkeys(texts))
    if sum(map(len, texts)) <= most:
        assert shown == "\n".join(texts)
        return
    kept = re.sub(r"\n?\[\d+ characters left out\]\n?", "", shown).replace("\n", "")
    assert most - len(texts) < len(kept) <= most
    smallest = most // len(texts)
    assert all(text in shown for text in texts if len(text) <= smallest)
