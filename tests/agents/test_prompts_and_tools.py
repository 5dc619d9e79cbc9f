from __future__ import annotations

import string
from importlib.resources import files

import pytest

from labmates.agents.desk import Desk, ToolError
from labmates.agents.prompts import render
from labmates.agents.roles import TEAMS
from labmates.agents.tools import ARGUMENTS, check_arguments, tool_names, tool_schema

TEMPLATES = sorted(
    f.name.removesuffix(".md") for f in files("labmates.agents.prompts").iterdir() if f.name.endswith(".md")
)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_takes_all_its_values_and_leaves_none_open(name: str) -> None:
    text = files("labmates.agents.prompts").joinpath(f"{name}.md").read_text()
    names = set(string.Template(text).get_identifiers())
    filled = render(name, **{key: f"<{key}>" for key in names})
    assert all(f"<{key}>" in filled for key in names)
    assert "$" not in filled
    if names:
        with pytest.raises(KeyError):
            render(name)


def test_what_is_filled_in_is_never_read_as_a_template() -> None:
    assert "$gone {x} $$" in render("repair", problem="$gone {x} $$")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_tool_schema_is_one_that_strict_servers_take(name: str) -> None:
    function = tool_schema(name)["function"]
    assert function["name"] == name
    assert function["description"]
    parameters = function["parameters"]
    assert parameters["type"] == "object"
    assert set(parameters["required"]) <= set(parameters["properties"])
    assert all(value["description"] for value in parameters["properties"].values())


def test_only_the_writing_team_has_no_code() -> None:
    assert {name: "run_code" in tool_names(team) for name, team in TEAMS.items()} == {
        "data": True, "model": True, "eval": True, "writing": False,
    }  # fmt: skip


def test_wrong_arguments_are_told_with_what_is_allowed() -> None:
    held = tool_names(TEAMS["data"])
    with pytest.raises(ToolError, match=r"It takes: code, description \(optional\)"):
        check_arguments("run_code", {"cod": "1"}, held)
    with pytest.raises(ToolError, match="It takes: nothing"):
        check_arguments("list_artifacts", {"all": True}, held)
    assert check_arguments("run_code", {"code": "1"}, held).model_dump() == {"code": "1", "description": ""}


def test_a_message_or_request_that_says_nothing_is_refused() -> None:
    desk = Desk(TEAMS["eval"], {}, {"data": 2})
    with pytest.raises(ToolError, match="the message is empty"):
        desk.send("data", " \n")
    with pytest.raises(ToolError, match="the request is empty"):
        desk.ask("data", "redo", "", "because")
    assert (desk.sent, desk.requests) == ([], [])


def test_each_team_hands_over_an_artifact_of_its_own_and_roles_are_unique() -> None:
    assert [team.artifact for team in TEAMS.values()] == [
        "dataset_description", "model_architecture", "evaluation_report", "final_paper",
    ]  # fmt: skip
    ids = [role.id for team in TEAMS.values() for role in team.roles]
    assert len(ids) == len(set(ids)) == 12
    assert len(TEAMS["writing"].sections) == 7
