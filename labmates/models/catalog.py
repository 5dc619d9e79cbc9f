"""The catalog of a session: turns models as users write them into the names that conditions have.

What a reference says beyond that (address, key, price, limits) goes into the settings of the run, by the model's name.
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


class Catalog:
    """Resolves references to models, and collects how these are reached.

    Parameters
    ----------
    options
        Settings that apply to all models; what was collected goes on top of them.
    named
        Entries by name; by default those of the models file.
    """

    def __init__(self, options: ModelOptions | None = None, named: Mapping[str, Entry] | None = None) -> None:
        self._options = options or ModelOptions()
        self.named = dict(named_entries() if named is None else named)
        self._found: dict[str, Access] = {}
        self._written: dict[str, str] = {}

    def name_of(self, reference: Any) -> str:
        """The full name of a model, ``provider:name?setting=value``.

        A model that is named without an address is reached as another reference to it says.

        Parameters
        ----------
        reference
            ``provider:name``, the name of an entry, either with ``?setting=value``; or a LangChain chat model.

        Raises
        ------
        UsageError
            If it names no model, a setting is wrong, or two references that differ only in how the model is reached
            would have the same name.
        """
        if not isinstance(reference, str):
            from labmates.models.given import name_given

            return name_given(reference)
        if "?" not in reference and reference not in self.named:
            return reference  # Its error is reported where it is used.
        entry = read_reference(reference, self.named)
        if (access := entry.access) != DEFAULT_ACCESS:
            first = self._written.setdefault(entry.name, reference)
            if self._found.setdefault(entry.name, access) != access:
                raise UsageError(
                    f"'{first}' and '{reference}' are the same model with the same settings ({entry.name}), with "
                    "two connections: every table would merge them. Name the difference, for instance variant=b"
                )
        return entry.name

    def options(self, model: str | None = None) -> ModelOptions:
        """The settings with how each model that was named is reached, or only the model with this full name."""
        access = ChainMap(self._found, self._options.entries)
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
"""A model as a field of a condition, whose context of validation is the catalog of the session."""
