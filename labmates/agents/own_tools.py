"""Tools that other packages add to the lab (entry points ``labmates.tools``): LangChain tools, or plain functions.

Their calls are paid and recorded like those of the lab's tools. A tool runs in the process of the run, not in
the sandbox, and is neither given the data set nor the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import iscoroutinefunction
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from labmates.agents.excerpts import excerpt
from labmates.agents.tools import ToolError
from labmates.registry import Registry

OWN_TOOLS: Registry[BaseTool | Callable[..., Any]] = Registry("tool", "labmates.tools")
"""Tools of other packages by name."""

MOST_CHARS = 12_000
"""How much of a result an agent is shown."""


@cache
def own_tool(name: str) -> BaseTool:
    """The tool of another package that has this name.

    Raises
    ------
    UsageError
        If there is none, or it is neither a LangChain tool nor a function with a docstring.
    """
    with OWN_TOOLS.guarded(name, "is not a tool"):
        entry = OWN_TOOLS.get(name)
        if isinstance(entry, BaseTool):
            return entry
        if iscoroutinefunction(entry):
            return StructuredTool.from_function(coroutine=entry, name=name)
        return StructuredTool.from_function(entry, name=name)


def own_schema(name: str) -> dict[str, Any]:
    """The description of a tool of another package, in the form of OpenAI's function calling."""
    schema = convert_to_openai_tool(own_tool(name))
    return {**schema, "function": {**schema["function"], "name": name}}


async def use_own_tool(name: str, arguments: Mapping[str, Any]) -> str:
    """Call a tool of another package and return its result as text.

    Raises
    ------
    ToolError
        If the arguments don't fit, or the tool fails.
    """
    try:
        result = await own_tool(name).ainvoke(dict(arguments))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
        raise ToolError(f"wrong arguments for {name}: {faults}") from error
    except Exception as error:
        raise ToolError(f"{name} failed: {type(error).__name__}: {error}") from error
    return excerpt(str(result), MOST_CHARS)
