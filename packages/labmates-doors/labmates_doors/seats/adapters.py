"""Ways in which external agents come to a seat: Python functions, programs and A2A agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, StructuredTool

from labmates.agents.organisation_parts import Seat
from labmates.errors import UsageError
from labmates.workflows.calls.call import Call, Speaker
from labmates.workflows.calls.caller import Caller
from labmates.workflows.science.lab.outside import load_function, worked
from labmates_doors.own_graph import SeatModel, message_of
from labmates_doors.seats.a2a_agents import run_a2a
from labmates_doors.seats.programs import check_command, run_command
from labmates_doors.seats.session import Agent, SeatAgent, SeatError, SeatSession, SeatTerms


@dataclass(frozen=True)
class Kind:
    """A kind of seats; see `labmates.workflows.science.lab.outside.SeatKind`."""

    check: Callable[[str, Seat], None]
    agent: Callable[[Seat], Agent]

    def connect(self, caller: Caller, speaker: Speaker, seat: Seat, budget: Callable[[Call], str]) -> SeatAgent:
        """The agent of a seat."""
        return SeatAgent(caller, SeatTerms(self.agent(seat), speaker, seat.seconds, budget))


def _check_function(name: str, seat: Seat) -> None:
    try:
        load_function(seat.python)
    except UsageError as error:
        raise UsageError(f"the seat {name}: {error}") from error


PYTHON = Kind(_check_function, lambda seat: partial(_run_python, place=seat.python))
COMMAND = Kind(check_command, lambda seat: partial(run_command, seat=seat))
A2A = Kind(lambda _name, _seat: None, lambda seat: partial(run_a2a, url=seat.a2a))


class PythonSeat:
    """A seat, for a user's function.

    Attributes
    ----------
    messages
        The system prompt and the agent's order.
    name
        Name of the seat.
    step
        What this step is, for instance ``plan``, ``work`` or ``review``.
    """

    def __init__(self, session: SeatSession) -> None:
        self.messages: list[BaseMessage] = list(session.opening)
        self.name, self.step = session.speaker.agent, session.step
        self._session = session

    @property
    def model(self) -> BaseChatModel:
        """The chat model of the seat, paid by the pool."""
        return SeatModel(seat=self.name, ask=self._ask)

    @property
    def tools(self) -> list[BaseTool]:
        """The tools of this step."""
        return [self._tool(tool["function"]) for tool in self._session.tools]

    def budget(self) -> str:
        """The seat's view of the pool."""
        return self._session.budget()

    async def _ask(self, messages: list[BaseMessage], tools: Any) -> AIMessage:
        return message_of(await self._session.ask(messages, tools=tools))

    def _tool(self, function: Mapping[str, Any]) -> BaseTool:
        name = function["name"]

        async def use(**arguments: Any) -> str:
            return await self._session.use(name, arguments)

        description = function.get("description", "")
        return StructuredTool(name=name, description=description, args_schema=function["parameters"], coroutine=use)


async def _run_python(session: SeatSession, place: str) -> str:
    """Run a function, and the LangGraph graph that it may return, as the agent of a session."""
    made = await worked(place, PythonSeat(session), session.opening)
    if isinstance(made, Mapping) and (messages := made.get("messages")):
        made = messages[-1]
    if isinstance(made, BaseMessage):
        made = str(made.text)
    if not isinstance(made, str | None):
        raise SeatError(
            f"the agent ended with a {type(made).__name__}; a text, a message, a state with 'messages' or a compiled "
            "graph is needed"
        )
    return made or ""
