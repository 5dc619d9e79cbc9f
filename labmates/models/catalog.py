"""The catalog of a session: resolves users' references to models into the names in conditions.

The connection in a reference (address, key, price, limits) goes into the run's settings, by the model's name.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, ValidationInfo

from labmates.errors import UsageError
from labmates.models.entries import DEFAULT_ACCESS, Access, Entry, named_entries, read_reference
from labmates.models.names import full_name
from labmates.models.options import ModelOptions
from labmates.models.servers import SERVERS


class Catalog:
    """Resolves references to models, and collects their connections on top of the general `options`.

    `named` are entries by name, by default those of the models file.
    """

    def __init__(self, options: ModelOptions | None = None, named: Mapping[str, Entry] | None = None) -> None:
        self._options = options or ModelOptions()
        self.named = dict(named_entries() if named is None else named)
        self._access: dict[str, Access] = {}
        self._written: dict[str, str] = {}

    def name_of(self, reference: Any) -> str:
        """The full name of a model, ``provider:name?setting=value``.

        A reference is ``provider:name`` or the name of an entry, with optional ``?setting=value``, or a LangChain chat
        model. A reference without an address uses the connection of other references to the model. Raises `UsageError`
        if the reference is not a model, a setting is invalid, or two references differ only in their connection and
        would have the same name.
        """
        if not isinstance(reference, str):
            from labmates.models.names import name_given

            return name_given(reference)
        if "?" not in reference and reference not in self.named and reference.partition(":")[0] not in SERVERS:
            return reference  # Its error is reported where it is used.
        entry = read_reference(reference, self.named)
        if (access := entry.access) != DEFAULT_ACCESS:
            first = self._written.setdefault(entry.name, reference)
            if self._access.setdefault(entry.name, access) != access:
                raise UsageError(
                    f"'{first}' and '{reference}' are the same model with the same settings ({entry.name}), with "
                    "two connections: every table would merge them. Name the difference, for instance variant=b"
                )
        return entry.name

    def options(self, model: str | None = None) -> ModelOptions:
        """The options with the connections of all named models, or only of the model with this full name."""
        access = ChainMap(self._access, self._options.entries)
        names = access if model is None else access.keys() & {model}
        return self._options.model_copy(update={"entries": {name: access[name] for name in names}})


def _resolved(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) and not hasattr(value, "ainvoke"):
        return value
    catalog = info.context if isinstance(info.context, Catalog) else Catalog(named={})
    name = catalog.name_of(value)
    if catalog is not info.context and catalog.options().entries:
        raise UsageError(f"model '{value}': connection settings are not part of a condition")
    return full_name(name)


ModelRef = Annotated[str, BeforeValidator(cast(Any, _resolved))]
"""A model as a field of a condition; the validation context is the session's catalog."""
