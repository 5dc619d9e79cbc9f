"""An agent's tools: the models' view of their arguments, and the check of calls.

Other packages add tools (entry points ``labmates.tools``): LangChain tools, or plain functions. Their calls are paid
and recorded like those of the lab's tools. They run in the process of the run, not in the sandbox, and get neither the
data set nor the truth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, field_validator

from labmates.agents.findings import FindingsForm
from labmates.agents.sections import excerpt
from labmates.registry import Registry
from labmates.util.forms import each_part
from labmates.util.python_text import statements

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


class ToolError(Exception):
    """An invalid tool call; the agent gets the text."""


_ESCAPED = re.compile(r"\\([nt\"'\\])")
_MEANT = {"n": "\n", "t": "\t"}


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunCode(_Arguments):
    """Run Python code."""

    code: str
    description: str = Field("", description="Its purpose, in a few words.")

    @field_validator("code")
    @classmethod
    def _plain(cls, code: str) -> str:
        """The code without a fence around it, and with the line breaks of code that was escaped twice."""
        if (fenced := code.strip()).startswith("```"):
            code = fenced.partition("\n")[2].removesuffix("```")
        if "\n" in code or statements(code) is not None:
            return code
        unescaped = _ESCAPED.sub(lambda match: _MEANT.get(match[1], match[1]), code)
        return unescaped if statements(unescaped) is not None else code


class ReadArtifact(_Arguments):
    """Read an artifact."""

    name: str
    offset: int = Field(0, ge=0, description="Character to start at.")


class WriteArtifact(_Arguments):
    """Write an artifact; an existing one gets a new version."""

    name: str = Field(description="Lower-case letters, digits and _.")
    content: str = Field(description="All of it, in Markdown.")
    description: str = Field("", description="What it holds.")


class AppendArtifact(_Arguments):
    """Add text to the end of an artifact; one that was cut off goes on exactly where it stopped."""

    name: str
    content: str = Field(description="The new text alone.")


class ReplaceSection(_Arguments):
    """Replace one section of an artifact."""

    name: str
    heading: str
    content: str = Field(description="The new text, without heading.")


class StateFindings(RootModel[dict[str, Any]]):
    """State the findings of your work, as far as they are known; replaces what was stated before."""


class ListArtifacts(_Arguments):
    """List all artifacts with their sizes."""


class SendMessage(_Arguments):
    """Send a short message to a team that has yet to start."""

    to_team: str
    content: str


class RequestAdditionalWork(_Arguments):
    """Ask an earlier team for something new; it works on it before your team goes on."""

    target_team: str
    request: str = Field(description="What you need, exactly.")


class RequestTeamRedo(_Arguments):
    """Ask an earlier team to do its work anew from scratch."""

    target_team: str
    request: str = Field(description="What has to be different.")
    justification: str = Field(description="Why the present work can't be used.")


class MarkComplete(_Arguments):
    """Close your task."""

    summary: str = Field(description="What you found, with the numbers.")


ARGUMENTS: dict[str, type[BaseModel]] = {
    "run_code": RunCode,
    "read_artifact": ReadArtifact,
    "write_artifact": WriteArtifact,
    "append_artifact": AppendArtifact,
    "replace_section": ReplaceSection,
    "state_findings": StateFindings,
    "list_artifacts": ListArtifacts,
    "send_message": SendMessage,
    "request_additional_work": RequestAdditionalWork,
    "request_team_redo": RequestTeamRedo,
    "mark_complete": MarkComplete,
}
"""Every tool by name, with the model of its arguments."""

READ = "read_artifact"
"""The tool that shows an artifact, a page at a time."""

TO_WRITE = ("write_artifact", "append_artifact", "replace_section")
"""Tools that write a new version of an artifact."""

TOOLS = tuple(ARGUMENTS)
"""All tools, in the models' order."""

STATE = "state_findings"
"""The tool of leads; its arguments are the fields of the project's findings."""

TO_CLOSE = (READ, *TO_WRITE, STATE)
"""Tools for writing the team's artifact."""


def tool_schemas(names: Iterable[str], form: FindingsForm | None) -> list[dict[str, Any]]:
    """Descriptions of tools; the tool for findings has the fields of `form`.

    A run sends the same list with every call: providers cache tools before messages, so a different list would
    invalidate the cached prompt. The prompt names the tools allowed in a step; calls of other tools get an error.
    """
    return [findings_schema(form) if name == STATE and form is not None else tool_schema(name) for name in names]


@lru_cache(maxsize=256)
def findings_schema(form: FindingsForm) -> dict[str, Any]:
    """Description of the tool for findings; the project's prompt explains its fields."""
    function = {"name": STATE, "description": StateFindings.__doc__, "parameters": _bare(form.parameters)}
    return {"type": "function", "function": function}


_CHECKED = ("description", "maxItems", "maxLength", "minimum", "maximum")


def _bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without descriptions and limits, which are checked anyway."""
    return each_part({key: value for key, value in schema.items() if key not in _CHECKED}, _bare)


@cache
def tool_schema(name: str) -> dict[str, Any]:
    """The tool's description in OpenAI's format, which LangChain accepts everywhere; shared, so don't modify it."""
    model = ARGUMENTS[name]
    schema = model.model_json_schema()
    properties = {
        key: {k: v for k, v in value.items() if k not in ("title", "default", "minimum")}
        for key, value in schema.get("properties", {}).items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    return {
        "type": "function",
        "function": {"name": name, "description": schema["description"], "parameters": parameters},
    }


def check_arguments(name: str, arguments: Mapping[str, Any], held: list[str]) -> BaseModel:
    """The checked arguments of a tool call.

    Raises `ToolError` if the agent lacks the tool, or the arguments are invalid; the text lists what is allowed.
    """
    if name not in held:
        raise ToolError(f"you have no tool '{name}' in this step. Your tools: {', '.join(held)}.")
    try:
        return ARGUMENTS[name].model_validate(dict(arguments))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors()[:5])
        fields = ARGUMENTS[name].model_fields
        allowed = ", ".join(f"{key}{'' if item.is_required() else ' (optional)'}" for key, item in fields.items())
        raise ToolError(f"wrong arguments for {name}: {faults}. It takes: {allowed or 'nothing'}.") from error


OWN_TOOLS: Registry[BaseTool | Callable[..., Any]] = Registry("tool", "labmates.tools")
"""Tools of other packages by name."""

MOST_CHARS = 12_000
"""Longer results are cut."""


@cache
def own_tool(name: str) -> BaseTool:
    """The tool `name` of another package.

    Raises `UsageError` if it is unknown, or is neither a LangChain tool nor a function with a docstring.
    """
    from langchain_core.tools import BaseTool, StructuredTool

    with OWN_TOOLS.guarded(name, "is not a tool"):
        entry = OWN_TOOLS.get(name)
        if isinstance(entry, BaseTool):
            return entry
        if iscoroutinefunction(entry):
            return StructuredTool.from_function(coroutine=entry, name=name)
        return StructuredTool.from_function(entry, name=name)


def own_schema(name: str) -> dict[str, Any]:
    """The description of a tool of another package, in OpenAI's format."""
    from langchain_core.utils.function_calling import convert_to_openai_tool

    schema = convert_to_openai_tool(own_tool(name))
    return {**schema, "function": {**schema["function"], "name": name}}


async def use_own_tool(name: str, arguments: Mapping[str, Any]) -> str:
    """The result of a tool of another package, as text.

    Raises `ToolError` if the arguments don't fit, or the tool fails.
    """
    try:
        result = await own_tool(name).ainvoke(dict(arguments))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
        raise ToolError(f"wrong arguments for {name}: {faults}") from error
    except (Exception, SystemExit) as error:
        raise ToolError(f"{name} failed: {type(error).__name__}: {error}") from error
    return excerpt(str(result), MOST_CHARS)
