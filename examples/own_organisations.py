"""Organisations of the science lab as code: an agent, a reviewed one, a supervisor with two workers, and a single call.

labmates run science --task ecology --model scripted:diligent --organisation examples/own_organisations.py:supervised
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool

import labmates
from labmates_doors.own_graph import Lab


def agent(lab: Lab) -> Any:
    """One agent of LangChain's, with all tools of the lab."""
    return create_agent(lab.model("ana"), lab.tools("ana"))


def reviewed(lab: Lab) -> Any:
    """The same agent; a person approves or refuses each text before it is kept."""
    review: Any = HumanInTheLoopMiddleware(interrupt_on={"write_artifact": True})
    return create_agent(lab.model("ana"), lab.tools("ana"), middleware=[review])


def supervised(lab: Lab) -> Any:
    """A supervisor that gives tasks to two workers, each with a model and tools of its own."""
    workers = [_worker(lab, name) for name in ("ana", "ben")]
    return create_agent(lab.model("boss"), [*workers, *lab.tools("boss", ["state_findings", "write_artifact"])])


def _worker(lab: Lab, name: str) -> BaseTool:
    graph: Any = create_agent(lab.model(name), lab.tools(name, ["run_code", "write_artifact", "read_artifact"]))

    async def ask(task: str) -> str:
        ended = await graph.ainvoke({"messages": [lab.brief, HumanMessage(task)]})
        return str(ended["messages"][-1].text)

    return StructuredTool.from_function(coroutine=ask, name=f"ask_{name}", description=f"Give {name} a task.")


async def one_call(lab: Lab) -> None:
    """A plain function: one call, whose reply is the paper."""
    reply = await lab.model().ainvoke([lab.brief])
    await lab.deliver(str(reply.text))


if __name__ == "__main__":
    [ended] = labmates.run(
        "science",
        task="anomaly",
        difficulty="easy",
        model="scripted:diligent",
        organisation=f"{__file__}:one_call",
    )
    print(f"{ended.status} after {ended.usage.llm_calls} call")
