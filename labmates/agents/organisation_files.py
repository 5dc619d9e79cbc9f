"""Files of organisations: reading, finding and copying them.

An organisation is a YAML file with prompt files beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import reduce
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import getitem
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SerializerFunctionWrapHandler, ValidationError, WrapSerializer

from labmates.agents.mcp_servers import McpServer
from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import GRAPH, Channels, Seat, Team, Tokens
from labmates.agents.own_code import with_code
from labmates.errors import UsageError, did_you_mean, plain_fault, telling, unknown_name
from labmates.registry import Registry
from labmates.util.bounded_yaml import Source, read_source

_ROLE_FILE = re.compile(r"\S+\.md")
BUILT_IN = ("pipeline", "solo", "independent", "centralised", "decentralised", "hybrid", "blackboard")
ORGANISATIONS: Registry[Organisation | str | Path] = Registry("organisation", "labmates.organisations")
"""All organisations by name; an entry of another package is an `Organisation` or the path of a file."""
_READ: dict[str, tuple[Organisation, Source]] = {}
"""The organisation of each name that was read last, with its file."""


def find_organisation(name: str) -> Organisation:
    """The organisation `name`: a registered name, a YAML file, or the ``module:function`` of a graph.

    Raises `UsageError` if it is unknown or invalid.
    """
    if name in ORGANISATIONS:
        with ORGANISATIONS.guarded(name, "can't be used"):
            entry = ORGANISATIONS.get(name)
            return entry if isinstance(entry, Organisation) else read_organisation(Path(entry))
    if GRAPH.fullmatch(name):
        title = re.sub(r"[^\w.-]", "-", Path(name).name)
        return Organisation.model_validate({"name": title, "graph": name})
    if name.endswith(".py"):
        raise UsageError(f"'{name}' names no function; write {name}:FUNCTION")
    if name.endswith((".yaml", ".yml")) or Path(name).is_file():
        return read_organisation(Path(name))
    raise unknown_name("organisation", name, ORGANISATIONS.names())


def _resolved(value: object) -> object:
    return find_organisation(str(value)) if isinstance(value, str | Path) else value


def _recorded(value: Organisation, dump: SerializerFunctionWrapHandler) -> Any:
    # Records hold the content of users' files; built-in organisations are fixed by the version of labmates.
    if ORGANISATIONS.is_own(value.name) and value == ORGANISATIONS.get(value.name):
        return value.name
    return {name: part for name, part in dump(value).items() if name != "code" or part}


OrganisationRef = Annotated[
    Organisation, BeforeValidator(_resolved), AfterValidator(with_code), WrapSerializer(_recorded)
]
"""An organisation as a parameter: given by name, as a file, or as its content."""


def source_of(name: str) -> dict[str, str]:
    """The texts of an organisation's file and prompts, by path relative to the file's folder.

    Raises `UsageError` if the organisation is not in a file.
    """
    path = Path(name)
    if name in ORGANISATIONS:
        entry = ORGANISATIONS.get(name)
        if isinstance(entry, Organisation) and not ORGANISATIONS.is_own(name):
            raise UsageError(f"the organisation '{name}' is made by {ORGANISATIONS.package(name)}; it has no file")
        built_in = files("labmates.agents.organisations").joinpath(f"{name}.yaml")
        path = Path(str(built_in if isinstance(entry, Organisation) else entry))
    texts = {path.name: _text(path)}
    data = read_source(texts[path.name], path.name, "organisation", "name: peers").data
    folder = data.get("prompts")
    prompts = find_organisation(name).prompts if isinstance(folder, str) else {}
    roles = {role: _text(_neighbour(path, role)) for role in _role_files(data).values()}
    return {**texts, **{f"{folder}/{prompt}.md": f"{text}\n" for prompt, text in prompts.items()}, **roles}


def read_organisation(path: Traversable) -> Organisation:
    """The organisation in a YAML file, with its folder of prompts beside it.

    Raises `UsageError` if the file or a prompt is unreadable or invalid; it names each fault with its line and remedy.
    """
    source = read_source(_text(path), path.name, "organisation", "name: peers")
    data = _with_roles(path, source)
    if data.get("graph") and (given := [key for key in ("teams", "flow") if key in data]):
        raise source.error([((given[0],), "an organisation as code has none; name its seats under seats")])
    try:
        if isinstance(folder := data.get("prompts"), str):
            data["prompts"] = _prompts(path, folder, source)
        if isinstance(graph := data.get("graph"), str) and isinstance(path, Path):
            beside = str(path.parent / graph)
            data["graph"] = beside if Path(beside.rpartition(":")[0]).is_file() else graph
        organisation = Organisation.model_validate(data)
    except ValidationError as error:
        is_code = "graph" in data
        raise source.error((_place(fault["loc"], is_code), _fault_text(fault)) for fault in error.errors()) from error
    if not isinstance(path, Path):
        return organisation
    servers = {name: server.beside(path.parent) for name, server in organisation.mcp.items()}
    moved = {"mcp": servers, "teams": _beside(organisation.teams, path.parent)}
    organisation = with_code(organisation.model_copy(update=moved))
    _READ[organisation.name] = organisation, source
    return organisation


def seat_fault(organisation: Organisation, seat: str, key: str, text: str) -> UsageError:
    """The error of a value of a seat; with file and line if this process read the organisation from a file.

    Parameters
    ----------
    key
        The key of the value.
    text
        The fault, and what to do.
    """
    team, _ = organisation.seats[seat]
    read, source = _READ.get(organisation.name, (None, None))
    if source is None or read != organisation:
        return UsageError(f"organisation {organisation.name}: teams.{team}.seats.{seat}.{key}: {text}")
    place = _place(("teams", team, "seats"), bool(organisation.graph))
    name = seat if (*place, seat) in source.lines else re.sub(r"_\d+$", "", seat)  # counted seats have one entry
    return source.error([((*place, name, key), text)])


def _beside(teams: Mapping[str, Team], folder: Path) -> dict[str, Team]:
    """The teams, with absolute paths for the files named by their seats."""
    return {
        name: team.model_copy(update={"seats": {id_: seat.beside(folder) for id_, seat in team.seats.items()}})
        for name, team in teams.items()
    }


def _prompts(path: Traversable, folder: str, source: Source) -> dict[str, str]:
    _check_inside(folder, ("prompts",), source)
    inside = _neighbour(path, folder)
    if not inside.is_dir():
        raise source.error([(("prompts",), f"there is no folder '{folder}' beside the file")])
    prompts = sorted((part for part in inside.iterdir() if part.name.endswith(".md")), key=lambda part: part.name)
    if not prompts:
        raise source.error([(("prompts",), f"no file in the folder '{folder}' is a prompt (NAME.md); leave it out")])
    return {part.name.removesuffix(".md"): _text(part).rstrip("\n") for part in prompts}


def _check_inside(name: str, place: Sequence[str], source: Source) -> None:
    """Check that a file or folder is below the folder of the organisation's file."""
    if PurePosixPath(name).is_absolute() or ".." in name.split("/"):
        raise source.error([(place, f"'{name}' is outside the folder of this file; put it there and name it from it")])


def _neighbour(path: Traversable, name: str) -> Traversable:
    parent = path.parent if isinstance(path, Path) else files("labmates.agents.organisations")
    return parent.joinpath(*name.split("/"))


def _role_files(data: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Files named by seats in place of the text of their part, by the seat's place in the organisation's file."""
    groups: dict[tuple[str, ...], Any] = {("seats",): data.get("seats")}
    if isinstance(teams := data.get("teams"), Mapping):
        groups |= {
            ("teams", name, "seats"): team.get("seats") for name, team in teams.items() if isinstance(team, Mapping)
        }
    return {
        (*place, id_): seat["part"]
        for place, seats in groups.items()
        for id_, seat in (seats.items() if isinstance(seats, Mapping) else ())
        if isinstance(seat, Mapping) and _ROLE_FILE.fullmatch(str(seat.get("part")))
    }


def _with_roles(path: Traversable, source: Source) -> dict[str, Any]:
    """The content of an organisation's file, with role file names replaced by their texts."""
    data = deepcopy(source.data)
    for place, role in _role_files(data).items():
        _check_inside(role, (*place, "part"), source)
        file = _neighbour(path, role)
        if not file.is_file():
            raise source.error([((*place, "part"), f"there is no file '{role}' beside the file")])
        seat = reduce(getitem, place, data)
        seat["part"] = _text(file).strip()
    return data


def _text(path: Traversable) -> str:
    with telling(f"can't read '{path}'"):
        return path.read_text(encoding="utf-8")


def _fault_text(fault: Mapping[str, Any]) -> str:
    if fault["type"] != "extra_forbidden":
        return plain_fault(fault)
    *place, key = fault["loc"]
    known = _keys_at(place)
    return f"unknown key '{key}'.{did_you_mean(str(key), known)}" + (f" Keys: {', '.join(known)}" if known else "")


def _place(path: Sequence[str | int], is_code: bool) -> Sequence[str | int]:
    """The place of a fault in the file, without pydantic's key marks and the implicit team of code."""
    path = path[2:] if is_code and path[:2] == ("teams", "lab") else path
    return path[:-1] if path and path[-1] == "[key]" else path


def _keys_at(place: Sequence[str | int]) -> list[str]:
    """Allowed keys at a place in the file; none if unknown."""
    match place:
        case []:
            return [*Organisation.model_fields, "steps", "seats"]
        case ["teams", _]:
            return [name for name in Team.model_fields if name != "name"]
        case ["teams", _, "seats", _]:
            return [*(name for name in Seat.model_fields if name != "id"), "count"]
        case ["teams", _, "tokens"]:
            return list(Tokens.model_fields)
        case ["channels"]:
            return list(Channels.model_fields)
        case ["mcp", _]:
            return list(McpServer.model_fields)
        case _:
            return []
