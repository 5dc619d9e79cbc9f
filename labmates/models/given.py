"""Chat models passed as objects."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Final

from labmates.errors import UsageError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

GIVEN: Final = "object"
"""The provider of chat models passed as objects."""

_GIVEN: dict[str, BaseChatModel] = {}


def name_given(chat: object) -> str:
    """The name of a chat model object: its model name and a hash of its parameters.

    Raises `UsageError` if it is not a LangChain chat model.
    """
    from langchain_core.language_models import BaseChatModel

    if not isinstance(chat, BaseChatModel):
        raise UsageError(f"a model is a name (provider:name) or a LangChain chat model, not {type(chat).__name__}")
    kind = type(chat)
    parameters = {"class": f"{kind.__module__}.{kind.__qualname__}", **chat._identifying_params}
    text = json.dumps(parameters, sort_keys=True, default=lambda value: type(value).__qualname__)
    own = getattr(chat, "model_name", None) or getattr(chat, "model", None) or kind.__name__
    name = f"{re.sub(r'[^A-Za-z0-9._/-]', '_', str(own))}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    _GIVEN[name] = chat
    return f"{GIVEN}:{name}"


def given_chat(name: str) -> BaseChatModel:
    """The chat model object of this name. Raises `UsageError` if this process received no object of that name."""
    if name not in _GIVEN:
        raise UsageError(
            f"model '{GIVEN}:{name}' is an object of another program: pass it again (labmates.run(model=…))"
        )
    return _GIVEN[name]
