"""The tools that an agent holds: what each takes, as the model is told, and how a call is checked and carried out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from labmates.agents.desk import Desk, ToolError
from labmates.agents.roles import Team


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunCode(_Arguments):
    """Run Python code; the data set is loaded as `df`, and variables are kept between calls."""

    code: str = Field(description="The Python code. Print what you want to see.")
    description: str = Field("", description="What the code is for, in a few words.")


class ReadArtifact(_Arguments):
    """Read an artifact of the project."""

    name: str = Field(description="Name of the artifact.")


class WriteArtifact(_Arguments):
    """Keep a text as an artifact of the project; an existing one gets a new version."""

    name: str = Field(description="Name of the artifact: lower-case letters, digits and _.")
    content: str = Field(description="The whole text, in Markdown.")
    description: str = Field("", description="What it holds, in a few words.")


class ListArtifacts(_Arguments):
    """List all artifacts with their sizes."""


class SendMessage(_Arguments):
    """Send a short message to another team; it reads it when its next phase starts."""

    to_team: str = Field(description="The other team: data, model, eval or writing.")
    content: str = Field(description="The message.")


class RequestAdditionalWork(_Arguments):
    """Ask a team that worked before yours for something new; it works on it before your team goes on."""

    target_team: str = Field(description="The team that is asked.")
    request: str = Field(description="What you need, exactly.")


class RequestTeamRedo(_Arguments):
    """Ask a team that worked before yours to do its work anew from scratch."""

    target_team: str = Field(description="The team that is asked.")
    request: str = Field(description="What has to be different.")
    justification: str = Field(description="Why the present work can't be used.")


class MarkComplete(_Arguments):
    """Close your task."""

    summary: str = Field(description="What you found, with the numbers.")


ARGUMENTS: dict[str, type[BaseModel]] = {
    "run_code": RunCode,
    "read_artifact": ReadArtifact,
    "write_artifact": WriteArtifact,
    "list_artifacts": ListArtifacts,
    "send_message": SendMessage,
    "request_additional_work": RequestAdditionalWork,
    "request_team_redo": RequestTeamRedo,
    "mark_complete": MarkComplete,
}
"""Every tool by name, with the model of its arguments."""

TO_OTHERS = ("send_message", "request_additional_work", "request_team_redo")
"""Tools that make sense only where there are other teams."""


def tool_names(team: Team) -> list[str]:
    """Return the names of the tools that members of `team` hold."""
    lacking = {*(() if team.has_code else ("run_code",)), *(TO_OTHERS if team.alone else ())}
    return [name for name in ARGUMENTS if name not in lacking]


@cache
def tool_schema(name: str) -> dict[str, Any]:
    """Return the tool's description in the form of OpenAI's function calling, which all of LangChain takes.

    It is made once and shared: don't change it.
    """
    model = ARGUMENTS[name]
    schema = model.model_json_schema()
    properties = {
        key: {k: v for k, v in value.items() if k not in ("title", "default")}
        for key, value in schema.get("properties", {}).items()
    }
    parameters = {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": schema["description"], "parameters": parameters},
    }


def check_arguments(name: str, arguments: Mapping[str, Any], held: list[str]) -> BaseModel:
    """Return the checked arguments of a tool call.

    Raises
    ------
    ToolError
        If the agent holds no such tool, or the arguments don't fit; the text says what is allowed.
    """
    if name not in held:
        raise ToolError(f"you have no tool '{name}'. Your tools: {', '.join(held)}.")
    try:
        return ARGUMENTS[name].model_validate(dict(arguments))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors()[:5])
        fields = ARGUMENTS[name].model_fields
        allowed = ", ".join(f"{key}{'' if item.is_required() else ' (optional)'}" for key, item in fields.items())
        raise ToolError(f"wrong arguments for {name}: {faults}. It takes: {allowed or 'nothing'}.") from error


def use_desk(desk: Desk, arguments: BaseModel) -> str:
    """Carry out a tool call that needs nothing but the desk (every one but ``run_code``).

    Raises
    ------
    ToolError
        If what was asked for can't be.
    """
    match arguments:
        case ReadArtifact():
            return desk.read(arguments.name)
        case WriteArtifact():
            return desk.write(arguments.name, arguments.content, arguments.description)
        case ListArtifacts():
            return desk.list()
        case SendMessage():
            return desk.send(arguments.to_team, arguments.content)
        case RequestAdditionalWork():
            return desk.ask(arguments.target_team, "additional", arguments.request)
        case RequestTeamRedo():
            return desk.ask(arguments.target_team, "redo", arguments.request, arguments.justification)
        case MarkComplete():
            return desk.complete(arguments.summary)
        case _:
            raise TypeError(f"{type(arguments).__name__} is no tool of the desk")
