"""A supervisor and two agents under one pool. The models are scripted; with real ones all else stays the same."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

import labmates

USAGE: Any = {"input_tokens": 2000, "output_tokens": 100, "total_tokens": 2100}
ROWS = {"finder": "The data set has 340 rows.", "critic": "Two rows are duplicates."}
ASKED: Any = [{"name": "ask", "args": {"agent": name, "question": "How many rows?"}, "id": name} for name in ROWS]


class Scripted(FakeMessagesListChatModel):
    """Gives its replies in turn."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Leave the tools out: the replies are written already."""
        return self


def member(name: str, tools: list[Any], *replies: AIMessage) -> Any:
    """An agent that spends from the pool."""
    return create_agent(Scripted(responses=replies), tools, middleware=[budget], name=name)


def ask(agent: str, question: str) -> str:
    """Ask another agent."""
    return str(members[agent].invoke({"messages": [("user", question)]})["messages"][-1].content)


budget = labmates.SharedBudget("0.05", prices="input=0.50,output=3")
members = {name: member(name, [], AIMessage(text, usage_metadata=USAGE)) for name, text in ROWS.items()}
asks = AIMessage("", tool_calls=ASKED, usage_metadata=USAGE)  # both at once: each may spend half of what is left
supervisor = member("supervisor", [ask], asks, AIMessage("338 different rows.", usage_metadata=USAGE))
print(supervisor.invoke({"messages": [("user", "How many rows?")]})["messages"][-1].content, budget, sep="\n")
for line in budget.journal:
    print(f"{line.member:<10} {line.call:<24} {line.kind:<8} {line.amount:>6}")
