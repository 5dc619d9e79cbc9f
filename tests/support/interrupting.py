"""Organisations as code that ask a person, and a model and a person that answer them."""

from __future__ import annotations

from typing import Any

from labmates.models.scripted.base import Draft, Heard, call
from labmates.workflows.people.approval import Question

CODE = '''
import operator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt


@dataclass
class Plan:
    title: str
    day: date
    other: object


class State(TypedDict):
    messages: list
    said: Annotated[list, operator.add]


async def ask(lab, seat, text):
    reply = await lab.model(seat).ainvoke([lab.brief, HumanMessage(text)])
    return reply.text


def reviewed(lab, **options):
    """One agent whose artifacts a person reviews."""
    review = HumanInTheLoopMiddleware(interrupt_on={"write_artifact": True}, **options)
    return create_agent(lab.model("ana"), lab.tools("ana"), middleware=[review], name="ana")


def each(lab):
    return reviewed(lab, interrupt_mode="per_call")


def checkpointed(lab):
    """The same, compiled with a checkpointer of its own."""
    review = HumanInTheLoopMiddleware(interrupt_on={"write_artifact": True})
    tools = lab.tools("ana")
    return create_agent(lab.model("ana"), tools, middleware=[review], name="ana", checkpointer=InMemorySaver())


def parallel(lab):
    """Three branches that each ask twice, between calls of the model, then a nested graph that asks."""
    nested = StateGraph(State)

    async def inner(state):
        text = await ask(lab, "cho", "inner")
        return {"said": [f"{text}: {interrupt({('inner',): Plan('nested', date(2026, 1, 2), object())})}"]}

    nested.add_node("inner", inner)
    nested.add_edge(START, "inner")

    async def branch(state):
        seat = state["seat"]
        first = await ask(lab, seat, f"{seat} begins")
        one = interrupt(f"{seat}: one?")
        [code] = lab.tools(seat, ["run_code"])
        seen = await code.ainvoke({"code": f"print({one!r}, len({seat!r}))"})
        two = interrupt({"who": seat, "seen": seen})
        second = await ask(lab, seat, f"{seat} ends with {two}")
        return {"said": [f"{seat}: {first} {one} {seen} {two} {second}"]}

    async def end(state):
        await lab.deliver("# Results " + " ".join(map(str, state["said"])) + " " + "." * 80, seat="ana")
        return {}

    graph = StateGraph(State)
    graph.add_node("branch", branch)
    graph.add_node("nested", nested.compile())
    graph.add_node("end", end)
    seats = ("ana", "ben", "dan")
    graph.add_conditional_edges(START, lambda state: [Send("branch", {"seat": seat}) for seat in seats])
    graph.add_edge("branch", "nested")
    graph.add_edge("nested", "end")
    graph.add_edge("end", END)
    return graph.compile()


async def function(lab):
    """A function that asks itself, calls a graph to its end, and asks again."""
    whole = await ask(lab, "ana", "first")
    about = interrupt("What about?")
    [write] = lab.tools("ana", ["write_artifact"])
    await write.ainvoke({"name": "notes", "content": f"{whole} {about}"})
    agent = create_agent(lab.model("ben"), lab.tools("ben", ["read_artifact"]))
    ended = await agent.ainvoke({"messages": [lab.brief, HumanMessage("read the notes")]})
    if not interrupt({"deliver": ended["messages"][-1].text}):
        raise ValueError("refused")
    await lab.deliver(f"# Results {about} {ended['messages'][-1].text}" + "." * 80, seat="ana")


async def short(lab):
    """One call and one question."""
    reply = await ask(lab, "ana", "Hello.")
    await lab.deliver(f"# Results {reply} {interrupt('What is the answer?')!r}" + "." * 80, seat="ana")
'''


def working(heard: Heard) -> Draft:
    """Run code, write the paper, and improve it once it was refused; without these tools say what was heard."""
    tools = {tool["function"]["name"] for tool in heard.tools}
    told = [str(message.content) for message in heard.messages]
    if "write_artifact" not in tools:
        if "read_artifact" in tools and heard.messages[-1].type != "tool":
            return Draft("", (call("read_artifact", name="notes"),))
        return Draft(f"heard {told[-1][:60]}")
    last = heard.messages[-1]
    if last.type == "human":
        return Draft("", (call("run_code", code="print(len(df))"),))
    is_refused = "better" in str(last.content)
    if last.name == "write_artifact" and not is_refused:
        return Draft("done")
    content = f"# A {'better' if is_refused else 'quick'} paper\n{'.' * 100}"
    return Draft("", (call("write_artifact", name="final_paper", content=content),))


def answering(question: Question) -> Any:
    """Refuse what is quick, and give each other question an answer of its own."""
    if question.what == "review":
        return "quick" not in question.text or "Make it better."
    if question.text.startswith("{"):
        return {"answer to": question.text}
    return f"about {question.text}"
