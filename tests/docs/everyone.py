"""Who answers for the models that our pages name: scripted baselines behind a real HTTP server, by what is asked."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from labmates.budgets.tokens import text_of
from labmates.judges.base import METRICS
from labmates.judges.rubric import SYSTEM as RATING
from labmates.judges.rubric import Flags
from labmates.models.scripted import make_baseline
from labmates.workflows.science.baselines.prompt import read_step
from labmates_profiles.reasons.judge import SYSTEM as REASONS
from tests.support.form_filler import FormFiller
from tests.support.lab_orders import with_facts
from tests.support.openai_server import Answer, Behaviour, Json, answer_of, read_messages
from tests.support.text_author import TextAuthor

_MIDDLING = {
    "sections": dict.fromkeys(Flags.model_fields, True),
    **dict.fromkeys(METRICS, 3),
    **{f"{name}_reason": "It is middling." for name in METRICS},
}


def everyone() -> Behaviour:
    """Return the behaviour of a server that answers everything that labmates asks models."""
    models: dict[str, BaseChatModel] = {name: make_baseline(name) for name in ("hasty",)}
    models |= {"author": TextAuthor(), "player": FormFiller()}

    async def behave(request: Json, number: int) -> Answer:
        messages = with_facts(read_messages(request["messages"]))
        if text_of(messages[0].content) == REASONS:
            return answer_of(AIMessage(json.dumps({"labels": ["other"]})))
        if text_of(messages[0].content) == RATING:
            return answer_of(AIMessage(json.dumps(_MIDDLING)))
        limit = request.get("max_tokens") or request.get("max_completion_tokens")
        given: dict[str, Any] = {
            "seed": request.get("seed"),
            "max_tokens": limit,
            "tools": _without_code(request.get("tools")),
        }
        keywords = {name: value for name, value in given.items() if value is not None}
        return answer_of(await models[_who(messages)].ainvoke(messages, **keywords))

    return behave


def _without_code(tools: list[Json] | None) -> list[Json] | None:
    """Leave out the tool that runs code: a sandbox for each look at a table would take longer than all else.

    Scripted baselines, which pages name too, run theirs.
    """
    return tools and [tool for tool in tools if tool["function"]["name"] != "run_code"]


def _who(messages: list[BaseMessage]) -> str:
    if read_step(messages).kind != "other":
        return "hasty"
    return "author" if len(messages) == 1 else "player"
