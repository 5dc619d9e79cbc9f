"""External agents on an organisation's seats, by kind of connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from inspect import isawaitable
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphInterrupt

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import Seat
from labmates.agents.steps import kinds_by_label, label_of
from labmates.errors import MissingExtraError, UsageError
from labmates.models.names import HUMAN, SEAT
from labmates.records.recorder import Recorder
from labmates.workflows.calls.call import Call, Outsider, Speaker
from labmates.workflows.calls.caller import Caller, RecordedOutsider
from labmates.workflows.people.answerers import Person, seconds_of
from labmates.workflows.people.live import Live
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.own_graph import SeatModel, load_function, message_of
from labmates.workflows.science.seats.a2a_agents import run_a2a
from labmates.workflows.science.seats.programs import check_command, run_command
from labmates.workflows.science.seats.session import Agent, SeatAgent, SeatSession, SeatTerms


class SeatAgents:
    """The external agents of one run.

    Parameters
    ----------
    live
        Link to the page on which people answer; None without a page.
    past
        The record of a rerun, which replaces the agents; None otherwise.
    """

    def __init__(self, condition: ScienceCondition, caller: Caller, past: Recorder | None, live: Live | None) -> None:
        self._seats, self._live = condition.crew.seats, live
        self._agents: dict[str, SeatAgent] = {}
        caller.outsiders = self.of
        self._recorded = None if past is None else RecordedOutsider(caller, past)
        for name, (team, seat) in condition.crew.seats.items():
            if (agent := agent_of(seat)) is not None:
                speaker = Speaker(team, name, condition.model_of(name))

                def budget(call: Call) -> str:
                    return call.purse.status(condition.visibility)

                self._agents[name] = SeatAgent(caller, SeatTerms(agent, speaker, seat.seconds, budget))

    def of(self, model: str) -> Outsider | None:
        """The external agent or person with a recorded name; None for a model."""
        provider, _, name = model.partition(":")
        if provider not in (HUMAN, SEAT):
            return None
        if self._recorded is not None:
            return self._recorded
        if provider == SEAT:
            return self._agents[name]
        if self._live is None:
            raise UsageError(f"model '{model}': a person can't be asked here")
        _, seat = self._seats.get(name, ("", None))
        return Person(self._live, seat.seconds if seat and seat.human else seconds_of(model), _forms)

    @asynccontextmanager
    async def step(self, seat: str) -> AsyncIterator[None]:
        """A step of a seat; its external agent ends with the step, unless an interrupt will resume it."""
        is_interrupted = False
        try:
            yield
        except GraphInterrupt:
            is_interrupted = True
            raise
        finally:
            if seat in self._agents and not is_interrupted:
                await self._agents[seat].leave()

    async def close(self) -> None:
        """End all agents."""
        for agent in self._agents.values():
            await agent.leave()


def agent_of(seat: Seat) -> Agent | None:
    """The external agent of a seat; None for a model or a person."""
    if seat.python:
        return partial(_run_python, place=seat.python)
    if seat.command:
        return partial(run_command, seat=seat)
    if seat.a2a:
        return partial(run_a2a, url=seat.a2a)
    return None


def check_seats(organisation: Organisation) -> None:
    """Check that the external agents can be started.

    Raises
    ------
    MissingExtraError
        If a required package is not installed.
    UsageError
        If a function or a program is missing.
    """
    for name, (_, seat) in organisation.seats.items():
        if seat.python:
            try:
                load_function(seat.python)
            except UsageError as error:
                raise UsageError(f"the seat {name}: {error}") from error
        if seat.command:
            check_command(name, seat)
        if seat.command or seat.a2a:
            _check_package(f"the seat {name}", "mcp")
        if seat.a2a:
            _check_package(f"the seat {name}, an A2A agent", "a2a")


def _check_package(what: str, package: str) -> None:
    """Check that the package of an extra with the same name is installed."""
    if find_spec(package) is None:
        raise MissingExtraError(what, package)


class PythonSeat:
    """A seat, for a user's function.

    Attributes
    ----------
    messages
        The system prompt and the agent's order.
    name
        Name of the seat.
    """

    def __init__(self, session: SeatSession) -> None:
        self.messages: list[BaseMessage] = list(session.opening)
        self.name = session.speaker.agent
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
    made: Any = load_function(place)(cast(Any, PythonSeat(session)))
    if isawaitable(made):
        made = await cast(Awaitable[object], made)
    if isinstance(made, Runnable):
        ended = await made.ainvoke({"messages": list(session.opening)})
        messages = ended.get("messages", []) if isinstance(ended, Mapping) else [ended]
        made = messages[-1] if messages else ""
    return str(made.text) if isinstance(made, BaseMessage) else "" if made is None else str(made)


def _forms(call: Call) -> Sequence[dict[str, Any]]:
    """The tools that a person may use in a reply; the lab also lists them in steps that allow none."""
    kind = kinds_by_label().get(label_of(call.step))
    return () if kind is not None and kind.does == "talk" else call.tools
