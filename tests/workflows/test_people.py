"""What a person is shown of a call, and what a sent form means."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from labmates.agents.tools import tool_schemas
from labmates.api import arun
from labmates.budgets.ledger import Ledger
from labmates.budgets.purse import Purse
from labmates.errors import UsageError
from labmates.models.names import parse_model
from labmates.models.structured import format_of
from labmates.records.events import WarningEvent
from labmates.workflows.calls.call import Call, Speaker
from labmates.workflows.people.answerers import MOST_BYTES, reply_of, turn_of


class Choice(BaseModel):
    amount: int
    share: float = 0.5
    move: Literal["up", "down"] = Field(description="Where to.")
    sure: bool = True
    parts: list[int] = []
    why: str = ""


def turn(**call: Any) -> dict[str, Any]:
    messages = [SystemMessage("You are Ann."), HumanMessage("Choose.")]
    made = Call("A/0", Speaker("A", "A1", "human:ann"), messages, Purse(Ledger(0), "A", {}), "", 0, **call)
    return turn_of(made, 0.0)


DECIDES = turn(response_format=format_of(Choice))
WORKS = turn(tools=tool_schemas(["run_code", "list_artifacts", "read_artifact"], None))


def test_a_decision_is_a_form_with_a_field_for_each_part_of_it() -> None:
    [form] = DECIDES["forms"]
    kinds = {field["name"]: field["kind"] for field in form["fields"]}
    assert kinds == {
        "amount": "whole",
        "share": "number",
        "move": "choice",
        "sure": "choice",
        "parts": "json",
        "why": "text",
    }
    assert [field["name"] for field in form["fields"] if field["required"]] == ["amount", "move"]
    assert [message["content"] for message in DECIDES["messages"]] == ["You are Ann.", "Choose."]


def test_the_fields_of_a_decision_are_its_json() -> None:
    fields = {"amount": " 7 ", "move": '"up"', "parts": "[1, 2]", "why": "a\r\nb", "share": ""}
    given = reply_of(DECIDES, {"form": "decision", "fields": fields})
    assert Choice.model_validate_json(given["text"]) == Choice(amount=7, move="up", parts=[1, 2], why="a\nb")


def test_a_form_of_a_tool_is_its_call_and_a_text_is_a_text() -> None:
    used = reply_of(WORKS, {"form": "read_artifact", "fields": {"name": "notes", "offset": "3"}})
    assert used == {"call": {"name": "read_artifact", "arguments": {"name": "notes", "offset": 3}}}
    assert reply_of(WORKS, {"form": "list_artifacts"}) == {"call": {"name": "list_artifacts", "arguments": {}}}
    assert reply_of(WORKS, {"form": "", "text": " Yes. "}) == {"text": "Yes."}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "amount: this field is required"),
        ({"amount": "many", "move": '"up"'}, "amount: 'many' is not a whole number"),
        ({"amount": "1.5", "move": '"up"'}, "amount: '1.5' is not a whole number"),
        ({"amount": "1e999", "move": '"up"'}, "amount: '1e999' is not a whole number"),
        ({"amount": "true", "move": '"up"'}, "amount: 'true' is not a whole number"),
        ({"amount": "1", "move": '"left"'}, "move: '\"left\"' is not one of the options"),
        ({"amount": "1", "move": '"up"', "parts": "[1,"}, "parts: '\\[1,' is not JSON"),
        ({"amount": "1", "move": '"up"', "parts": "[" * 100_000}, "parts: .* is not JSON"),
    ],
)
def test_a_wrong_field_is_told_to_the_person(fields: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        reply_of(DECIDES, {"form": "decision", "fields": fields})


def test_an_empty_text_and_an_unknown_form_are_refused() -> None:
    with pytest.raises(UsageError, match="the answer is empty"):
        reply_of(WORKS, {"form": "", "text": " \n"})
    with pytest.raises(UsageError, match="there is no form 'fly'"):
        reply_of(WORKS, {"form": "fly"})


def test_a_transcript_that_is_too_long_loses_its_older_messages() -> None:
    messages = [SystemMessage("You are Ann."), *(HumanMessage(f"{n} {'x' * (MOST_BYTES // 4)}") for n in range(6))]
    call = Call("A/0", Speaker("A", "A1", "human:ann"), [*messages], Purse(Ledger(0), "A", {}), "", 0)
    shown = [message["content"].split(" ")[0] for message in turn_of(call, 0.0)["messages"]]
    assert shown == ["You", "3", "4", "5"]


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("human:ann?temperature=1", "a person has one setting"),
        ("human:ann?seconds=0", "seconds"),
        ("openai:m?seconds=5", "'seconds' is a setting of people"),
    ],
)
def test_a_wrong_setting_of_a_person_is_an_error(model: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_model(model)


async def test_a_person_who_is_late_gives_an_empty_reply_and_the_game_ends(tmp_path: Path) -> None:
    [run] = await arun(
        "game", store=f"sqlite:///{tmp_path}/runs.db", game="public-goods", model="scripted:fair-share",
        model_for={"A2": "human:ann?seconds=0.05"}, group_size=2, groups=1, rounds=1, repair_turns=0,
    )  # fmt: skip
    assert run.status == "completed"
    warnings = [event.text for event in run.events if isinstance(event, WarningEvent)]
    assert any("A2 gave no reply within 0.05 s" in text for text in warnings)
