"""LangChain's supervisor, an agent and a deep agent with a sub-agent under one pool; real models go the same way."""

from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langgraph_supervisor import create_supervisor

import labmates

USAGE: Any = {"input_tokens": 2000, "output_tokens": 100, "total_tokens": 2100}


class Scripted(FakeMessagesListChatModel):
    """Gives its replies in turn."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Leave the tools out: the replies are written already."""
        return self


def model(*replies: str | dict[str, Any]) -> Any:
    """A model that says texts and calls tools."""
    said = [("", [reply | {"id": "1"}]) if isinstance(reply, dict) else (reply, []) for reply in replies]
    return Scripted(responses=[AIMessage(text, tool_calls=calls, usage_metadata=USAGE) for text, calls in said])


budget = labmates.SharedBudget("0.05", prices="input=0.50,output=3")
reader: Any = {"name": "reader", "description": "Reads.", "system_prompt": "Read.", "middleware": [budget]}
task = {"name": "task", "args": {"description": "Count the rows.", "subagent_type": "reader"}}
reader["model"] = model("340 rows.")
deep = model(task, "The data set has 340 rows.")
analyst = create_deep_agent(deep, subagents=[reader], middleware=[budget], name="analyst")
critic = create_agent(model("Two rows are duplicates."), middleware=[budget], name="critic")
plan = [{"name": f"transfer_to_{name}", "args": {}} for name in ("analyst", "critic")]
boss = create_supervisor([analyst, critic], model=budget.metered(model(*plan, "338 different rows."))).compile()
print(boss.invoke({"messages": [("user", "How many rows?")]})["messages"][-1].content, budget, sep="\n")
