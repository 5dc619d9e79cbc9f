"""Named entries of models: model, address, settings, price and limits, and personas.

Entries are in a file (``models.yaml``), in a study, or inline in a model's name. Settings change a model's replies, so
they are part of its name in conditions; the connection (`Access`) is stored with the run's settings.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from labmates.budgets.prices import Price
from labmates.errors import UsageError, explain, telling
from labmates.models.servers import SERVERS
from labmates.models.settings import ModelSettings, read_query, write_query
from labmates.util.safe_text import PLAIN_LETTERS

_LONGEST_PERSONA: Final = 4000
_NAMED_PERSONA = re.compile(r"[a-z0-9-]*\b[0-9a-f]{8}")
_LABEL_CHARS = 16


def is_named(persona: str) -> bool:
    """Whether a setting is the name of a persona, not its text."""
    return _NAMED_PERSONA.fullmatch(persona) is not None


def persona_name(text: str) -> str:
    """The name of a persona in conditions: the first words and the start of the SHA-256 digest of its text.

    The text stands with the model's connection, and at the end of the system message of all its calls.

    >>> persona_name("You care about what everyone earns.")
    'you-care-about-080fc30d'
    """
    words = "-".join(re.findall(r"[a-z0-9]+", text.lower()))
    label = words if len(words) <= _LABEL_CHARS else words[: _LABEL_CHARS + 1].rpartition("-")[0]
    return "-".join(filter(None, (label, hashlib.sha256(text.encode()).hexdigest()[:8])))


FILE_VARIABLE: Final = "LABMATES_MODELS"
FILE_NAME: Final = "models.yaml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_base_url(url: str) -> None:
    """Check that `url` can be the base URL of a server.

    Raises `UsageError` if the URL is not an http or https URL with a host, or holds a name or password (which would end
    up in logs), a query or a fragment.
    """
    example = "for instance http://127.0.0.1:8000/v1"
    try:
        parts = urlsplit(url)
        named, _ = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"the base URL is malformed; {example}") from None
    if "@" in url:
        raise UsageError("the base URL holds a name or password: put the key into the environment variable instead")
    # A query or fragment may hold a key, so none is ever shown.
    shown = re.split(r"[?#]", url, maxsplit=1)[0]
    if parts.scheme not in ("http", "https") or not named:
        raise UsageError(f"base URL '{shown}' must begin with http:// or https:// and name a host; {example}")
    if shown != url or any(char.isspace() for char in url):
        raise UsageError(f"base URL '{shown}' must have no query, fragment or space; {example}")


class Capabilities(BaseModel):
    """The capabilities of a model's server; None where unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: bool | None = Field(None, description="Calls tools.")
    json_replies: bool | None = Field(None, description="Answers in JSON where response_format asks for it.")
    usage: bool | None = Field(None, description="Reports tokens.")


class Access(BaseModel):
    """The address, key, limits and price of a model: settings that don't change its replies."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = Field(None, description="Address of its server, for instance http://127.0.0.1:8001/v1.")
    api_key_env: str | None = Field(
        None, description="Environment variable of the key; a server with a base_url is sent none without it."
    )
    price: Price | None = Field(None, description="Prices of the provider, in dollars per million tokens.")
    max_concurrent_calls: int | None = Field(None, ge=1, le=4096, description="Calls of this model in flight at once.")
    requests_per_minute: int | None = Field(None, ge=1, description="Maximum number of requests per minute.")
    tokens_per_minute: int | None = Field(
        None, ge=1, description="Maximum number of tokens per minute, input and output."
    )
    capabilities: Capabilities | None = Field(
        None, description="Capabilities of the server, for instance tools: false."
    )
    file: str | None = Field(None, description="Of a model served here: path of its file.")
    slots: int | None = Field(None, ge=1, le=256, description="Of a model served here: calls at once; 1 by default.")
    threads: int | None = Field(
        None, ge=1, le=1024, description="Of a model served here: threads of its server; by default one per processor."
    )
    persona_text: str | None = Field(None, max_length=_LONGEST_PERSONA, description="Text of `persona`, which sets it.")

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        check_base_url(value)
        return value.rstrip("/")

    @field_validator("price")
    @classmethod
    def _is_whole(cls, value: Price | None) -> Price | None:
        # The defaults of a price list are the paper's prices, not a provider's.
        if value is not None and not {"input", "output"} <= value.model_fields_set:
            raise ValueError("a price needs input and output, in dollars per million tokens")
        return value

    @field_validator("api_key_env")
    @classmethod
    def _is_variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError("this is not the name of an environment variable")
        return value


DEFAULT_ACCESS: Final = Access()


class Entry(Access, ModelSettings):
    """A named model: provider and model, access and settings."""

    provider: str = Field(description="Provider, as LangChain names it, or one of a plug-in.")
    model: str = Field(min_length=1, description="Name of the model at the provider.")

    @model_validator(mode="before")
    @classmethod
    def _names_persona(cls, values: Any) -> Any:
        given = values.get("persona") if isinstance(values, dict) else None
        if not isinstance(given, str) or is_named(given):
            return values
        if not (text := given.strip()):
            raise ValueError("persona is empty: write its text, or leave it out")
        return {**values, "persona": persona_name(text), "persona_text": text}

    @model_validator(mode="after")
    def _is_served_here(self) -> Entry:
        if self.persona_text and self.persona != persona_name(self.persona_text):
            raise ValueError("persona_text is not the text of persona; write the text in persona")
        given = [name for name in ("file", "slots", "threads") if getattr(self, name)]
        if given and self.provider not in SERVERS:
            SERVERS.refuse_missing(self.provider)
            raise ValueError(f"{', '.join(given)} is a setting of models whose server labmates starts")
        if self.provider in SERVERS and (self.base_url or self.api_key_env):
            own = "a server of yours is openai:NAME"
            raise ValueError(f"a {self.provider}: model has no base_url or api_key_env; {own}")
        return self

    @property
    def name(self) -> str:
        """The model's full name in conditions and tables, ``provider:model?setting=value``."""
        settings = write_query(self._part(ModelSettings))
        return f"{self.provider}:{self.model}{'?' if settings else ''}{settings}"

    @property
    def access(self) -> Access:
        """The address, key, limits and price."""
        return Access.model_validate(self._part(Access))

    def _part(self, part: type[BaseModel]) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True, include=set(part.model_fields))


def read_reference(text: str, named: Mapping[str, Entry]) -> Entry:
    """Parse a user's reference to a model: ``provider:model`` or the name of an entry, with ``?setting=value&…``.

    Raises `UsageError` if the entry or a setting is unknown, or a value is invalid.
    """
    head, mark, query = text.strip().partition("?")
    values: dict[str, Any] = read_query(text, query) if mark else {}
    if ":" in head:
        provider, _, model = head.partition(":")
        base: dict[str, Any] = {"provider": provider.strip(), "model": model.strip()}
    elif head in named:
        base = named[head].model_dump(mode="json", exclude_none=True)
    else:
        known = f"; entries of {models_file() or FILE_NAME}: {', '.join(sorted(named))}" if named else ""
        raise UsageError(
            f"model '{text}' has no provider: write provider:name, for instance openai:{head or 'NAME'}{known}"
        )
    if clash := values.keys() & {"provider", "model"}:
        raise UsageError(f"model '{text}': {', '.join(sorted(clash))} can't be a setting")
    entry = _entry({**base, **values}, f"model '{text}'")
    if entry.provider not in SERVERS:
        return entry
    return entry.model_copy(update=SERVERS.get(entry.provider).named(entry.model, entry.file))


def models_file() -> Path | None:
    """The file of named entries: `LABMATES_MODELS`, else ``models.yaml`` in the working directory."""
    if chosen := os.environ.get(FILE_VARIABLE):
        return Path(chosen)
    here = Path(FILE_NAME)
    return here if here.is_file() else None


def named_entries() -> dict[str, Entry]:
    """The named entries of the models file; none without a file.

    Raises `UsageError` if the file can't be read or is invalid.
    """
    path = models_file()
    if path is None:
        return {}
    with telling(f"can't read the models file '{path}'"):
        stamp = path.stat()
    return dict(_read(path.resolve(), stamp.st_mtime_ns, stamp.st_size))


def add_entry(path: Path, name: str, entry: Entry) -> None:
    """Append an entry to a file of named models; existing content stays unchanged.

    Raises `UsageError` if the name is taken or invalid, or the file can't be read or written.
    """
    import yaml

    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if before and name in _read(path.resolve(), path.stat().st_mtime_ns, path.stat().st_size):
        raise UsageError(f"{path} already has a model '{name}'; choose another name, or change the entry in the file")
    _check_name(name, str(path))
    text = yaml.safe_dump({name: entry.model_dump(mode="json", exclude_none=True)}, sort_keys=False, allow_unicode=True)
    gap = "" if not before or before.endswith("\n") else "\n"
    with telling(f"can't write the models file '{path}'"):
        path.write_text(f"{before}{gap}{text}", encoding="utf-8")
    try:
        _read.__wrapped__(path)
    except UsageError:
        path.write_text(before, encoding="utf-8")
        raise UsageError(f"an entry can't be appended to {path}; add it by hand") from None


def _check_name(name: object, where: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = f"{PLAIN_LETTERS}, digits, '.', '_' and '-', at most 100"
        raise UsageError(f"{where}, entry '{name}': a name has {rule}")


@lru_cache(maxsize=8)
def _read(path: Path, *_stamp: int) -> dict[str, Entry]:
    from labmates.util.bounded_yaml import read_source

    with telling(f"can't read the models file '{path}'"):
        text = path.read_text(encoding="utf-8")
    data = read_source(text, str(path), "models file", "NAME: {provider: openai, model: NAME}", may_be_empty=True).data
    entries: dict[str, Entry] = {}
    for name, values in data.items():
        where = f"{path}, entry '{name}'"
        _check_name(name, str(path))
        if not isinstance(values, dict):
            raise UsageError(f"{where}: expected settings such as provider, model and base_url")
        entries[name] = _entry(values, where)
    return entries


def _entry(values: Mapping[str, Any], where: str) -> Entry:
    try:
        return Entry.model_validate(dict(values))
    except ValidationError as error:
        if any(fault["loc"] == ("api_key_env",) for fault in error.errors()):  # Not quoted: it may be a key.
            raise UsageError("api_key_env must be the name of an environment variable, not a key") from None
        if fault := next((fault for fault in error.errors() if fault["loc"] == ("base_url",)), None):
            raise UsageError(fault["msg"].removeprefix("Value error, ")) from None  # nor is the rest of this one
        unknown = [str(fault["loc"][0]) for fault in error.errors() if fault["type"] == "extra_forbidden"]
        if unknown and len(error.errors()[0]["loc"]) == 1:
            settings = sorted(Entry.model_fields.keys() - {"provider", "model"})
            raise UsageError(f"{where}: unknown setting '{unknown[0]}'; known: {', '.join(settings)}") from None
        raise UsageError(f"{where}: {explain(error)}") from None
