"""Instruments of divided evidence: which seat holds which, and whether an organisation can bring them together.

Instrument 0 has the readings, all others the keys to them. Nothing is found before a seat that runs code has readings
and all keys: keys become known when their holder has run code, and pass on by artifacts, reports, talk, plans, messages
and requests, as the channels of the organisation allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Final, get_args

from labmates.agents.facts import ALWAYS
from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import FlowPhase, Team, Verb
from labmates.agents.steps import find_step

READINGS: Final = 0
_REQUESTS: Final = ("request_additional_work", "request_team_redo")
_SEES: Final = ALWAYS | {"sees_reports"}
"""Facts of an author to whom members report; one without has only its own conversation."""


def holdings(crew: Organisation, number: int) -> dict[str, int]:
    """The instrument of each seat that runs code, of `number` ones from 0.

    What a seat's `evidence` names goes first. Each instrument with keys that is left goes to one seat: the last of
    those that run code first, so that others can still use the keys. All others hold the readings, at least one.
    """
    first: dict[str, int] = {}
    for place, phase in enumerate(crew.flow):
        for seat in crew.seats if crew.graph else _coders(crew, phase):
            first.setdefault(seat, place)
    held = {name: seat.evidence - 1 for name, (_, seat) in crew.seats.items() if seat.evidence is not None}
    free = [seat for seat in first if seat not in held]
    keys = [place for place in range(1, number) if place not in held.values()]
    keys = keys[: len(free) - (READINGS not in held.values())]
    taken: dict[str, int] = {}
    for turn in sorted({first[seat] for seat in free}):
        takers = [seat for seat in free if first[seat] == turn][-len(keys) or len(free) :]
        taken |= dict(zip(takers, keys, strict=False))
        keys = keys[len(takers) :]
    return {seat: {**held, **taken}.get(seat, READINGS) for seat in dict.fromkeys([*first, *held])}


def dead_end(crew: Organisation, held: Mapping[str, int], names: Sequence[str], *, requests: int) -> str:
    """The reason why the instruments can't be brought together; empty if they can, or if no seat reaches another.

    Parameters
    ----------
    held
        The instrument of each seat, from `holdings`.
    names
        The instruments' names.
    requests
        Maximum number of requests from one team to another.
    """
    verbs: tuple[Verb, ...] = get_args(Verb)
    if crew.graph or not any(crew.may(verb, *pair) for pair in permutations(crew.seats, 2) for verb in verbs):
        return ""  # organisations as code have other channels, and seats kept apart are a control
    code = [seat for seat in held if seat in {name for phase in crew.flow for name in _coders(crew, phase)}]
    missing = [name for place, name in enumerate(names) if place not in (held[seat] for seat in code)]
    if missing:
        run = "seat runs" if len(code) == 1 else "seats run"
        return f"nobody who runs code holds the {missing[0]}: {len(code)} {run} code, for {len(names)} instruments"
    route = _Route(crew, held, len(names), requests)
    if not route.found:
        best = max((route.knows[seat] for seat in code if held[seat] == READINGS), key=len)
        lost = next((place for place in range(1, len(names)) if place not in best), 1)
        holders = " and ".join(seat for seat in code if held[seat] == lost)
        return f"no seat with the {names[READINGS]} runs code after it got all keys; those of {holders} come too late"
    return "" if route.reports else "what the holder of all keys finds never reaches the author of the paper"


def _coders(crew: Organisation, phase: FlowPhase) -> list[str]:
    """The seats that run code in a phase."""
    works = any(find_step(name).does == "work" for name in phase.names)
    return [seat.id for seat in crew.workers(phase)] if works and crew.teams[phase.team].has_code else []


class _Route:
    """The way of the keys through the flow.

    Attributes
    ----------
    knows
        What each seat knows: instruments whose keys it has, and `READINGS` for what their union tells.
    found, reports
        Whether a seat found that, and whether the last author knows of it.
    """

    def __init__(self, crew: Organisation, held: Mapping[str, int], number: int, requests: int) -> None:
        self.crew, self.held, self.requests = crew, held, requests
        self.keys = set(range(1, number))
        self.knows: dict[str, set[int]] = {seat: set() for seat in crew.seats}
        self.artifacts: list[tuple[str, frozenset[int]]] = []
        self.reported: list[tuple[str, frozenset[int]]] = []
        self.authors: list[str] = []
        for place, phase in enumerate(crew.flow):
            self._pass(place, phase)
        self.found = any(READINGS in known for known in self.knows.values())
        self.reports = any(READINGS in self.knows[seat] for seat in self.authors)

    def _pass(self, place: int, phase: FlowPhase) -> None:
        team, workers = self.crew.teams[phase.team], [seat.id for seat in self.crew.workers(phase)]
        remembers = team.memory == "conversation" or "so_far" in self.crew.shown_in("work")
        speaks = False
        for step in phase.steps:
            kind = find_step(step.do)
            if kind.does == "work":
                chosen = self._best(team, workers) if "bid" in phase.names else workers
                self._work(team, chosen, [later.team for later in self.crew.flow[place + 1 :]])
            elif kind.does == "write":
                self.authors = [*team.seats] if kind.by_each else [team.lead.id]
                for author in self.authors:
                    self._read(author, team, "write", reports="outputs" in self.crew.shown_in("write", _SEES))
                if speaks:
                    self._tell([*team.seats], self.authors)
                self._publish(self.artifacts, self.authors)
            elif kind.assigns:
                self._read(team.lead.id, team, kind.order)
                for seat in workers:
                    self.knows[seat] |= self.knows[team.lead.id]
            elif kind.tells:
                speaks = True
                if remembers:
                    self._tell([*team.seats], [*team.seats])

    def _best(self, team: Team, seats: Sequence[str]) -> list[str]:
        """The seat that adds something when it works next."""
        known = set[int]().union(*(known for _, known in self.artifacts))
        for seat in seats:
            self._read(seat, team, "work")
        return [seat for seat in seats if self._after(seat) - known][:1]

    def _after(self, seat: str) -> set[int]:
        """What a seat knows after running code."""
        mine = self.held.get(seat, -1)
        if mine == READINGS:
            return self.knows[seat] | ({READINGS} if self.keys <= self.knows[seat] else set())
        return self.knows[seat] | ({mine} & self.keys)

    def _work(self, team: Team, seats: Sequence[str], later: Sequence[str]) -> None:
        """Let seats work at the same time; then what they know passes on."""
        tools = team.tools()
        for seat in seats:
            self._read(seat, team, "work")
        if team.has_code:
            self.knows |= {seat: self._after(seat) for seat in seats}
        self._publish(self.reported, seats)
        if "write_artifact" in tools:
            self._publish(self.artifacts, seats)
        if "send_message" in tools:
            self._tell(seats, [seat for name in later if name != team.name for seat in self.crew.teams[name].seats])
        if self.requests and {*_REQUESTS} & {*tools}:
            for seat in seats:
                self._ask(team, seat)

    def _ask(self, team: Team, seat: str) -> None:
        """Let a seat ask each earlier team for more work, and continue with the answer."""
        for name in self.crew.before(team.name):
            asked = self.crew.teams[name]
            if not self.crew.may("ask", seat, name):
                continue
            answering = [member.id for member in self.crew.workers(self.crew.flow[self.crew.place(name)])][:1]
            for member in answering:
                self.knows[member] |= self.knows[seat]
            self._work(asked, answering, ())
            self._work(team.model_copy(update={"without": (*team.without, *_REQUESTS)}), [seat], ())

    def _publish(self, board: list[tuple[str, frozenset[int]]], seats: Iterable[str]) -> None:
        board += [(seat, frozenset(self.knows[seat])) for seat in seats]

    def _read(self, seat: str, team: Team, prompt: str, *, reports: bool = False) -> None:
        """Let a seat read artifacts, and its teammates' reports where `prompt` shows them."""
        board = [*self.artifacts]
        if reports or "so_far" in self.crew.shown_in(prompt):
            board += [(author, known) for author, known in self.reported if author in team.seats]
        for author, known in board:
            if self.crew.may("read", seat, author):
                self.knows[seat] |= known

    def _tell(self, speakers: Iterable[str], listeners: Iterable[str]) -> None:
        """Let seats say what they know."""
        said = [(seat, frozenset(self.knows[seat])) for seat in speakers]
        for seat in listeners:
            for speaker, known in said:
                if self.crew.may("tell", speaker, seat):
                    self.knows[seat] |= known
